"""Ten further Dec-POMDPs for benchmarks/breadth.py, written out as `.dpomdp` files.

Broadcast and fire fighting follow the published definitions, so that their optima can be compared
with the literature. Grid meeting and recycling follow theirs in outline; the others are new.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from colearn.tabular.model import Array


@dataclass(frozen=True, eq=False, kw_only=True)
class Definition:
    """A Dec-POMDP by functions of states and joint actions."""

    agents: int
    states: Sequence[str]
    start: Array
    actions: tuple[tuple[str, ...], ...]
    observations: tuple[tuple[str, ...], ...]
    transition: Callable[[int, tuple[int, ...]], Array]
    """(s, a) -> T(. | s, a)."""
    observation: Callable[[int, tuple[int, ...], int], Array]
    """(agent, a, s') -> O_i(. | a, s'): agents observe independently given a and s'."""
    reward: Callable[[int, tuple[int, ...], int], float]
    """(s, a, s') -> R."""

    def text(self) -> str:
        """The `.dpomdp` file."""
        lines = [f"agents: {self.agents}", "discount: 1", "values: reward"]
        lines += [f"states: {' '.join(self.states)}", "start:", _row(self.start), "actions:"]
        lines += [" ".join(names) for names in self.actions]
        lines += ["observations:", *(" ".join(names) for names in self.observations)]
        for joint in itertools.product(*(range(len(names)) for names in self.actions)):
            action = " ".join(names[k] for names, k in zip(self.actions, joint, strict=True))
            for s, state in enumerate(self.states):
                chances = self.transition(s, joint)
                lines += [f"T: {action} : {state} :", _row(chances)]
                for after in np.nonzero(chances)[0]:
                    reward = self.reward(s, joint, int(after))
                    if reward:
                        to = self.states[after]
                        lines.append(f"R: {action} : {state} : {to} : * : {reward:g}")
            for after, state in enumerate(self.states):
                seen = np.ones(1)
                for agent in range(self.agents):
                    seen = np.outer(seen, self.observation(agent, joint, after)).ravel()
                lines += [f"O: {action} : {state} :", _row(seen)]
        return "\n".join(lines) + "\n"


def _row(numbers: Array) -> str:
    return " ".join(f"{number:.10g}" for number in numbers)


def _one(size: int, place: int) -> Array:
    return np.eye(size)[place]


