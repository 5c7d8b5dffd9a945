"""Counterfactual critic (COMA): Q of the joint action, and Q of joint actions in which one agent's
action is replaced by an alternative."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from colearn.contract import AgentValues, CounterfactualValues, Critic, Tokenize
from colearn.contract.packing import Packer
from colearn.contract.rows import Mark, Row
from colearn.contract.types import Node, Tree

from .centralized import Centralized
from .stream import Texts, by_node, check_length, tokens_of


@dataclass(frozen=True, kw_only=True)
class Counterfactual(Critic):
    """Predicts Q(h_t, a_-i, a_i) from the joint history, with agent i's answer last. In contrast to
    COMA (Foerster et al. 2018), sampled answers replace the sum over actions.

    For each agent i, the stream of `Centralized` branches after the observations. A branch contains
    the other agents' actions, followed by a_i or by an alternative to a_i. Q is read at the end of
    the branch. The branches of an agent share a prefix and need no environment steps. Only executed
    actions have targets, so the value model is trained without the alternatives.

    The value of an action often depends on the observation of the agent that chose it. In this
    stream, a small network has to find the agent's observation, by the agent's name, among the
    observations of all agents. With `paired`, each agent's observation (agent i's included)
    directly precedes the agent's action.

    Wrong when the joint stream exceeds the critic's window. Wrong for large teams with long
    answers: a row contains the joint action once per acting agent, and with `paired` also the
    observations.
    """

    value: Literal["counterfactual"] = field(default="counterfactual", init=False)
    global_info: bool = True
    privileged_info: bool = True
    """Whether the critic's input includes privileged information."""
    paired: bool = False
    """If True, each action comes directly after its agent's observation. If False, all observations
    of a turn come before its actions. An observation that all agents share comes first in both
    cases."""

    read_once = True

    def readers(self, agents: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        return self._joint.readers(agents)

    def row(self, tree: Tree[Any], reader: str, tokenize: Tokenize, *, limit: int) -> Row:
        return self._row(tree, reader, tokenize, limit, alternatives=True)

    def training_row(self, tree: Tree[Any], reader: str, tokenize: Tokenize, *, limit: int) -> Row:
        return self._row(tree, reader, tokenize, limit, alternatives=False)

    def values(
        self, tree: Tree[Any], reader: str, row: Row, numbers: Sequence[float]
    ) -> AgentValues:
        of_agent: dict[str | None, list[tuple[Mark, float]]] = {}
        for mark, number in zip(row.marks, numbers, strict=True):
            of_agent.setdefault(mark.agent, []).append((mark, number))
        return {
            agent: CounterfactualValues(*by_node(tree, of_agent.get(agent, ())))
            for agent in self.readers(tree.agents)[reader]
        }

    @property
    def _joint(self) -> Centralized:
        return Centralized(
            value="q", global_info=self.global_info, privileged_info=self.privileged_info
        )

    def _row(
        self,
        tree: Tree[Any],
        reader: str,
        tokenize: Tokenize,
        limit: int,
        *,
        alternatives: bool,
    ) -> Row:
        packer = Packer()
        piece_of: dict[int | None, int] = {None: -1}
        paired_at: dict[int | None, Mapping[str, str]] = {None: {}}
        for node in tree.nodes:
            executed = before = piece_of[node.parent]
            observed = paired_at[node.parent]
            for agent, action in node.actions.items():
                others = [teammate for teammate in node.actions if teammate != agent]
                texts = list[tuple[str, str]]()
                for actor in (*others, agent):
                    if actor in observed:
                        texts.append((actor, observed[actor]))
                    if actor != agent:
                        texts.append((actor, node.actions[actor].text))
                shared = packer.add(tokens_of(texts, node.turn - 1, tokenize), before)
                answers = [action.text]
                if alternatives:
                    answers += [
                        alternative.text for alternative in node.alternatives.get(agent, ())
                    ]
                for number, text in enumerate(answers):
                    answer = packer.add(_answer(node, agent, text, tokenize), shared)
                    inside = number - 1 if number else None
                    packer.read(node.index, answer, inside, agent)
                    check_length(packer.length(answer), limit)
                    if not number:
                        executed = answer  # the joint action with the last agent's answer last
            joint_texts = () if node.terminal else self._joint.seen(node, reader)
            paired = self._paired(node, joint_texts)
            paired_at[node.index] = paired
            unpaired = [(role, text) for role, text in joint_texts if role not in paired]
            piece_of[node.index] = packer.add(tokens_of(unpaired, node.turn, tokenize), executed)
            check_length(packer.length(piece_of[node.index]), limit)
        return packer.row()

    def _paired(self, node: Node[Any], texts: Texts) -> Mapping[str, str]:
        """Return, for each agent, the observation that precedes the agent's action. The result is
        empty unless `paired`."""
        if not self.paired:
            return {}
        return {role: text for role, text in texts if role in node.observations}


def _answer(node: Node[Any], agent: str, text: str, tokenize: Tokenize) -> list[int]:
    return tokens_of([(agent, text)], node.turn - 1, tokenize)
