"""The measurements for whoever has an accelerator, on a device in name only."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from colearn.models import flex

from .decoding_cases import DEVICE
from .tree_cases import by_queries

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "gpu.py"


def measured(item: str) -> dict[str, Any]:
    """The line of an item of `benchmarks/gpu.py`, in small shapes."""
    spec = importlib.util.spec_from_file_location("gpu", SCRIPT)
    assert spec is not None and spec.loader is not None
    script: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    script.SMALL_DEVICE = DEVICE
    flex.kernel = lambda: by_queries
    return script.ITEMS[item](True)
