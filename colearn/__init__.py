"""colearn: decentralised training of language-model teams."""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "Config": "config",
    "load_config": "config",
    "Experiment": "experiment.loop",
    "compare": "comparison",
    "write_report": "comparison",
    "open_run": "record",
    "read_run": "record",
}
"""What a program starts from, and the module that has it; loaded when it is asked for."""

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'colearn' has no attribute '{name}'")
    return getattr(importlib.import_module(f"colearn.{_HOMES[name]}"), name)
