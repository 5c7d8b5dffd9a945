"""Reads wandb's offline files, which store records of wandb's protocol in blocks of LevelDB's log
format.

If the run was killed before wandb had written a row, the files do not contain this row.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

_BLOCK, _FILE_HEADER, _HEADER = 32768, 7, 7
_FULL, _LAST = 1, 4


def rows_in(folder: Path, run_id: str) -> int:
    """Returns the number of rows in a run's offline files in `folder`, which is the highest wandb
    step plus 1."""
    from wandb.proto import wandb_internal_pb2

    number = 0
    for file in folder.glob(f"offline-run-*/run-{run_id}.wandb"):
        for data in records(file.read_bytes()):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(data)
            if record.HasField("history"):
                number = max(number, record.history.step.num + 1)
    return number


def records(data: bytes) -> Iterator[bytes]:
    """Yields the complete records of a file. A record is a single chunk (type 1), or a sequence of
    a first chunk (type 2), middle chunks (type 3) and a last chunk (type 4). Each chunk has a
    header with a checksum, the chunk's length and its type."""
    at, parts = _FILE_HEADER, b""
    while at + _HEADER <= len(data):
        room = _BLOCK - at % _BLOCK
        if room < _HEADER:
            at += room
            continue
        _, length, kind = struct.unpack("<IHB", data[at : at + _HEADER])
        end = at + _HEADER + length
        if kind == 0 or end > len(data):
            return  # what follows was not written
        parts += data[at + _HEADER : end]
        at = end
        if kind in (_FULL, _LAST):
            yield parts
            parts = b""
