"""Trees as advantages read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from colearn.contract import Credit
from colearn.contract.types import Tree
from colearn.methods.credit.shared_reward import SharedReward


def credited(
    trees: Sequence[Tree[Any]], discount: float = 1.0, credit: Credit | None = None
) -> list[Tree[Any]]:
    """With their rewards; without `credit` the team's reward is everyone's."""
    credit = credit or SharedReward()
    return [tree.credited(credit(tree), discount=discount) for tree in trees]
