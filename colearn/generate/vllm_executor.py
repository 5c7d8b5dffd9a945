"""vLLM in this process on a device of our choice; by default it takes the first one."""

from __future__ import annotations

from typing import Any


def on_device(index: int) -> type[Any]:
    """An executor class whose worker runs on CUDA device `index`: that of its model, so that each
    of several processes, and each of several placed models, generates where it trains."""
    from vllm.v1.executor.uniproc_executor import UniProcExecutor

    class OnDevice(UniProcExecutor):
        def _distributed_args(self) -> tuple[str, int, int]:
            method, rank, _ = super()._distributed_args()
            return method, rank, index

    return OnDevice
