"""The rows in wandb's offline files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from colearn.training.wandb_file import records


def history(path: Path) -> list[tuple[int, dict[str, Any]]]:
    """The rows that were logged, each with wandb's own step."""
    from wandb.proto import wandb_internal_pb2

    rows = []
    for data in records(path.read_bytes()):
        record = wandb_internal_pb2.Record()
        record.ParseFromString(data)
        if record.HasField("history"):
            items = record.history.item
            row = {one.key or "/".join(one.nested_key): json.loads(one.value_json) for one in items}
            rows.append((record.history.step.num, row))
    return rows
