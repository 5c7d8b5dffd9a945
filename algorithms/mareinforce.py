"""MA-REINFORCE: Monte-Carlo returns without a baseline (Peshkin et al. 2001)."""

from __future__ import annotations

from dataclasses import dataclass

from colearn.advantage.raw_return import RawReturn

from ._group import GroupAlgorithm


@dataclass(frozen=True, kw_only=True)
class MAREINFORCE(GroupAlgorithm):
    """Eq. 1 with b = 0; `samples: 1` is the original, more only average (Proposition 4.1).

    Wrong when rewards have a mean far from 0: use any of the baselines, which cost nothing more.
    """

    def baseline(self) -> RawReturn:
        return RawReturn(
            discount=self.discount, clip=self.advantage_clip, equal_turns=self.equal_turns
        )
