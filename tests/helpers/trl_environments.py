"""Environments as one writes them for TRL's `environment_factory`."""

from __future__ import annotations

import math
import random
import sys
import threading
import time


class Buttons:
    """A lamp of a colour that the data name, or that is drawn; a button of each colour."""

    def reset(self, colour: str | None = None, **row) -> str:
        self._colour = colour or random.choice(("red", "blue"))
        self._pressed: list[str] = []
        return f"the lamp is {self._colour}"

    def press(self, colour: str) -> str:
        """
        Press a button.

        Args:
            colour: The colour of the button.

        Returns:
            What the button says.
        """
        if colour not in ("red", "blue"):
            raise ValueError(f"no {colour} button")
        self._pressed.append(colour)
        return f"click {random.random():.6f}"

    async def look(self) -> str:
        """
        Look at the lamp.

        Returns:
            Its colour.
        """
        return self._colour

    def get_reward(self) -> float:
        return float(self._pressed == [self._colour])


class Silent:
    def reset(self, **row) -> None:
        self._waits = 0

    def wait(self, seconds: int) -> int:
        """
        Wait.

        Args:
            seconds: How long.
        """
        self._waits += seconds
        return self._waits


class Odd:
    """Opens with what the data say and pays what they say; has a method of its own use."""

    def reset(self, opens=None, pays=None, **row):
        self._pays = pays
        return opens

    def _cheat(self) -> None:
        """
        Raise the reward.
        """
        self._pays = 9.0

    def get_reward(self):
        return math.inf if self._pays == "inf" else self._pays


class Undescribed:
    def reset(self) -> None:
        """Nothing."""

    def press(self, colour):
        return colour


class NoReset:
    def press(self) -> str:
        """Press."""
        return ""


SEEN = []


def waited(environments, completions, **columns):
    SEEN.append({"completions": completions, **columns})
    return [float(environment._waits) for environment in environments]


def paid(prompts, level, **columns):
    """The row's level; none for level 0."""
    SEEN.append({"prompts": prompts, **columns})
    return [number or None for number in level]


OPEN: list[object] = []
"""Environments that were made and not closed."""


class Counted:
    """Counts that it is open; its tools do what environments should not."""

    def __init__(self) -> None:
        OPEN.append(self)

    def close(self) -> None:
        """Ends it."""
        OPEN.remove(self)

    def step(self, action: int) -> int:
        """
        A framework's method.

        Args:
            action: A number.
        """
        return action

    def reset(self, fails=None, **row) -> None:
        self._fails, self._thread = fails, threading.get_ident()
        if fails == "reset":
            raise ValueError("no board")

    def add(self, number: int) -> int:
        """
        Adds one.

        Args:
            number: A number.
        """
        return number + 1

    def rest(self) -> str:
        """
        Sleeps.
        """
        time.sleep(3600)
        return "late"

    def leave(self) -> str:
        """
        Exits.
        """
        sys.exit(3)

    def interrupt(self) -> str:
        """
        Interrupts.
        """
        raise KeyboardInterrupt

    def same_thread(self) -> bool:
        """
        Says whether it runs where it was reset, as SQLite needs.
        """
        return threading.get_ident() == self._thread

    def get_reward(self) -> float:
        if self._fails == "get_reward":
            raise ValueError("no score")
        return 1.0


class BadClose(Counted):
    def close(self) -> None:
        """Fails."""
        super().close()
        raise OSError("gone")
