"""Environments as one writes them for TRL's `environment_factory`."""

from __future__ import annotations

import random


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
        return self._pays


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
