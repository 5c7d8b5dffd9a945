"""Speeds of devices, as measured by `colearn measure` and kept in the cache folder."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from itertools import combinations
from typing import Annotated

import torch
from filelock import FileLock
from pydantic import BaseModel, ConfigDict, Field

from colearn.programs.files.cache import cache_folder, cache_place
from colearn.runs.record.files import read_fields, write_text
from colearn.runs.record.limits import LARGEST

_FILE = "speeds.json"
_HOST = " of "
"""What precedes the host in the name of a device that is known by its host."""


class Speed(BaseModel):
    """The two constants from which a dry run computes times on one device."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    products: Mapping[str, Annotated[float, Field(gt=0, le=LARGEST)]]
    """FLOP/s of training passes. The key is the compute type, such as bfloat16."""
    launch: Annotated[float, Field(ge=0, le=LARGEST)]
    """Seconds per operator of a decoding step."""


class KnownSpeeds(BaseModel):
    """The measured devices."""

    devices: Mapping[str, Speed]

    def described(self, name: str) -> Speed | None:
        """Return the speed of the CUDA device whose name contains the words of `name`, such as
        `H100` or `RTX-4090`: of the shortest such name."""
        asked = "".join(_words(name))
        matches = [
            known
            for known in self.devices
            if _HOST not in known and asked in _runs_of_words(_words(known))
        ]
        return self.devices[min(matches, key=len)] if matches else None


def known_speeds() -> KnownSpeeds:
    """Return the speeds in the cache folder. Errors: CheckpointError for a damaged file."""
    file = cache_folder() / _FILE
    return read_fields(KnownSpeeds, file) if file.exists() else KnownSpeeds(devices={})


def keep_speed(device: torch.device, speed: Speed) -> None:
    """Add a speed to those in the cache folder, in place of an earlier one of the same device.

    Errors: ConfigError if the cache folder cannot be made; CheckpointError for a damaged file."""
    file = cache_place(_FILE)
    with FileLock(f"{file}.lock"):  # other machines may share the folder
        known = KnownSpeeds(devices={**known_speeds().devices, device_name(device): speed})
        write_text(file, known.model_dump_json(indent=1) + "\n")


def device_name(device: torch.device) -> str:
    """Return the name of the device's model. A CPU is named by host and number of threads."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    threads = f", {torch.get_num_threads()} threads" if device.type == "cpu" else ""
    return f"{device.type}{_HOST}{platform.node()}{threads}"


def _words(name: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", name.lower())


def _runs_of_words(words: list[str]) -> set[str]:
    """All runs of consecutive words, each run written as one word."""
    return {"".join(words[i:j]) for i, j in combinations(range(len(words) + 1), 2)}
