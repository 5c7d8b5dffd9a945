"""Group baselines: advantages relative to other joint actions of the same joint history."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isnan, nan
from typing import Any

from colearn.contract import Advantage, AgentValues, Episodes, NodeAdvantages
from colearn.contract.anneal import MEAN, faded
from colearn.contract.bounds import Anneal, Clip, Expectile
from colearn.contract.types import Tree

from .expectile import expectile, weighted
from .finish import EPSILON, clipped, deviation, normalized, scored
from .turn_weights import equal_turns


@dataclass(frozen=True, kw_only=True)
class GroupBaseline(Advantage):
    """Base class of advantages that compare sibling joint actions, that is, joint actions after the
    same history h_t. Joint actions after different histories do not share a baseline, even in the
    same turn.

    A joint action without siblings inherits the advantage of the preceding joint action. With the
    rollout shape `Parallel`, only the root has several children, so every action of a chain has the
    chain's advantage G_0 - b(h_0). The advantage G_0 - b(h_0) equals CoLLM's Eq. 1 with gamma^t G_t
    as the return and b(h_0) - (r_0 + ... + gamma^(t-1) r_(t-1)) as the baseline. Given h_t, this
    baseline does not depend on a_t: the rewards before t are constants.

    With the rollout shape `Cross`, the group contains all joint actions of the history. Since
    siblings can share an agent's action, the expected gradient is multiplied by a constant, and its
    direction is unchanged.
    """

    clip: Clip | None = None
    """Bound: each advantage is clipped to [-clip, clip]."""
    normalize: bool = False
    """Whether to normalise each agent's advantages, after clipping, to zero mean and unit standard
    deviation over all actions of the agent in the iteration."""
    equal_turns: bool = False
    """Whether to give equal weight to every turn of a tree. By default, every joint action has
    equal weight (`turn_weights.path_weights`)."""

    minimum_group = 2

    @abstractmethod
    def compare(self, returns: Sequence[float]) -> Sequence[float]:
        """Compute the advantages of the scored joint actions of one history from their returns.
        There is at least one return."""

    def __call__(
        self, episodes: Episodes, values: Sequence[AgentValues] | None = None
    ) -> list[NodeAdvantages]:
        advantages = scored([self._advantages(episode) for episode in episodes])
        advantages = clipped(advantages, self.clip)
        if self.normalize:
            advantages = normalized(advantages)
        return equal_turns(episodes, advantages) if self.equal_turns else advantages

    def _advantages(self, episode: Tree[Any]) -> NodeAdvantages:
        below = episode.below()
        rows: list[dict[str, float]] = [{} for _ in episode.nodes]
        for agent in episode.agents:
            by_node = self._compared(below, episode.returns_of(agent))
            for node in episode.nodes:
                if agent in node.actions:
                    rows[node.index][agent] = by_node[node.index]
        return tuple(rows)

    def _compared(self, below: Sequence[Sequence[int]], returns: Sequence[float]) -> list[float]:
        advantages = [0.0] * len(returns)
        for node, group in enumerate(below):
            counted = [index for index in group if not isnan(returns[index])]
            for index in group:
                advantages[index] = nan
            if len(group) == 1 and counted:
                advantages[group[0]] = advantages[node]
            elif counted:
                compared = self.compare([returns[index] for index in counted])
                for index, advantage in zip(counted, compared, strict=True):
                    advantages[index] = advantage
        return advantages


@dataclass(frozen=True, kw_only=True)
class GroupMean(GroupBaseline):
    """A = G^k minus the mean return of all K siblings, where the mean includes G^k (MAGRPO, CoLLM
    Sec. 6.2).

    Wrong when K is small: the baseline of G^k includes G^k, so A is (K-1)/K times the advantage of
    `LeaveOneOut`.
    """

    normalize_std: bool = False
    """Whether to divide by the siblings' population standard deviation + 1e-6 (GRPO). The MAGRPO
    paper does not divide. With the division, items whose returns hardly vary and items whose
    returns vary widely have equal weight."""

    def compare(self, returns: Sequence[float]) -> Sequence[float]:
        mean = sum(returns) / len(returns)
        scale = deviation(returns) + EPSILON if self.normalize_std else 1.0
        return [(g - mean) / scale for g in returns]


@dataclass(frozen=True, kw_only=True)
class LeaveOneOut(GroupBaseline):
    """A = G^k minus the mean return of the other siblings (RLOO). A is unbiased for every K.

    Wrong when K is 2 and rewards are heavy-tailed: the baseline is the return of a single sibling.
    """

    def compare(self, returns: Sequence[float]) -> Sequence[float]:
        if len(returns) == 1:
            return [0.0]  # none of the siblings is scored
        total, others = sum(returns), len(returns) - 1
        return [g - (total - g) / others for g in returns]


@dataclass(frozen=True, kw_only=True)
class GroupMax(GroupBaseline):
    """A = G^k minus the siblings' maximum return (ReMax with a sampled maximum). A is 0 for the
    best action and negative for the others.

    Wrong when gradients must be unbiased: the maximum depends on the action whose advantage is
    computed. Advantages are never positive, so actions are only discouraged.
    """

    def compare(self, returns: Sequence[float]) -> Sequence[float]:
        best = max(returns)
        return [g - best for g in returns]


@dataclass(frozen=True, kw_only=True)
class GroupExpectile(GroupBaseline):
    """A = w (G^k - e), where e is the tau-expectile of the siblings' returns. The weight w is 2 tau
    for returns above e and 2 (1 - tau) for returns below e.

    With these weights, the advantages of a group sum to 0. In expectation, A gives the gradient of
    the return's expectile instead of the return's mean (Newey and Powell 1987; for value learning,
    Kostrikov et al. 2022). With tau above 1/2, one success of an action outweighs failures that the
    action has with other replies of the other agents, as in hysteretic and lenient learning.

    Wrong when rewards are random: the expectile overestimates actions with lucky outcomes.
    """

    level: Expectile = MEAN
    """tau; 1/2 gives `GroupMean`."""
    anneal_fraction: Anneal | None = None
    """The fraction of the training budget over which `level` anneals to 1/2; None: constant."""

    def at(self, done: float) -> GroupExpectile:
        if self.anneal_fraction is None:
            return self
        level = faded(self.level, self.anneal_fraction, done)
        return replace(self, level=level, anneal_fraction=None)

    def compare(self, returns: Sequence[float]) -> Sequence[float]:
        baseline = expectile(returns, self.level)
        return [weighted(g - baseline, self.level) for g in returns]
