"""GRPO: group-relative policy optimisation of a single agent (Shao et al. 2024)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ._single import require_single
from .magrpo import MAGRPO


@dataclass(frozen=True, kw_only=True)
class GRPO(MAGRPO):
    """`magrpo` on a team of one: K chains per item, A = (G - mean) / std for all tokens of a
    chain, clipped token ratios. Long responses are not down-weighted (as in Dr. GRPO).

    Wrong when there are several agents: all of them get the chain's advantage, and the tree of
    `magrpo` compares later turns with siblings of their own.
    """

    shape: Literal["tree", "cross", "parallel"] = "parallel"
    normalize_std: bool = True
    ratio: Literal["sequence", "token"] = "token"
    ratio_clip: float | None = 0.2

    def check_team(self, agents: Sequence[str]) -> None:
        require_single(agents, "grpo", "magrpo")