def broadcast() -> Definition:
    """Broadcast channel (Ooi and Wornell 1996; Hansen et al. 2004): two buffers of one message that
    refill with probability 0.9 and 0.1; a lone transmission earns 1, two collide."""
    states = [f"{a}{b}" for a in ("full", "empty") for b in ("Full", "Empty")]

    def after(s: int, a: tuple[int, ...]) -> Array:
        full = [s < 2, s % 2 == 0]
        sends = [full[0] and a[0] == 0, full[1] and a[1] == 0]
        chances = []
        for i, refill in enumerate((0.9, 0.1)):
            sent = sends[i] and not sends[1 - i]
            chances.append(1.0 if full[i] and not sent else refill)
        return np.array(
            [p * q for p in (chances[0], 1 - chances[0]) for q in (chances[1], 1 - chances[1])]
        )

    def reward(s: int, a: tuple[int, ...], _: int) -> float:
        sends = [s < 2 and a[0] == 0, s % 2 == 0 and a[1] == 0]
        return float(sum(sends) == 1)

    return Definition(
        agents=2,
        states=states,
        start=_one(4, 0),
        actions=(("send", "wait"),) * 2,
        observations=(("full", "empty"),) * 2,
        transition=after,
        observation=lambda i, a, s: _one(2, s // 2 if i == 0 else s % 2),
        reward=reward,
    )


def fire_fighting() -> Definition:
    """Fire fighting (Oliehoek, Spaan and Vlassis 2008): two agents, three houses, fire levels 0
    to 2; the reward is minus the sum of the levels."""
    levels = list(itertools.product(range(3), repeat=3))

    def house(state: tuple[int, ...], h: int, there: int) -> Array:
        fire = state[h]
        beside = any(state[k] > 0 for k in (h - 1, h + 1) if 0 <= k < 3)
        if there == 2:
            return _one(3, 0)
        if there == 1:
            falls = 0.6 if beside else 1.0
            return falls * _one(3, max(fire - 1, 0)) + (1 - falls) * _one(3, fire)
        if fire == 0 and not beside:
            return _one(3, 0)
        rises = 0.8 if beside else 0.4
        return rises * _one(3, min(fire + 1, 2)) + (1 - rises) * _one(3, fire)

    def after(s: int, a: tuple[int, ...]) -> Array:
        rows = [house(levels[s], h, a.count(h)) for h in range(3)]
        return np.einsum("a,b,c->abc", *rows).ravel()

    def flames(i: int, a: tuple[int, ...], s: int) -> Array:
        chance = (0.2, 0.5, 0.8)[levels[s][a[i]]]
        return np.array([chance, 1 - chance])

    return Definition(
        agents=2,
        states=["f" + "".join(map(str, level)) for level in levels],
        start=np.full(27, 1 / 27),
        actions=(("first", "second", "third"),) * 2,
        observations=(("flames", "smoke"),) * 2,
        transition=after,
        observation=flames,
        reward=lambda s, a, after: -float(sum(levels[after])),
    )


def grid_meeting() -> Definition:
    """After the meeting on a 2x2 grid (Bernstein, Hansen and Zilberstein 2005): 1 for every turn
    that ends with both in one cell. Moves succeed with probability 0.6; each sees its side."""
    moves = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1), "stay": (0, 0)}
    names = tuple(moves)

    def step(cell: int, action: int) -> Array:
        chances = np.zeros(4)
        for name in names:
            dy, dx = moves[name]
            y, x = min(max(cell // 2 + dy, 0), 1), min(max(cell % 2 + dx, 0), 1)
            chances[2 * y + x] += 0.6 if name == names[action] else 0.1
        return chances

    return Definition(
        agents=2,
        states=[f"c{a}{b}" for a in range(4) for b in range(4)],
        start=_one(16, 0 * 4 + 3),
        actions=(names,) * 2,
        observations=(("west", "east"),) * 2,
        transition=lambda s, a: np.outer(step(s // 4, a[0]), step(s % 4, a[1])).ravel(),
        observation=lambda i, a, s: _one(2, (s // 4 if i == 0 else s % 4) % 2),
        reward=lambda s, a, after: float(s // 4 == s % 4),
    )


def recycling() -> Definition:
    """After the recycling robots (Amato, Bernstein and Zilberstein 2007): a large can takes two
    robots, searching drains the battery, and a robot that runs empty is carried home for 6."""

    def battery(high: bool, action: int) -> Array:
        if action == 2:
            return _one(2, 0)
        drains = (0.5, 0.3)[action]
        if high:
            return np.array([1 - drains, drains])
        return np.array([drains, 1 - drains])  # an empty robot is charged at home

    def reward(s: int, a: tuple[int, ...], after: int) -> float:
        highs, later = (s < 2, s % 2 == 0), (after < 2, after % 2 == 0)
        paid = 5.0 * (a == (0, 0)) + 2.0 * a.count(1)
        empty = sum(not h and n and act != 2 for h, n, act in zip(highs, later, a, strict=True))
        return paid - 6.0 * empty

    return Definition(
        agents=2,
        states=["hh", "hl", "lh", "ll"],
        start=_one(4, 0),
        actions=(("large", "small", "charge"),) * 2,
        observations=(("high", "low"),) * 2,
        transition=lambda s, a: np.outer(battery(s < 2, a[0]), battery(s % 2 == 0, a[1])).ravel(),
        observation=lambda i, a, s: _one(2, s // 2 if i == 0 else s % 2),
        reward=reward,
    )


def parity() -> Definition:
    """Each of two agents sees a bit; 10 if the parity of their answers is that of the bits."""
    states = ["start", "b00", "b01", "b10", "b11", "over"]

    def after(s: int, _: tuple[int, ...]) -> Array:
        return np.array([0, 0.25, 0.25, 0.25, 0.25, 0]) if s == 0 else _one(6, 5)

    def reward(s: int, a: tuple[int, ...], _: int) -> float:
        return 10.0 * (0 < s < 5 and (sum(a) + (s - 1) // 2 + (s - 1) % 2) % 2 == 0)

    def seen(i: int, _: tuple[int, ...], s: int) -> Array:
        return _one(3, 0 if s in (0, 5) else 1 + ((s - 1) // 2 if i == 0 else (s - 1) % 2))

    return Definition(
        agents=2,
        states=states,
        start=_one(6, 0),
        actions=(("zero", "one"),) * 2,
        observations=(("nothing", "bit-zero", "bit-one"),) * 2,
        transition=after,
        observation=seen,
        reward=reward,
    )


def relay() -> Definition:
    """Three agents in a row: the first sees a door, its move is seen by the second, whose move is
    seen by the third, who opens: 10 for the right door."""
    states = [
        "d0",
        "d1",
        *(f"{d}s{m}" for d in "ab" for m in "01"),
        *(f"{d}t{m}" for d in "ab" for m in "01"),
        "over",
    ]

    def after(s: int, a: tuple[int, ...]) -> Array:
        if s < 2:
            return _one(11, 2 + 2 * s + a[0])
        if s < 6:
            return _one(11, 6 + 2 * ((s - 2) // 2) + a[1])
        return _one(11, 10)

    def seen(i: int, _: tuple[int, ...], s: int) -> Array:
        if i == 1 and 2 <= s < 6:
            return _one(3, 1 + s % 2)
        if i == 2 and 6 <= s < 10:
            return _one(3, 1 + s % 2)
        return _one(3, 0)

    begin = ["p0", "p1", *states]
    size = len(begin)

    def shifted(s: int, a: tuple[int, ...]) -> Array:
        if s < 2:
            return _one(size, 2 + s)
        return np.concatenate([np.zeros(2), after(s - 2, a)])

    def shifted_seen(i: int, a: tuple[int, ...], s: int) -> Array:
        if i == 0 and s in (2, 3):
            return _one(3, s - 1)
        return _one(3, 0) if s < 2 else seen(i, a, s - 2)

    return Definition(
        agents=3,
        states=begin,
        start=np.array([0.5, 0.5, *[0.0] * (size - 2)]),
        actions=(("left", "right"),) * 3,
        observations=(("nothing", "was-left", "was-right"),) * 3,
        transition=shifted,
        observation=shifted_seen,
        reward=lambda s, a, _: 10.0 * (8 <= s < 12 and a[2] == (s - 8) // 2),
    )


def noisy_lamp() -> Definition:
    """The lamp of `lamp.dpomdp`, which the second agent misreads with probability 0.1."""
    states = ["l-start", "r-start", "l-seen", "r-seen", "l-0", "l-1", "r-0", "r-1", "over"]

    def after(s: int, a: tuple[int, ...]) -> Array:
        if s < 2:
            return _one(9, s + 2)
        return _one(9, 4 + 2 * (s - 2) + a[0] if s < 4 else 8)

    def seen(i: int, _: tuple[int, ...], s: int) -> Array:
        if i == 0 and s in (2, 3):
            return _one(3, s - 1)
        if i == 1 and 4 <= s < 8:
            return 0.9 * _one(3, 1 + s % 2) + 0.1 * _one(3, 2 - s % 2)
        return _one(3, 0)

    return Definition(
        agents=2,
        states=states,
        start=np.array([0.5, 0.5, *[0.0] * 7]),
        actions=(("left", "right"),) * 2,
        observations=(("nothing", "was-left", "was-right"),) * 2,
        transition=after,
        observation=seen,
        reward=lambda s, a, _: 10.0 * (4 <= s < 8 and a[1] == (s - 4) // 2),
    )


def quorum() -> Definition:
    """Four agents see a coin rightly with probability 0.7 each; 10 if at least three vote right."""
    states = ["h-0", "t-0", "h-1", "t-1", "over"]

    def seen(_: int, __: tuple[int, ...], s: int) -> Array:
        return np.array([0.7, 0.3] if s == 2 else [0.3, 0.7] if s == 3 else [0.5, 0.5])

    return Definition(
        agents=4,
        states=states,
        start=np.array([0.5, 0.5, 0, 0, 0]),
        actions=(("heads", "tails"),) * 4,
        observations=(("saw-heads", "saw-tails"),) * 4,
        transition=lambda s, a: _one(5, min(s + 2, 4) if s < 4 else 4),
        observation=seen,
        reward=lambda s, a, _: 10.0 * (s in (2, 3) and a.count(s - 2) >= 3),
    )


def lift() -> Definition:
    """Two agents get ready at random, with probability 0.5 a turn, each seeing itself only; lifting
    together when both are ready earns 10, once, and any other lift costs 2."""
    states = ["nn", "ny", "yn", "yy", "done"]

    def after(s: int, a: tuple[int, ...]) -> Array:
        if s == 4 or (s == 3 and a == (1, 1)):
            return _one(5, 4)
        first = _one(2, 1) if s >= 2 else np.array([0.5, 0.5])
        second = _one(2, 1) if s % 2 else np.array([0.5, 0.5])
        return np.append(np.outer(first, second).ravel(), 0.0)

    def reward(s: int, a: tuple[int, ...], _: int) -> float:
        if s == 4:
            return 0.0
        return 10.0 if s == 3 and a == (1, 1) else -2.0 * sum(a)

    def seen(i: int, _: tuple[int, ...], s: int) -> Array:
        return _one(3, 2 if s == 4 else (s // 2 if i == 0 else s % 2))

    return Definition(
        agents=2,
        states=states,
        start=_one(5, 0),
        actions=(("wait", "lift"),) * 2,
        observations=(("unready", "ready", "done"),) * 2,
        transition=after,
        observation=seen,
        reward=reward,
    )


def treasure() -> Definition:
    """One of four boxes holds a treasure, seen by its finder alone; each agent opens a box a turn.
    10 once for opening it, 5 more at the last turn if both open it together."""
    states = [f"{phase}{box}" for phase in "abc" for box in range(4)] + ["over"]

    def after(s: int, a: tuple[int, ...]) -> Array:
        if s == 12:
            return _one(13, 12)
        return _one(13, s + 4 if s < 8 else 12)

    def reward(s: int, a: tuple[int, ...], _: int) -> float:
        if s == 12:
            return 0.0
        right = a.count(s % 4)
        return 10.0 * (right > 0) * (s < 4) + 5.0 * (right == 2) * (4 <= s < 8)

    def seen(i: int, a: tuple[int, ...], s: int) -> Array:
        return _one(2, 1 if s < 12 and a[i] == s % 4 else 0)

    return Definition(
        agents=2,
        states=states,
        start=np.array([0.25] * 4 + [0.0] * 9),
        actions=(("one", "two", "three", "four"),) * 2,
        observations=(("empty", "treasure"),) * 2,
        transition=after,
        observation=seen,
        reward=reward,
    )


@dataclass(frozen=True)
class Entry:
    """A definition, its horizon and the published optimum, if it has one."""

    make: Callable[[], Definition]
    horizon: int
    published: float | None = None


BREADTH = {
    "broadcast": Entry(broadcast, 4, 3.89),
    "fire_fighting": Entry(fire_fighting, 3, -5.736969),
    "grid_meeting": Entry(grid_meeting, 3),
    "recycling": Entry(recycling, 3),
    "parity": Entry(parity, 2),
    "relay": Entry(relay, 4),
    "noisy_lamp": Entry(noisy_lamp, 3),
    "quorum": Entry(quorum, 2),
    "lift": Entry(lift, 4),
    "treasure": Entry(treasure, 2),
}
