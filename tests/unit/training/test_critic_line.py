"""What a line of critic.jsonl says of two forked trees, by hand."""

from __future__ import annotations

from dataclasses import replace

from credited import credited
from trees import tree

from colearn.methods.critic.decentralized import Decentralized
from colearn.runs.record.fields import CriticLine, CriticTurn
from colearn.training.update.critic_line import critic_line

LOW = replace(tree([(0, 1.0), (0, 3.0)]), item="low")
HIGH = replace(tree([(0, 5.0), (0, 7.0)]), item="high")
"""Two joint actions at the root of each; alice's values there are 2 and 4, her items' means 2 and
6."""


def test_every_return_after_a_fork_is_compared_with_the_value_and_the_items_mean_before_it() -> (
    None
):
    line = critic_line(
        Decentralized(),
        7,
        {0: {"alice": (2.0, None, None)}, 1: {"alice": (4.0, None, None)}},
        credited([LOW, HIGH]),
        [{"alice": {0: 2.0}}, {"alice": {0: 6.0}}],
    )
    turn = CriticTurn(
        turn=0,
        number=4,
        variance=5.0,  # of 1, 3, 5, 7
        error_variance=2.0,  # of -1, 1, 1, 3
        error_square=3.0,
        item_error_variance=1.0,  # of -1, 1, -1, 1
        within=4.0,  # 1 + 1 in each tree
        freedom=2,
    )
    calibration = ((2.0, 1.0, 1), (2.0, 3.0, 1), (4.0, 5.0, 1), (4.0, 7.0, 1))
    assert line == CriticLine(iteration=7, turns=(turn,), calibration=calibration)
