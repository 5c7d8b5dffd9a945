"""What a checkpoint keeps of an algorithm's parts comes back to them, each to its own."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from colearn.contract import Advantage, NetworkKey
from colearn.methods.values.item_means import ItemMeans
from colearn.models.load import Tokenizers
from colearn.rollout.agents.cast.league import League
from colearn.runs.record import Progress
from colearn.training.part_states import restore_parts, settle_cast, store_parts
from colearn.training.team import Team


class Baselines(Advantage):
    """An advantage with running baselines."""

    def __init__(self, **state: float) -> None:
        self.kept: dict[str, float] = state

    def __call__(self, episodes: Any, values: Any = None) -> Any:
        raise NotImplementedError

    def state(self) -> Mapping[str, float]:
        return self.kept

    def restore(self, state: Mapping[str, float]) -> None:
        self.kept = dict(state)


def parts(**updater: Any) -> Any:
    """The parts of a run that has begun, as a run holds them, each without a state."""
    return SimpleNamespace(
        run=SimpleNamespace(
            parts=SimpleNamespace(advantage=Baselines(), credited=lambda trees: list(trees)),
            cast=League(pool=2, every=1),
        ),
        updater=SimpleNamespace(item_means=ItemMeans(), **updater),
    )


def states(begun: Any) -> dict[str, Any]:
    return {
        "baselines": dict(begun.run.parts.advantage.state()),
        "cast": dict(begun.run.cast.state()),
        "item means": dict(begun.updater.item_means.state),
    }


def with_states() -> Any:
    begun = parts()
    begun.run.parts.advantage.kept = {"seat": 0.5}
    begun.run.cast.restore({"taken": 1.0, "iterations": 3.0, "games/0": 2.0, "score/0": 1.0})
    begun.updater.item_means.state = {"team\x1f0": (4.0, 2.0)}
    return begun


def test_a_resumed_run_has_every_state_of_its_parts() -> None:
    before, progress = with_states(), Progress()
    store_parts(progress, before.run, before.updater)
    kept = Progress.model_validate_json(progress.model_dump_json())
    after = parts()
    assert states(after) == states(parts()) and all(states(before).values())
    restore_parts(kept, after.run, after.updater)
    assert states(after) == states(before)


@pytest.mark.parametrize("state", ["baselines", "cast", "item means"])
def test_what_changes_after_a_checkpoint_does_not_change_the_checkpoint(state: str) -> None:
    """An update that is abandoned goes back to the states of the last complete iteration."""
    begun, progress = with_states(), Progress()
    store_parts(progress, begun.run, begun.updater)
    before = states(begun)
    match state:
        case "baselines":
            begun.run.parts.advantage.kept["seat"] = 9.0
        case "cast":
            begun.run.cast.settle([])
        case _:
            begun.updater.item_means.state["team\x1f0"] = (9.0, 9.0)
    assert states(begun) != before
    restore_parts(progress, begun.run, begun.updater)
    assert states(begun) == before


def test_a_run_that_restores_an_empty_state_has_none() -> None:
    begun = with_states()
    restore_parts(Progress(), begun.run, begun.updater)
    assert states(begun) == states(parts())


def test_only_the_past_selves_of_the_slot_that_the_cast_chose_become_the_current_models() -> None:
    """A league of two slots takes a copy after every iteration, in turn."""
    copied = list[int]()
    copies: Any = {
        NetworkKey("past", "model", slot): SimpleNamespace(
            copy_weights=lambda slot=slot: copied.append(slot)
        )
        for slot in (0, 1)
    }
    team = Team(
        run=parts().run,
        tokenizers=Tokenizers(),
        networks={},
        learners={},
        copies=copies,
        players={},
    )
    for _ in range(3):
        settle_cast(team, [])
    assert copied == [0, 1, 0]


def test_a_run_that_does_not_learn_keeps_the_states_that_it_has() -> None:
    begun, progress = with_states(), Progress()
    begun.updater = None
    store_parts(progress, begun.run, begun.updater)
    assert progress.baselines == {"seat": 0.5} and not progress.item_means
    restore_parts(Progress(), begun.run, begun.updater)
    assert begun.run.parts.advantage.state() == {}
