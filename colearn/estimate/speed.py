"""Speeds of devices, as measured by `colearn measure` and kept in the cache folder."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from typing import Annotated

import torch
from filelock import FileLock
from pydantic import BaseModel, ConfigDict, Field

from colearn.programs.files.cache import cache_folder, cache_place
from colearn.runs.record.files import read_fields, write_text
from colearn.runs.record.limits import LARGEST

_FILE = "speeds.json"


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
    return f"{device.type} of {platform.node()}{threads}"
