"""Generalised advantage estimation over tokens, within and across the actions of an agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan, nan
from typing import Annotated, Any

from pydantic import Field

from colearn.contract import Advantage, AgentValues, Episodes, TokenAdvantages, TokenValues
from colearn.contract.bounds import Clip
from colearn.contract.scored import mean_scored
from colearn.contract.types import Node, Tree

from .finish import EPSILON, bootstrapped, deviation

Decay = Annotated[float, Field(ge=0.0, le=1.0, description="1.0 is the paper's")]

Worths = tuple[tuple[float, ...], ...]
"""One tuple for each node. The tuple contains a number for each token of the agent's action that
led to the node."""


@dataclass(frozen=True, kw_only=True)
class TokenGAE(Advantage):
    """A_l = delta_l + gamma lambda A_{l+1} with delta_l = R_l + gamma V_{l+1} - V_l, for the tokens
    l of an agent's actions (MHGPO, Eq. 2). R is the action's credited reward at the action's last
    token and 0 at the other tokens. The last token bootstraps from the first token of the agent's
    next action, with the algorithm's `discount` as gamma. With `discount` 0, every action is
    therefore treated as a separate episode. In a tree, the last token bootstraps from the mean over
    branches.

    The critic's target at a token is A + V. Wrong at `discount` 1 with credit that already includes
    later rewards (`invocation`): later rewards then count twice.
    """

    gamma: Decay = 1.0
    """Discount between the tokens of an action."""
    lam: Decay = 1.0
    """lambda. With 1, the advantage at every token is the return minus V; with 0, the one-token TD
    error."""
    target_lam: Annotated[float, Field(ge=0.0, le=1.0, description="1.0 is usual")] | None = None
    """lambda of the critic's targets; None: `lam`. If `target_lam` is 1, the critic learns from
    whole returns, while the policy's advantages bootstrap from the critic (VC-PPO's decoupled
    GAE)."""
    length_lam: Annotated[float, Field(gt=0.0, description="0.05 is VAPO's")] | None = None
    """alpha of VAPO's length-adaptive GAE: an action of l tokens uses lambda = max(0, 1 - 1 /
    (alpha l)) instead of `lam`. The return at the end of a long action then reaches all tokens of
    the action. Targets use `target_lam` instead if it is set."""
    clip: Clip | None = None
    """Clip each advantage to [-clip, clip]; targets stay unclipped."""
    normalize: bool = False
    """Whether to normalise each agent's advantages, after clipping, to zero mean and unit standard
    deviation over all tokens of the agent in the given episodes."""

    reads = "token"
    by_token = True

    def __call__(
        self, episodes: Episodes, values: Sequence[AgentValues] | None = None
    ) -> list[TokenAdvantages]:
        if values is None:
            raise TypeError(f"{type(self).__name__} needs the critic's values")
        errors = [self._errors(*pair) for pair in zip(episodes, values, strict=True)]
        if self.clip is not None:
            errors = [
                {
                    agent: _mapped(worths, -self.clip, self.clip)
                    for agent, worths in by_agent.items()
                }
                for by_agent in errors
            ]
        if self.normalize:
            errors = _normalized(errors)
        return [
            tuple(
                {
                    agent: worths[node.index]
                    for agent, worths in by_agent.items()
                    if agent in node.actions
                    and len(worths[node.index]) == len(node.actions[agent].tokens)
                }
                for node in episode.nodes
            )
            for episode, by_agent in zip(episodes, errors, strict=True)
        ]

    def targets(self, episodes: Episodes, values: Sequence[AgentValues]) -> list[AgentValues]:
        part = self
        if self.target_lam is not None:
            part = replace(self, lam=self.target_lam, length_lam=None)
        return [
            {
                agent: _targets(
                    episode, _tokens(series), part._worths(episode, agent, _tokens(series))
                )
                for agent, series in by_agent.items()
            }
            for episode, by_agent in zip(episodes, values, strict=True)
        ]

    def _errors(self, episode: Tree[Any], values: AgentValues) -> dict[str, Worths]:
        """Compute the advantage of every token, by agent; unscored actions have no advantages."""
        errors = {}
        for agent, series in values.items():
            token_values = _tokens(series)
            worths = self._worths(episode, agent, token_values)
            errors[agent] = tuple(
                _less(worths[node.index], token_values, node) for node in episode.nodes
            )
        return errors

    def _worths(self, episode: Tree[Any], agent: str, values: TokenValues) -> Worths:
        """Compute the TD(lambda) return of every token. The return is NaN at all tokens of an
        unscored action."""
        rewards = episode.rewards_of(agent)
        below, tails = episode.below(), episode.tails(episode.discount)
        worths: list[tuple[float, ...]] = [()] * len(episode.nodes)
        ahead = [0.0] * len(episode.nodes)  # value of the edge into a node before its first token
        for node in reversed(episode.nodes):
            children, value = below[node.index], values.by_node[node.index]
            action = node.actions.get(agent)
            lam = self._lam(0 if action is None else len(action.tokens))
            future = mean_scored(ahead[c] for c in children)
            if value is not None:
                future = bootstrapped(value, future, lam) if children else value
            elif node.truncated:
                future = tails[node.index]
            last = rewards[node.index] + episode.discount * future
            if action is not None and action.tokens and node.parent is not None:
                inside = values.inside[node.index]
                worths[node.index] = (
                    (nan,) * len(action.tokens) if isnan(last) else self._back(last, inside, lam)
                )
                last = worths[node.index][0]
            ahead[node.index] = last
        return tuple(worths)

    def _lam(self, tokens: int) -> float:
        """Return lambda for an action with this number of tokens."""
        if self.length_lam is None or not tokens:
            return self.lam
        return max(0.0, 1.0 - 1.0 / (self.length_lam * tokens))

    def _back(self, last: float, inside: Sequence[float], lam: float) -> tuple[float, ...]:
        backward = [last]
        for value in reversed(inside):
            backward.append(self.gamma * bootstrapped(value, backward[-1], lam))
        return tuple(reversed(backward))


def _less(worths: tuple[float, ...], values: TokenValues, node: Node[Any]) -> tuple[float, ...]:
    """Return the advantages of the tokens of the action that leads to a node. A token's advantage
    is its return minus the V before the token. The result is empty if the action is not scored."""
    if not worths or isnan(worths[0]):
        return ()
    assert node.parent is not None, "an action leads from somewhere"
    first = values.by_node[node.parent]
    assert first is not None, "a critic gives a value wherever its agent acts"
    return tuple(w - v for w, v in zip(worths, (first, *values.inside[node.index]), strict=True))


def _targets(episode: Tree[Any], values: TokenValues, worths: Worths) -> TokenValues:
    """Compute the targets A + V. If the rollout shape stopped a branch before the episode ended,
    the target at the end of the branch is V itself, so the error is 0."""
    by_node = list(values.by_node)
    for node, children in zip(episode.nodes, episode.below(), strict=True):
        first = [worths[child][0] for child in children if worths[child]]
        if by_node[node.index] is not None and first:
            by_node[node.index] = mean_scored(first)
    return TokenValues(tuple(by_node), tuple(of_node[1:] for of_node in worths))


def _tokens(values: Any) -> TokenValues:
    assert isinstance(values, TokenValues), "the critic is one of tokens"
    return values


def _mapped(worths: Worths, low: float, high: float) -> Worths:
    return tuple(tuple(max(low, min(high, worth)) for worth in of_node) for of_node in worths)


def _normalized(errors: Sequence[Mapping[str, Worths]]) -> list[dict[str, Worths]]:
    """Normalise to zero mean and unit deviation over the tokens of each agent. If an agent has only
    one token, its advantage is unchanged."""
    flat: dict[str, list[float]] = {}
    for by_agent in errors:
        for agent, worths in by_agent.items():
            flat.setdefault(agent, []).extend(worth for of_node in worths for worth in of_node)
    scale = {
        agent: (sum(all_of) / len(all_of), deviation(all_of) + EPSILON)
        for agent, all_of in flat.items()
        if len(all_of) > 1
    }
    return [
        {
            agent: tuple(
                tuple((worth - scale[agent][0]) / scale[agent][1] for worth in of_node)
                if agent in scale
                else of_node
                for of_node in worths
            )
            for agent, worths in by_agent.items()
        }
        for by_agent in errors
    ]
