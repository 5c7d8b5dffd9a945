"""Contents of rows, to the token; rows with equal passages run once and count separately."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from tiny import tiny_model
from trees import chain, tree

from colearn.contract.rows import ActionTokens, Mark, Piece, Row
from colearn.contract.types import Action, Observation
from colearn.errors import ConfigError
from colearn.methods.critic.centralized import TEAM, Centralized
from colearn.methods.critic.tokenwise import Tokenwise
from colearn.models.base import Base
from colearn.models.network import Network, ValueHead
from colearn.training.learners.batch import make_batch, micro_batches
from colearn.training.learners.packed_rows import actor_rows

CPU = torch.device("cpu")


def row(*tokens, action=2, temperature=1.0, advantage=0.0):
    """All tokens but the last `action` are an observation; V is read at its end."""
    seen = len(tokens) - action
    pieces = (Piece(0, seen, -1, 0, 0), Piece(seen, len(tokens), 0, seen, 0))
    return Row(
        tokens=tokens,
        pieces=pieces,
        spans=(ActionTokens(1, seen, len(tokens), seen - 1),),
        marks=(Mark(0, seen - 1),),
        temperature=temperature,
        advantages=(advantage,),
    )


ROWS = [
    row(10, 11, 12, 13, 14, advantage=1.0),
    row(20, 21, 22, 23, advantage=2.0),
    row(10, 11, 12, 13, 14, advantage=3.0),
    row(10, 11, 12, 13, 14, action=1, advantage=4.0),
    row(10, 11, 12, 13, 14, temperature=0.5, advantage=5.0),
]


def test_a_batch_holds_rows_that_are_read_alike_once():
    batch = make_batch(ROWS, CPU)
    assert batch.input_ids.shape == (4, 5), "another action or temperature is another reading"
    assert batch.actions == 5
    assert batch.action_of.tolist() == [0, 0, 1, 1, 2, 2, 3, 4, 4]
    assert batch.per_action("advantages").tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]


def test_all_of_a_batch_lies_on_the_device_asked_for():
    forked = replace(ROWS[0], pieces=(Piece(0, 3, -1, 0, 0), Piece(3, 5, -1, 0, 0)))
    batch = make_batch([forked, *ROWS], torch.device("meta"))
    tensors = {
        key: value
        for key in batch.__dataclass_fields__
        if isinstance(value := getattr(batch, key), torch.Tensor)
    }
    assert {key: tensor.device.type for key, tensor in tensors.items()} == dict.fromkeys(
        tensors, "meta"
    )
    assert {"input_ids", "position_ids", "temperatures", "token_places"} <= tensors.keys()


def test_every_row_has_the_outputs_it_has_alone():
    base = Base(tiny_model("llama", dtype=torch.float64))
    network = Network(base, head=ValueHead(32))
    with torch.no_grad():
        network.head.linear.weight.fill_(0.1)
        together = network(make_batch(ROWS, CPU), entropy=True)
        alone = [network(make_batch([one], CPU), entropy=True) for one in ROWS]
    for name in ("logprobs", "entropy", "values"):
        expected = torch.cat([getattr(one, name) for one in alone])
        assert getattr(together, name).tolist() == pytest.approx(expected.tolist(), abs=1e-6)


def test_a_row_whose_action_is_context_is_another_reading():
    """Left without an advantage, an action stays in the tokens and is no longer a span."""
    context = replace(ROWS[0], spans=(), advantages=())
    batch = make_batch([ROWS[0], context], CPU)
    assert batch.input_ids.shape[0] == 2
    assert batch.action_of.tolist() == [0, 0] and batch.token_places is None


def test_copies_do_not_fill_a_micro_batch():
    copies = [replace(ROWS[0], tree=n) for n in range(100)]
    (micro,) = micro_batches([*copies, ROWS[1]], token_budget=10)
    assert [number for number, _ in micro] == list(range(101))
    assert len(list(micro_batches([*copies, ROWS[1]], token_budget=9))) == 2


def test_a_window_begins_with_the_first_position_that_it_holds():
    """Two tokens, then two that have forgotten the first; the last place is padding."""
    pieces = (Piece(0, 2, -1, 0, 0), Piece(2, 4, 0, 2, 1))
    batch = make_batch([Row(tokens=(7, 8, 9, 10), pieces=pieces), row(1, 2, 3, 4, 5)], CPU)
    assert batch.mask.dense(CPU)[0, 0].long().tolist() == [
        [1, 0, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [0, 1, 1, 0, 0],
        [0, 1, 1, 1, 0],
        [0, 0, 0, 0, 1],
    ]


# --- from a tree to rows -------------------------------------------------------------------------


def worded(made, said, shown):
    """The tree of one agent, with these tokens said on the way to each node and shown there."""
    nodes = [
        replace(
            node,
            actions={a: Action("", said[n], (-1.0,) * len(said[n])) for a in node.actions},
            observations={a: Observation("", shown[n]) for a in node.observations},
        )
        for n, node in enumerate(made.nodes)
    ]
    return replace(made, nodes=tuple(nodes))


TALK = worded(
    chain([0.0, 1.0], agents=("ada",)), {0: (), 1: (5, 6, 7), 2: (8,)}, {0: (1, 2), 1: (3,), 2: ()}
)


def test_an_action_is_predicted_from_the_last_token_before_it():
    (row,) = actor_rows(TALK, "ada", value="observation")
    assert row.tokens == (1, 2, 5, 6, 7, 3, 8)
    assert row.spans == (ActionTokens(1, 2, 5, 1), ActionTokens(2, 6, 7, 5))
    assert row.marks == (Mark(0, 1), Mark(1, 5))
    (row,) = actor_rows(TALK, "ada", value="action")
    assert row.marks == (Mark(1, 4), Mark(2, 6))


def test_where_nothing_was_shown_an_action_is_predicted_from_the_action_before_it():
    silent = worded(
        chain([0.0, 1.0], agents=("ada",)), {0: (), 1: (5, 6), 2: (8,)}, {0: (1,), 1: (), 2: ()}
    )
    (row,) = actor_rows(silent, "ada", value="observation")
    assert row.tokens == (1, 5, 6, 8)
    assert row.spans == (ActionTokens(1, 1, 3, 0), ActionTokens(2, 3, 4, 2))
    assert row.marks == (Mark(0, 0), Mark(1, 2))


def forked(shown, *lengths):
    """A prompt of so many tokens, and answers of these lengths."""
    made = tree([(0, 0.0) for _ in lengths], agents=("ada",))
    said = {0: (), **{n: (n,) * length for n, length in enumerate(lengths, start=1)}}
    return worded(made, said, {0: (9,) * shown})


@pytest.mark.parametrize(
    ("shown", "lengths", "budget", "rows"),
    [
        (3, (3, 3), None, [2]),
        (3, (3, 3), 9, [2]),  # 9 tokens together
        (3, (3, 3), 8, [1, 1]),
        (3, (3, 3, 3), 9, [2, 1]),  # as many as fit, side by side
        (2, (3, 3), 100, [1, 1]),  # 10 apart are 1.25 times the 8 together: no mask is worth that
    ],
)
def test_branches_share_a_row_where_they_fit_and_share_enough(shown, lengths, budget, rows):
    cut = actor_rows(forked(shown, *lengths), "ada", budget=budget)
    assert [len(one.spans) for one in cut] == rows


def test_a_row_of_token_values_marks_the_place_before_every_token_of_an_action():
    row = Tokenwise().row(TALK, "ada", list, limit=7)
    assert row.tokens == (1, 2, 5, 6, 7, 3, 8)
    before_first = [Mark(0, 1), Mark(1, 5)]
    inside = [Mark(1, 2, inside=0), Mark(1, 3, inside=1)]
    assert row.marks == (before_first[0], *inside, before_first[1])
    assert row.plain


def test_a_row_of_streams_marks_the_last_word_before_every_joint_action():
    def words(text):
        return [ord(letter) for letter in text.split("\n")[-1] if letter.isdigit()]

    row = Centralized().row(chain([0.0, 1.0]), TEAM, words, limit=6)
    # both see 0, both make 1, both see 1; what they make last bears no value
    assert row.tokens == tuple(map(ord, "001111"))
    assert row.marks == (Mark(0, 1), Mark(1, 5))
    assert row.plain


@pytest.mark.parametrize(
    ("critic", "reader", "tokens"), [(Tokenwise(), "ada", 7), (Centralized(), TEAM, 36)]
)
def test_a_stream_that_a_critic_cannot_read_as_a_whole_is_one_line(critic, reader, tokens):
    def words(text):
        return [0] * 12

    line = rf"^critic\.max_length: a stream of {tokens} tokens exceeds {tokens - 1}; raise it"
    with pytest.raises(ConfigError, match=line):
        critic.row(TALK, reader, words, limit=tokens - 1)
    assert critic.row(TALK, reader, words, limit=tokens).marks


def test_a_head_on_an_actor_reads_states_or_actions_and_never_tokens():
    read = [critic.on_actor for critic in (Centralized(), Centralized(value="q"), Tokenwise())]
    assert read == ["observation", "action", None]


def numbers(rows, budget):
    """The rows of each micro-batch, by their numbers."""
    return [[number for number, _ in micro] for micro in micro_batches(rows, budget)]


def test_rows_are_cut_by_the_budget_from_the_longest_and_what_is_read_alike_stays_together():
    # four distinct rows, of five tokens at most; the first and the third are one reading
    assert numbers(ROWS, 20) == [[0, 2, 3, 4, 1]]
    assert numbers(ROWS, 19) == [[0, 2, 3], [4, 1]]  # two passes, of two distinct rows each
    assert numbers(ROWS, 10) == [[0, 2, 3], [4, 1]]
    assert numbers(ROWS, 1) == [[0, 2], [3], [4], [1]]


def test_the_last_micro_batch_is_not_a_remainder():
    rows = [row(number, *range(3)) for number in range(8)]
    assert list(map(len, numbers(rows, 28))) == [4, 4], "a budget for seven rows of four tokens"
    assert list(map(len, numbers(rows, 12))) == [3, 3, 2]


def test_an_even_cut_keeps_the_budget_and_takes_no_more_micro_batches():
    lengths = [9, 6, 6, 3, 3, 3, 2]
    rows = [row(*[number] * length) for number, length in enumerate(lengths)]
    # by the budget alone 9 + 6, 6 + 3 + 3, 3 + 2
    assert numbers(rows, 18) == [[0, 1], [2, 3, 4], [5, 6]]
