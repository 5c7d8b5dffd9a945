"""Sleep of a vLLM engine while models on the same device update. Not yet tested on hardware."""

from __future__ import annotations

from colearn.errors import ConfigError
from colearn.models.base import Base

FIELD = "run.generator.sleep"


def sleeps(setting: bool | None, base: Base, *, beside: bool) -> bool:
    """Whether an engine releases its memory during updates. If `setting` is None, the result is
    true if the engine shares a CUDA device with its trainer (`beside`).

    Errors: ConfigError if `setting` is true and the engine is not on its trainer's CUDA device.
    """
    possible = beside and base.device.type == "cuda"
    if setting and not possible:
        raise ConfigError(
            f"{FIELD}: an engine sleeps where it shares its trainer's CUDA device, started by the "
            "run and without gpus of its own; leave it out"
        )
    return possible if setting is None else setting
