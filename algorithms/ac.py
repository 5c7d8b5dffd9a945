"""Single-agent actor-critic: the paper's fine-tuned single model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ._single import require_single
from .collm_dc import CoLLMDC


@dataclass(frozen=True, kw_only=True)
class AC(CoLLMDC):
    """Single-agent actor-critic: Eq. 2 and 3 with n = 1.

    With one agent, the agent's history is the joint history, so the critic is both decentralised
    and centralised. The value head may share the agent's model (`critic: {share: actor}`).

    Wrong when there is more than one agent: use `collm_dc`, which is the same algorithm for a team.
    """

    def check_team(self, agents: Sequence[str]) -> None:
        require_single(agents, "ac", "collm_dc")
