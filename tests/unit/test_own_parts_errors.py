"""An algorithm's part of one's own that raises is told in one line: its section, its class, the
reason and the line of its code. A part of the library keeps its traceback."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import pytest
from trees import chain
from updates import new_critics

from colearn.algorithms.magrpo import MAGRPO
from colearn.contract.part_errors import calling_part
from colearn.errors import ConfigError
from colearn.methods.credit.shared_reward import SharedReward
from colearn.methods.critic.centralized import Centralized
from colearn.rollout.shapes import KaryTree
from colearn.rollout.size import joint_actions


class Objects(Centralized):
    """Takes its texts, which are pairs, for objects."""

    def seen(self, node: Any, reader: str) -> Any:
        return [text for text in super().seen(node, reader) if text.role == "global"]  # type: ignore[attr-defined]


class Lines(Centralized):
    """Gives texts without roles."""

    def seen(self, node: Any, reader: str) -> Any:
        return ["ab", "two lines"]


class Observations(Centralized):
    """Gives observations in place of their texts."""

    def seen(self, node: Any, reader: str) -> Any:
        return list(node.shown.items())


@pytest.mark.parametrize(
    ("critic", "told"),
    [
        (Objects(), "Objects raised AttributeError: 'tuple' object has no attribute 'role'"),
        (Lines(), "Lines raised TypeError: a critic reads pairs (role, text) of str, got 'ab'"),
        (Observations(), "Observations raised TypeError: a critic reads pairs (role, text) of str"),
    ],
)
def test_a_critic_of_ones_own_that_raises_is_told_in_one_line(
    critic: Centralized, told: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        new_critics(critic, {"team": None}).rows([chain([1.0])])
    line = str(caught.value)
    assert line.startswith(f"algorithm.critic: {told}") and "\n" not in line
    assert line.endswith("fix it there") and ".py, line " in line


@dataclass(frozen=True)
class Divided(SharedReward):
    def __call__(self, tree: Any) -> Any:
        return 1 / 0


@dataclass(frozen=True, kw_only=True)
class Nobody(KaryTree):
    def samples(self, at: Any) -> Any:
        return {"alice": self.missing}  # type: ignore[attr-defined]


def test_a_credit_of_ones_own_that_raises_is_told_in_one_line() -> None:
    parts = dataclasses.replace(MAGRPO().checked_parts(), credit=Divided())
    with pytest.raises(ConfigError, match=r"^algorithm.credit: Divided raised ZeroDivisionError: "):
        parts.credited([chain([1.0])])


def test_a_rollout_of_ones_own_that_raises_is_told_in_one_line() -> None:
    with pytest.raises(ConfigError, match=r"^algorithm.rollout: Nobody raised AttributeError: "):
        joint_actions(Nobody(2), ("alice",), 2)


def test_an_error_of_the_library_keeps_its_class() -> None:
    with pytest.raises(ZeroDivisionError), calling_part("algorithm.rollout", KaryTree(2)):
        1 / 0  # noqa: B018


def test_an_error_that_names_its_remedy_is_kept() -> None:
    with (
        pytest.raises(ConfigError, match=r"^its own remedy$"),
        calling_part("algorithm.critic", Objects()),
    ):
        raise ConfigError("its own remedy")
