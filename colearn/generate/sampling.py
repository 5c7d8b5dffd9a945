"""Drawing tokens: every row with its own settings and its own uniform numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from colearn.contract import Sampling


class Drawing:
    """How R rows turn their logits and uniform numbers into tokens."""

    def __init__(self, settings: Sequence[Sampling], device: torch.device, greedy: bool) -> None:
        hot = [0.0 if greedy else setting.temperature for setting in settings]
        self.greedy = torch.tensor([value == 0 for value in hot], device=device)
        self.temperatures = torch.tensor([value or 1.0 for value in hot], device=device)
        self.top_p = torch.tensor([setting.top_p for setting in settings], device=device)
        self.top_k = torch.tensor([setting.top_k or 0 for setting in settings], device=device)
        self._cuts = bool((self.top_p < 1).any() or (self.top_k > 0).any())
        self._greedy_any, self._greedy_all = bool(self.greedy.any()), bool(self.greedy.all())

    def choose(self, logits: Tensor, rows: Tensor, uniforms: Tensor) -> tuple[Tensor, Tensor]:
        """[A, V] logits of the active `rows` [A], and a uniform number [A] (float64) for each, to
        their tokens [A] and log-probabilities [A].

        The log-probability is the token's under the temperature, before top-k and top-p.
        """
        logits = logits.float() / self.temperatures[rows, None]
        normaliser = logits.logsumexp(-1)
        if self._greedy_all:
            tokens = logits.argmax(-1)
        else:
            kept = self._cut(logits, rows) if self._cuts else logits
            mass = kept.softmax(-1).cumsum(-1, dtype=torch.float64)
            levels = uniforms * mass[:, -1]
            tokens = torch.searchsorted(mass, levels[:, None], right=True).squeeze(-1)
            tokens = tokens.clamp(max=logits.shape[-1] - 1)
            if self._greedy_any:
                tokens = torch.where(self.greedy[rows], logits.argmax(-1), tokens)
        return tokens, logits.gather(-1, tokens[:, None]).squeeze(-1) - normaliser

    def _cut(self, logits: Tensor, rows: Tensor) -> Tensor:
        """Top-k, then the smallest set of tokens whose mass reaches top-p."""
        ordered, order = logits.sort(-1, descending=True)
        rank = torch.arange(logits.shape[-1], device=logits.device)
        top_k = self.top_k[rows, None]
        drop = (top_k > 0) & (rank >= top_k)
        ordered = ordered.masked_fill(drop, -torch.inf)
        probabilities = ordered.softmax(-1)
        above = probabilities.cumsum(-1) - probabilities
        top_p = self.top_p[rows, None]
        drop = drop | ((top_p < 1) & (above >= top_p))  # a rounded sum may pass 1 too early
        return logits.masked_fill(torch.zeros_like(drop).scatter(-1, order, drop), -torch.inf)


class Sampler(Drawing):
    """Draws for R rows at a time by inverting the cumulative distribution.

    A row's uniform numbers come from its own seed, so its draws do not depend on the batch.
    """

    def __init__(
        self, settings: Sequence[Sampling], seeds: Sequence[int], device: torch.device, greedy: bool
    ) -> None:
        super().__init__(settings, device, greedy)
        longest = max(setting.max_tokens for setting in settings)
        uniforms = np.stack(
            [np.random.default_rng(seed).random(longest, dtype=np.float64) for seed in seeds]
        )
        self.uniforms = torch.from_numpy(uniforms).to(device)

    def draw(self, logits: Tensor, rows: Tensor, step: int) -> tuple[Tensor, Tensor]:
        """`choose` with each row's number of this step."""
        return self.choose(logits, rows, self.uniforms[rows, step])
