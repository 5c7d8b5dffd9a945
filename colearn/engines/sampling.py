"""Samples tokens, with separate settings and a separate uniform random number for each row."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

import torch
from torch import Tensor

from colearn.contract import Sampling
from colearn.errors import ConfigError

BLOCK = 512
"""Number of probabilities per block of a row's cumulative sum."""
COLDEST = 1e-30
"""Minimum positive temperature. Dividing logits by a smaller number overflows float32."""


class TokenDrawing:
    """Maps logits and uniform numbers to tokens by inverting the cumulative distribution. The
    sample of a row then does not depend on the other rows of the batch."""

    def __init__(self, settings: Sequence[Sampling], device: torch.device) -> None:
        self.alike = len(set(settings)) == 1
        """Whether all rows have the same settings. If so, this object works for any number of
        rows."""
        if self.alike:
            settings = settings[:1]
        hot = [setting.temperature and max(setting.temperature, COLDEST) for setting in settings]
        self._temperatures = torch.tensor([value or 1.0 for value in hot], device=device)[:, None]
        self._scales = any(value not in (0.0, 1.0) for value in hot)
        self._cuts = any(s.top_p < 1 or s.top_k for s in settings)
        if self._cuts:
            self._top_p = torch.tensor([s.top_p for s in settings], device=device)[:, None]
            self._top_k = torch.tensor([s.top_k or 0 for s in settings], device=device)[:, None]
        self._greedy_any = any(value == 0 for value in hot)
        self._greedy_all = all(value == 0 for value in hot)
        if self._greedy_any:
            self._greedy = torch.tensor([value == 0 for value in hot], device=device)

    def scaled(self, logits: Tensor) -> Tensor:
        """Divide logits [R, V] by each row's temperature; temperature 0 is treated as 1."""
        return logits.float() / self._temperatures if self._scales else logits.float()

    def choose(self, logits: Tensor, uniforms: Tensor) -> tuple[Tensor, Tensor]:
        """Sample tokens [R], with their log-probabilities [R], from logits [R, V] and float64
        uniform numbers [R].

        Log-probabilities include the temperature, but not top-k and top-p.
        """
        logits = self.scaled(logits)
        normaliser = logits.logsumexp(-1)
        if self._greedy_all:
            tokens = logits.argmax(-1)
        else:
            kept_logits = self.cut(logits) if self._cuts else logits
            tokens = inverse(kept_logits.softmax(-1), uniforms)
            if self._greedy_any:
                tokens = torch.where(self._greedy, logits.argmax(-1), tokens)
        return tokens, logits.gather(-1, tokens[:, None]).squeeze(-1) - normaliser

    def cut(self, logits: Tensor) -> Tensor:
        """Truncate logits by top-k, then by top-p (the smallest set of tokens whose total
        probability reaches top-p). All other tokens get -inf."""
        ordered, order = logits.sort(-1, descending=True)
        rank = torch.arange(logits.shape[-1], device=logits.device)
        drop = (self._top_k > 0) & (rank >= self._top_k)
        ordered = ordered.masked_fill(drop, -torch.inf)
        probabilities = ordered.softmax(-1)
        above = probabilities.cumsum(-1) - probabilities
        # a rounded sum may pass 1 too early; the first token stays, though a tiny top_p rounds to 0
        drop = drop | ((self._top_p < 1) & (above >= self._top_p) & (rank > 0))
        return logits.masked_fill(torch.zeros_like(drop).scatter(-1, order, drop), -torch.inf)


def inverse(probabilities: Tensor, uniforms: Tensor) -> Tensor:
    """Return, for each row of `probabilities` [R, V], the first index at which the cumulative sum
    exceeds the row's uniform number [R] times the row's total. Sums are float64.

    For a large vocabulary, the cumulative sum runs first over the totals of blocks, which are
    computed in parallel. A second cumulative sum then runs over the probabilities in the selected
    block only.
    """
    size = probabilities.shape[-1]
    if size <= 2 * BLOCK:
        return _first_above(probabilities.cumsum(-1, dtype=torch.float64), uniforms[:, None])
    blocks = torch.nn.functional.pad(probabilities, (0, -size % BLOCK)).unflatten(-1, (-1, BLOCK))
    ends = blocks.sum(-1, dtype=torch.float64).cumsum(-1)
    block = _first_above(ends, uniforms[:, None])[:, None]
    before = torch.nn.functional.pad(ends, (1, 0)).gather(1, block)
    chosen = blocks.gather(1, block[:, :, None].expand(-1, -1, BLOCK)).squeeze(1)
    mass = chosen.cumsum(-1, dtype=torch.float64)
    level = uniforms[:, None] * ends[:, -1:] - before
    first = block.squeeze(-1) * BLOCK + _first_above(mass, level / mass[:, -1:])
    return first.clamp(max=size - 1)


def _first_above(mass: Tensor, shares: Tensor) -> Tensor:
    """Return the first index at which each row of the cumulative sums `mass` [R, N] exceeds a
    fraction `shares` [R, 1] of the row's total. The threshold is kept below the total, so that
    rounding cannot select an index after the last increase. If the sums are NaN, the index is the
    last one; `read` reports such a row."""
    total = mass[:, -1:]
    level = (shares * total).minimum(torch.nextafter(total, torch.zeros_like(total)))
    first = torch.searchsorted(mass, level, right=True).squeeze(-1)
    return first.clamp(max=mass.shape[-1] - 1)


def read(tokens: Tensor, scores: Tensor) -> tuple[list[int], list[float]]:
    """Return tokens [R] and log-probabilities [R] as Python numbers. Tokens and log-probabilities
    are copied from the device in a single float64 tensor, without rounding, so that the host waits
    only once.

    Errors: ConfigError for a log-probability that is not finite.
    """
    if tokens.device.type == "cpu":
        numbers, values = tokens.tolist(), scores.tolist()
    else:
        numbers, values = torch.stack([tokens.double(), scores.double()]).tolist()
    if not all(map(isfinite, values)):  # of a drawn token
        raise ConfigError(
            "models: a model gives probabilities that are not finite; its weights are damaged, or "
            "too large for its compute type"
        )
    return [int(number) for number in numbers], values
