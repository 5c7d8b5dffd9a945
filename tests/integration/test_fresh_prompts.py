"""An agent that is called with a new context: its log-probabilities see that context alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tiny import Notes, Scene, behaviour, cast, forced, gap, play

from colearn.contract.types import Observation
from colearn.rollout.shapes import KaryTree
from colearn.training.learners.packed_rows import actor_rows


class Calls(Notes):
    """At odd turns `ada` is called afresh; `ben` goes on as before."""

    def observe(self, state: Scene, agent: str) -> str | Observation | None:
        text = super().observe(state, agent)
        fresh = agent == "ada" and len(state.said) % 2 == 1
        return Observation(f"again: {text}", fresh=True) if fresh and text is not None else text

    def global_info(self, state: Scene) -> str:
        return ""

    def metrics(self, state: Scene) -> Mapping[str, float]:
        return {"answered": float(len(state.said))}


@pytest.mark.parametrize(("window", "budget"), [(None, None), (40, 60)])
def test_sampled_and_teacher_forced_log_probabilities_agree(
    window: int | None, budget: int | None
) -> None:
    team = cast(window=window)
    for tree in play(Calls(horizon=4), team, KaryTree(2)):
        for agent in tree.agents:
            assert gap(forced(team, tree, agent, budget=budget), behaviour(tree, agent)) < 1e-4


def test_a_fresh_prompt_opens_the_chat_anew_and_a_plain_one_goes_on() -> None:
    team = cast()
    (tree, *_) = play(Calls(horizon=2), team)
    opening = team.voices["ada"].chat.open(tree.nodes[1].observations["ada"].text)
    assert tree.nodes[1].observations["ada"].tokens == opening.tokens
    assert tree.history(1, "ada").tokens == opening.tokens
    parts = tree.history(1, "ben").parts
    assert [type(part) is Observation for part in parts] == [True, False, True]


def test_every_context_is_a_row_of_its_own() -> None:
    (tree, *_) = play(Calls(horizon=4), cast())
    # ada: o0 a0 | o1 a1 o2 a2 | o3 a3, ben: one context
    assert [len(row.spans) for row in actor_rows(tree, "ada")] == [1, 2, 1]
    assert [len(row.spans) for row in actor_rows(tree, "ben")] == [4]


def test_what_was_said_before_a_fresh_prompt_moves_nothing_after_it() -> None:
    """Taint: `ada`'s first clue is changed, her later contexts see the same prompts as before."""

    class Fixed(Calls):
        def observe(self, state: Scene, agent: str) -> Any:
            if agent == "ada" and len(state.said) == 1:
                return Observation("the same call", fresh=True)
            return super().observe(state, agent)

    team = cast(("ada",))
    rows = []
    for clue in ("ash", "birch and larch"):
        (tree,) = play(Fixed(agents=1, horizon=2, clues=((clue,),)), team)
        rows.append(actor_rows(tree, "ada")[1])
    assert rows[0].tokens == rows[1].tokens  # the same context and seed: the same action
    assert rows[0].behaviour == pytest.approx(rows[1].behaviour, abs=1e-5)
