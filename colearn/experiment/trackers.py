"""Optional trackers beside the JSONL files: wandb (offline too) and TensorBoard."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from colearn.errors import MissingExtra


class Tracker(Protocol):
    """Takes numbers by name at an environment step."""

    def log(self, metrics: Mapping[str, float], step: int) -> None: ...

    def close(self) -> None: ...


class WandbTracker:
    """Runs offline where WANDB_MODE=offline says so; resumes the same run in the same folder."""

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        wandb = _require("wandb", "wandb")
        self.run = wandb.init(
            project="colearn", dir=str(folder), name=folder.name, config=dict(settings)
        )

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        self.run.log(dict(metrics), step=step)

    def close(self) -> None:
        self.run.finish()


class TensorBoardTracker:
    """Event files under RUN/tensorboard."""

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        _require("tensorboard", "tensorboard")
        from torch.utils.tensorboard import SummaryWriter

        self.writer = SummaryWriter(str(folder / "tensorboard"))

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        for name, value in metrics.items():
            self.writer.add_scalar(name, value, step)

    def close(self) -> None:
        self.writer.close()


def open_trackers(names: Sequence[str], folder: Path, settings: Mapping[str, Any]) -> list[Tracker]:
    """Errors: MissingExtra naming the pip command."""
    kinds: dict[str, Callable[[Path, Mapping[str, Any]], Tracker]] = {
        "wandb": WandbTracker,
        "tensorboard": TensorBoardTracker,
    }
    return [kinds[name](folder, settings) for name in names]


def _require(module: str, extra: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise MissingExtra(module, extra) from None
