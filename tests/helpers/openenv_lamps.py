"""Environments behind OpenEnv servers: lamps of a seeded colour, drawn at random, and orders.

`python openenv_lamps.py NAME SESSIONS` serves one on a free port, which it prints.
"""

from __future__ import annotations

import random
import socket
import sys

import uvicorn
from openenv.core.env_server import Action, Environment, Observation, State, create_fastapi_app


class Press(Action):
    colour: str


class Lamp(Observation):
    text: str


class Order(Action):
    item: str
    count: int


class Desk(Observation):
    asked: str
    left: int


class Lamps(Environment):
    """Three lamps in turn: 1 for a button of the lamp's colour, -1 for another one."""

    SUPPORTS_CONCURRENT_SESSIONS = True
    seeded = True

    def reset(self, seed=None, episode_id=None, first=None):
        self._draws = random.Random(seed if self.seeded else None)
        self._left = 3
        return self._next(first, 0.0)

    def step(self, action, timeout_s=None):
        if action.colour not in ("red", "blue"):
            raise ValueError(f"no {action.colour} button")
        self._left -= 1
        return self._next(None, 1.0 if action.colour == self._colour else -1.0)

    def _next(self, colour, reward):
        self._colour = colour or self._draws.choice(("red", "blue"))
        room = self._draws.randrange(1000)
        return Lamp(
            text=f"room {room}: the lamp is {self._colour}", reward=reward, done=not self._left
        )

    @property
    def state(self):
        return State()


class Unseeded(Lamps):
    seeded = False


class Orders(Environment):
    """Pays the count of an order, once."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def reset(self, seed=None, episode_id=None):
        return Desk(asked="tea", left=4)

    def step(self, action, timeout_s=None):
        return Desk(asked="", left=0, done=True, reward=float(action.count))

    @property
    def state(self):
        return State()


SERVED = {
    "lamps": (Lamps, Press, Lamp),
    "unseeded": (Unseeded, Press, Lamp),
    "orders": (Orders, Order, Desk),
}

if __name__ == "__main__":
    name, sessions = sys.argv[1:]
    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)
    app = create_fastapi_app(*SERVED[name], max_concurrent_envs=int(sessions))
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run([listening])
