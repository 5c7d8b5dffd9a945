"""MT-GRPO's advantage: rewards normalised turn by turn, then summed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from colearn.advantage.finish import EPSILON, deviation
from colearn.contract import Advantage, AgentValues, Episodes, NodeAdvantages

from .roles import by_node, group_of, grouped_by, of_actions, own_turn, summed, turn_rewards


@dataclass(frozen=True, kw_only=True)
class TurnByTurn(Advantage):
    """r~_k = (r_k - mean_k) / std_k over the players of a role at their k-th turn; the advantage is
    the sum of r~ from k on (Zeng et al. 2025, as MARSHAL's appendix F compares it).

    Wrong when episodes differ in length: few are left at late turns, and their statistics are
    noise. A turn that only one trajectory reached has no deviation; its r~ is 0.
    """

    by_role: bool = True
    """False: one group for all players of a game."""
    accumulate: bool = True
    """False: r~_k alone, without what follows."""

    def __call__(
        self, episodes: Episodes, values: Sequence[AgentValues] | None = None
    ) -> list[NodeAdvantages]:
        rewards = of_actions(episodes, turn_rewards)
        turn = {
            at: (
                group_of(episodes[at[0]], at[2], by_role=self.by_role),
                own_turn(episodes[at[0]], at[2], at[1]),
            )
            for at in rewards
        }
        groups = grouped_by(rewards, turn)
        mean = {key: sum(found) / len(found) for key, found in groups.items()}
        spread = {key: deviation(found) + EPSILON for key, found in groups.items()}
        local = {at: (r - mean[turn[at]]) / spread[turn[at]] for at, r in rewards.items()}
        return by_node(episodes, summed(episodes, local) if self.accumulate else local)
