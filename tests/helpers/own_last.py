"""A critic of another package, which reads another kind of value, in one file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from colearn.contract import Critic, Tokenize
from colearn.contract.packing import Packer
from colearn.contract.rows import Row
from colearn.contract.types import Tree
from colearn.methods.advantage.q_value import QValue

TEAM = "team"


@dataclass(frozen=True, kw_only=True)
class OwnLast(Critic):
    """Q_i(h, a_-i, a_i): the joint history, the others' actions, then the agent's own; one value
    for each agent of every joint action, all read by one reader."""

    value: str = field(default="own_last", init=False)
    global_info: bool = field(default=False, init=False)

    def readers(self, agents: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        return {TEAM: tuple(agents)}

    def row(self, tree: Tree[Any], reader: str, tokenize: Tokenize, *, limit: int) -> Row:
        packer = Packer()
        ends: dict[int | None, int] = {None: -1}
        for node in tree.nodes:
            here = ends[node.parent]
            said = {a: tokenize(f"[{a}] {action.text}") for a, action in node.actions.items()}
            for agent in said:
                piece = here
                for speaker in sorted(said, key=lambda one: one == agent):
                    piece = packer.add(said[speaker], piece)
                packer.read(node.index, piece, agent=agent)
            shown = [tokenize(f"[{a}] {seen.text}") for a, seen in node.observations.items()]
            for ids in (*said.values(), *shown):
                here = packer.add(ids, here)
            ends[node.index] = here
        return packer.row()


@dataclass(frozen=True, kw_only=True)
class OwnLastAdvantage(QValue):
    """Q_i less its mean over the joint actions sampled at the same history."""

    reads = "own_last"
