"""How many tokens an agent's context has, and whose leaves no room for an answer, by hand."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from colearn.contract.types import Action, Node, Observation
from colearn.errors import ConfigError
from colearn.rollout.context_limit import context_tokens, overlong


def shown(tokens: int, *, fresh: bool = False) -> Observation:
    return Observation("", (1,) * tokens, fresh=fresh)


def answered(tokens: int) -> Action:
    return Action("", (2,) * tokens, (-1.0,) * tokens)


def two_turns(*, fresh: bool = False, **actions: int) -> list[Node[Any]]:
    """The root shows both agents 3 tokens; after the `actions`, by their lengths, ada is shown 4
    more."""
    usual: dict[str, Any] = {"state": None}
    root = Node(
        index=0, parent=None, path=(), observations={"ada": shown(3), "ben": shown(3)}, **usual
    )
    after = Node(
        index=1,
        parent=0,
        path=(0,),
        observations={"ada": shown(4, fresh=fresh)},
        actions={agent: answered(tokens) for agent, tokens in actions.items()},
        **usual,
    )
    return [root, after]


@pytest.mark.parametrize(
    ("nodes", "tokens"),
    [
        (two_turns(ada=2, ben=5), 3 + 2 + 4),
        (two_turns(ben=5), 3 + 4),
        (two_turns(ada=2, ben=5, fresh=True), 4),
    ],
    ids=["acted", "did not act", "fresh"],
)
def test_a_context_is_what_an_agent_was_shown_and_said_since_it_began_anew(
    nodes: Sequence[Node[Any]], tokens: int
) -> None:
    assert context_tokens(nodes, nodes[-1], "ada") == tokens


def of_ben(positions: int, *, truncates: bool = True) -> str | None:
    """Who has no room, where ada's model has no limit and ben is shown 2 tokens after 3 + 5."""
    root, after = two_turns(ada=2, ben=5)
    players: Any = {
        "ada": SimpleNamespace(positions=None),
        "ben": SimpleNamespace(positions=positions, truncates=truncates),
    }
    return overlong([root], after, {"ada": shown(4), "ben": shown(2)}, players)


def test_a_history_as_long_as_its_model_reads_leaves_no_room_for_an_answer() -> None:
    assert (of_ben(10), of_ben(11)) == ("ben", None)


def test_an_episode_that_may_not_end_early_is_an_error_with_both_lengths() -> None:
    with pytest.raises(ConfigError, match=r"^agents\.ben\.overflow: a history of 10 tokens .* 10;"):
        of_ben(10, truncates=False)
