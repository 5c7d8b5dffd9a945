"""Changes to vLLM's worker: the choice of its device, and log-probabilities computed before top-p
and top-k."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


def on_device(index: int) -> type[Any]:
    """Return an executor class whose worker runs on CUDA device `index`, the device of the engine's
    model. With this class, every process and every model with a configured device can generate on
    the device used for training."""
    from vllm.v1.executor.uniproc_executor import UniProcExecutor

    class OnDevice(UniProcExecutor):
        def _distributed_args(self) -> tuple[str, int, int]:
            method, rank, _ = super()._distributed_args()
            return method, rank, index

    return OnDevice


class WorkerExtension:
    """Methods added to vLLM's worker by `--worker-extension-cls`."""

    def score_before_cuts(self) -> None:
        """Report log-probabilities before top-p and top-k; a second call has no effect."""
        score_before_cuts(self)


def score_before_cuts(worker: Any) -> None:
    """As `WorkerExtension.score_before_cuts`, for a worker in this process."""
    sampler = worker.model_runner.sampler
    if not isinstance(sampler.topk_topp_sampler, _UncutScores):
        sampler.topk_topp_sampler = _UncutScores(sampler.topk_topp_sampler)


class _UncutScores(nn.Module):
    """Wraps vLLM's top-k and top-p sampling to report log-probabilities before the truncation.

    vLLM's modes report log-probabilities before the temperature ('raw') or after the truncation
    ('processed').
    """

    def __init__(self, draw: nn.Module) -> None:
        super().__init__()
        self.draw: Any = draw

    def forward(
        self, logits: Tensor, generators: Any, top_k: Tensor | None, top_p: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Sample tokens; `logits` are already divided by the temperature."""
        scores = logits.log_softmax(-1, dtype=torch.float32)
        tokens, _ = self.draw.forward(logits, generators, top_k, top_p)
        return tokens, scores
