"""PPO's critics: each agent's value of its own history, token by token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from colearn.contract import AgentValues, Critic, Tokenize, TokenValues
from colearn.contract.rows import Mark, Row
from colearn.packing.contexts import contexts
from colearn.packing.packer import Packer
from colearn.types import Tree

from .stream import check_length


@dataclass(frozen=True, kw_only=True)
class Tokenwise(Critic):
    """V_i before every token of an action, of the very ids that the agent has read and said: the
    value model and the agents it values must share a tokenizer.

    Wrong when actions are long and rewards few: most of what it learns is to copy one number from
    token to token. Wrong when a role is called often with long prompts: all of its calls in an
    episode stand in one row, whose mask grows with the square. Use `Decentralized`, which reads one
    value an action.
    """

    value: Literal["token"] = field(default="token", init=False)
    global_info: bool = field(default=False, init=False)

    reads_ids = True

    @property
    def of_state(self) -> bool:
        return True

    def readers(self, agents: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        return {agent: (agent,) for agent in agents}

    def row(self, tree: Tree[Any], reader: str, tokenize: Tokenize, *, limit: int) -> Row:
        """The agent's history over the whole tree, all of its contexts side by side, with a mark
        before every token of its actions. Without a mark where its texts have no tokens."""
        packer, marks = Packer(), []
        for context in contexts(tree, reader):
            piece_of: dict[int | None, int] = {None: -1}
            for part in context:
                here = piece_of[part.parent]
                if part.action is not None and part.action.tokens:
                    here = packer.add(part.action.tokens, here)
                    start = packer.pieces[here].start
                    marks += [
                        Mark(part.node, start + k, inside=k)
                        for k in range(len(part.action.tokens) - 1)
                    ]
                if part.observation is not None and part.observation.tokens:
                    here = packer.add(part.observation.tokens, here)
                    marks.append(Mark(part.node, packer.last_index(here)))
                piece_of[part.node] = here
                check_length(packer.position_after(here), limit)
        return Row(tokens=tuple(packer.tokens), pieces=tuple(packer.pieces), marks=tuple(marks))

    def values(
        self, tree: Tree[Any], reader: str, row: Row, numbers: Sequence[float]
    ) -> AgentValues:
        seen: list[float | None] = [None] * len(tree.nodes)
        inside: list[list[float]] = [[] for _ in tree.nodes]
        for mark, number in zip(row.marks, numbers, strict=True):
            if mark.inside is None:
                seen[mark.node] = number
            else:
                inside[mark.node].append(number)
        return {reader: TokenValues(tuple(seen), tuple(map(tuple, inside)))}

    def numbers(
        self, tree: Tree[Any], reader: str, row: Row, values: AgentValues
    ) -> tuple[float, ...]:
        own = values[reader]
        assert isinstance(own, TokenValues), "values of tokens"
        found = []
        for mark in row.marks:
            value = own[mark.node] if mark.inside is None else own.inside[mark.node][mark.inside]
            assert value is not None, "a target stands wherever a value was read"
            found.append(value)
        return tuple(found)
