"""An algorithm's part of one's own that raises is told in one line: its section, its class, the
reason and the line of its code. A part of the library keeps its traceback."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from tiny import Notes, cast, play
from trees import chain
from updates import new_critics, updater_of

from colearn.algorithms.collm_cc import CoLLMCC
from colearn.algorithms.magrpo import MAGRPO
from colearn.contract import ValueLoss
from colearn.contract.part_errors import calling_part
from colearn.errors import ConfigError
from colearn.methods.advantage.gae import GAE
from colearn.methods.credit.shared_reward import SharedReward
from colearn.methods.critic.centralized import Centralized
from colearn.methods.loss.policy_gradient import PolicyGradient
from colearn.rollout.shapes import KaryTree
from colearn.rollout.size import joint_actions
from colearn.runs.record import Progress
from colearn.training.callbacks import OwnMetric
from colearn.training.part_states import restore_parts, store_parts


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


# --- in an update, in a rollout, in a callback ----------------------------------------------------


def raising(base: type, method: str) -> type:
    """A subclass whose `method` raises."""

    def raises(self: object, *args: object, **settings: object) -> None:
        raise LookupError("no such key")

    return type("Mine", (base,), {method: raises, "__module__": __name__})


def updates(**parts: Any) -> None:
    """One update of a separate critic, whose targets follow the current values unless told else."""
    team = cast(shared=False)
    algorithm = CoLLMCC(**{"value_loss": ValueLoss(), "advantage": GAE(), **parts})
    updater_of(algorithm, team).update([chain([1.0, 2.0], agents=tuple(team.voices))], 0)


FROZEN = {"value_loss": ValueLoss(frozen_targets=True)}


@pytest.mark.parametrize(
    ("field", "base", "method", "others"),
    [
        ("critic", Centralized, "row", {}),
        ("critic", Centralized, "values", {}),
        ("critic", Centralized, "values", FROZEN),
        ("critic", Centralized, "numbers", {}),
        ("critic", Centralized, "numbers", FROZEN),
        ("advantage", GAE, "targets", {}),
        ("advantage", GAE, "targets", FROZEN),
        ("advantage", GAE, "__call__", {}),
        ("advantage", GAE, "weight_group", {}),
        ("advantage", GAE, "answer_groups", {}),
        ("advantage", GAE, "at", {}),
        ("loss", PolicyGradient, "__call__", {}),
        ("loss", PolicyGradient, "at", {}),
    ],
)
def test_every_method_of_a_part_that_raises_in_an_update_is_named(
    field: str, base: type, method: str, others: dict[str, Any]
) -> None:
    with pytest.raises(ConfigError) as caught:
        updates(**{field: raising(base, method)(), **others})
    line = str(caught.value)
    assert line.startswith(f"algorithm.{field}: Mine raised LookupError: no such key ({__file__}, ")


def test_a_critics_readers_that_raise_are_named_before_the_run() -> None:
    with pytest.raises(ConfigError, match=r"^algorithm\.critic: Mine raised LookupError: "):
        CoLLMCC(critic=raising(Centralized, "readers")()).check_task(Notes())


@pytest.mark.parametrize("method", ["state", "restore"])
def test_a_baselines_state_that_raises_is_named(method: str) -> None:
    run: Any = SimpleNamespace(
        parts=SimpleNamespace(advantage=raising(GAE, method)()),
        cast=SimpleNamespace(state=dict, restore=lambda state: None),
    )
    with pytest.raises(ConfigError, match=r"^algorithm\.advantage: Mine raised LookupError: "):
        store_parts(Progress(), run, None)
        restore_parts(Progress(), run, None)


@pytest.mark.parametrize("method", ["trees", "samples", "next_round"])
def test_every_method_of_a_rollout_that_raises_is_named(method: str) -> None:
    with pytest.raises(ConfigError, match=r"^algorithm\.rollout: Mine raised LookupError: "):
        play(Notes(items=1), cast(shared=False), raising(KaryTree, method)(2))


def test_a_metric_of_ones_own_that_raises_names_its_function() -> None:
    def words(tree: Any) -> float:
        return 1 / 0

    event: Any = SimpleNamespace(metrics={}, trees=[chain([1.0])])
    with pytest.raises(ConfigError) as caught:
        OwnMetric(function=words).on_evaluate(event)
    told = "run.callbacks: own_metric: words raised ZeroDivisionError: division by zero ("
    assert str(caught.value).startswith(told) and ".py, line " in str(caught.value)
