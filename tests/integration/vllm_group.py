"""A program for torchrun: an engine in each process is built and closed, then all exchange."""

from __future__ import annotations

import torch
from accelerate import PartialState
from served_engine import PLAIN
from vllm_cases import qwen

from colearn.engines.kinds import VLLM
from colearn.models.base import Base

if __name__ == "__main__":
    state = PartialState(cpu=True)
    engine = VLLM(cache_gib=0.2, max_rows=8, max_length=512).build(Base(qwen()), PLAIN)
    engine.close()
    ranks = torch.tensor([float(state.process_index)])
    torch.distributed.all_reduce(ranks)
    assert ranks.item() == 1.0, "the sum of ranks 0 and 1"
    torch.distributed.destroy_process_group()
