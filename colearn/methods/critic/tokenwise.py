"""Token-level critics (PPO): one value per agent and token, predicted from the agent's history
before that token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from colearn.contract import AgentValues, Critic, Tokenize, TokenValues
from colearn.contract.packing import Packer, contexts
from colearn.contract.rows import Row
from colearn.contract.types import Tree

from .stream import by_node, check_length


@dataclass(frozen=True, kw_only=True)
class Tokenwise(Critic):
    """Predicts V_i before every token of an action, from the agent's token ids. The value model and
    its agents must therefore share a tokenizer.

    Wrong when actions are long and rewards are sparse: the critic mostly learns to copy one number
    from token to token. Wrong when a role is called often with long prompts: all calls of an
    episode share one row, whose attention mask grows quadratically. `Decentralized` reads one value
    per action.
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
        """Return one row with the agent's history over the whole tree. The agent's contexts are
        packed side by side, and a mark precedes every token of the agent's actions. Actions without
        token ids have no marks."""
        packer = Packer()
        for context in contexts(tree, reader, unanswered=True):
            piece_of: dict[int | None, int] = {None: -1}
            for node in context:
                piece = piece_of[node.parent]
                if reader in node.actions and (tokens := node.actions[reader].tokens):
                    piece = packer.add(tokens, piece)
                    packer.read_within(node.index, piece)
                if reader in node.observations and (tokens := node.observations[reader].tokens):
                    if node.truncated and packer.length(piece) + len(tokens) > limit:
                        continue  # the critic has no value of a history that it cannot read
                    piece = packer.add(tokens, piece)
                    packer.read(node.index, piece)
                piece_of[node.index] = piece
                check_length(packer.length(piece), limit)
        return packer.row()

    def values(
        self, tree: Tree[Any], reader: str, row: Row, numbers: Sequence[float]
    ) -> AgentValues:
        return {reader: TokenValues(*by_node(tree, zip(row.marks, numbers, strict=True)))}

    def numbers(
        self, tree: Tree[Any], reader: str, row: Row, values: AgentValues
    ) -> tuple[float, ...]:
        agent_values = values[reader]
        assert isinstance(agent_values, TokenValues), "values of tokens"
        numbers = []
        for mark in row.marks:
            value = (
                agent_values[mark.node]
                if mark.inside is None
                else agent_values.inside[mark.node][mark.inside]
            )
            assert value is not None, "every value that was read has a target"
            numbers.append(value)
        return tuple(numbers)
