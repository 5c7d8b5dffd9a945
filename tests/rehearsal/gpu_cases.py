"""The measurements for whoever has an accelerator, on a device in name only."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from .decoding_cases import DEVICE

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))


def measured(item: str) -> dict[str, Any]:
    """The rows of an item of `benchmarks/gpu.py` in small shapes, and those that were predicted."""
    script = importlib.import_module("gpu")
    script.items.SMALL_DEVICE = DEVICE
    rows = dict(script.ITEMS[item].run(True))
    return {"rows": rows, "predicted": list(script.ITEMS[item].rows)}
