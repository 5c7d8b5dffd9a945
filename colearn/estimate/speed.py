"""Speeds of devices, as measured by `colearn measure` and kept in the cache folder."""

from __future__ import annotations

import platform
from collections.abc import Mapping

import torch
from pydantic import BaseModel, ConfigDict

from colearn.programs.files.cache import cache_folder, cache_place
from colearn.runs.record.files import read_fields, write_text

_FILE = "speeds.json"


class Speed(BaseModel):
    """The two constants from which a dry run computes times on one device."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    products: Mapping[str, float]
    """FLOP/s of training passes. The key is the compute type, such as bfloat16."""
    launch: float
    """Seconds per operator of a decoding step."""


class KnownSpeeds(BaseModel):
    """The measured devices."""

    devices: Mapping[str, Speed]

    def described(self, name: str) -> Speed | None:
        """Return the speed of the first device whose name contains `name`, such as `H100`."""
        matches = (known for known in self.devices if name and _plain(name) in _plain(known))
        first = next(matches, None)
        return None if first is None else self.devices[first]


def known_speeds() -> KnownSpeeds:
    """Return the speeds in the cache folder. Errors: CheckpointError for a damaged file."""
    file = cache_folder() / _FILE
    return read_fields(KnownSpeeds, file) if file.exists() else KnownSpeeds(devices={})


def keep_speed(device: torch.device, speed: Speed) -> None:
    """Add a speed to those in the cache folder, in place of an earlier one of the same device.

    Errors: ConfigError if the cache folder cannot be made; CheckpointError for a damaged file."""
    known = KnownSpeeds(devices={**known_speeds().devices, device_name(device): speed})
    write_text(cache_place(_FILE), known.model_dump_json(indent=1) + "\n")


def device_name(device: torch.device) -> str:
    """Return the name of the device's model. A CPU is named by host and number of threads."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    threads = f", {torch.get_num_threads()} threads" if device.type == "cpu" else ""
    return f"{device.type} of {platform.node()}{threads}"


def _plain(name: str) -> str:
    return "".join(filter(str.isalnum, name)).lower()
