"""Single-agent actor-critic: the paper's fine-tuned single model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ._single import require_single
from .collm_dc import CoLLMDC


@dataclass(frozen=True, kw_only=True)
class AC(CoLLMDC):
    """Eq. 2 and 3 with n = 1, where a critic of the own history is a critic of the joint one.
    The value head may sit on the agent's own model (`critic: {share: actor}`).

    Wrong when there is more than one agent: it is then `collm_dc` under another name.
    """

    def check_team(self, agents: Sequence[str]) -> None:
        require_single(agents, "ac", "collm_dc")
