"""Products of float32 round to TF32 on CUDA devices only, unless a run refuses."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from colearn.config import load_config
from colearn.models.torch_settings import rounds_to_tf32, use_tf32


@pytest.fixture(autouse=True)
def kept() -> Iterator[None]:
    before = torch.backends.cuda.matmul.allow_tf32
    yield
    torch.backends.cuda.matmul.allow_tf32 = before


def test_a_run_rounds_unless_it_refuses() -> None:
    config = {"task": {"name": "str_build"}, "models": {"*": {"path": "embedded"}}}
    assert load_config(config).run.tf32
    assert not load_config(config, ["run.tf32=false"]).run.tf32


@pytest.mark.parametrize(
    ("device", "compute", "rounds"),
    [
        ("cuda", torch.float32, True),
        ("cuda", torch.bfloat16, False),
        ("cpu", torch.float32, False),
    ],
)
def test_float32_on_cuda_rounds(device: str, compute: torch.dtype, rounds: bool) -> None:
    torch.backends.cuda.matmul.allow_tf32 = False
    assert use_tf32(True) is False
    assert rounds_to_tf32(torch.device(device), compute) is rounds
    assert use_tf32(False) is True
    assert not rounds_to_tf32(torch.device(device), compute)
