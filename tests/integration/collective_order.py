"""A run under torchrun, of which each process writes down its collective operations.

torchrun ... collective_order.py CONFIG RUN NOTES
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from colearn.config import load_config
from colearn.training.loop import Experiment

LONGEST = timedelta(seconds=60)
"""For which a process waits for the others."""
WORDS = ("all_", "broadcast", "barrier", "reduce", "gather", "scatter", "send", "recv")


def noting(name: str, real: Callable[..., Any], file: Path) -> Callable[..., Any]:
    """The operation, with a line of its name and of its tensors' shapes and types before it."""

    def call(*given: Any, **named: Any) -> Any:
        tensors = [leaf for leaf in tree_leaves((given, named)) if isinstance(leaf, torch.Tensor)]
        with file.open("a") as lines:
            print(json.dumps([name, *(f"{list(t.shape)} {t.dtype}" for t in tensors)]), file=lines)
        return real(*given, **named)

    return call


def main(config: str, run: str, notes: str) -> None:
    file = Path(notes) / os.environ["RANK"]
    for name, real in list(vars(torch.distributed).items()):
        if name.startswith(WORDS) and callable(real):
            setattr(torch.distributed, name, noting(name, real, file))
    begin = torch.distributed.init_process_group
    torch.distributed.init_process_group = partial(begin, timeout=LONGEST)
    Experiment(load_config(json.loads(Path(config).read_text())), run).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
