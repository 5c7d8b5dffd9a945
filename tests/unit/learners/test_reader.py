"""The values of an agent, read from rows, by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from trees import tree
from updates import new_critics

from colearn.contract.rows import Mark, Row
from colearn.methods.critic.decentralized import Decentralized


def test_the_values_of_an_agent_are_gathered_from_all_rows_of_its_tree() -> None:
    """Two branches in rows of their own, the root in the first."""
    values = iter([(5.0, 6.0), (7.0,)])
    learner: Any = SimpleNamespace(
        evaluate=lambda rows: [SimpleNamespace(values=torch.tensor(next(values))) for _ in rows]
    )
    critics = new_critics(Decentralized(), {"ada": learner})
    forked = tree([(0, 0.0), (0, 0.0), (1, 0.0), (2, 0.0)], agents=("ada",))
    rows = [
        Row(tokens=(1, 2), pieces=(), marks=marks, tree=0, reader="ada")
        for marks in ((Mark(0, 0), Mark(1, 1)), (Mark(2, 1),))
    ]
    (read,) = critics.read([forked], {"ada": {0: rows}}, [0]).values()
    assert read == {"ada": (5.0, 6.0, 7.0, None, None)}
