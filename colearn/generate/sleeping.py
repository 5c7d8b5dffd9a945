"""Sleep of a vLLM engine while the models beside it update. It has not run on hardware here."""

from __future__ import annotations

from colearn.errors import ConfigError
from colearn.models.base import Base

FIELD = "run.generator.sleep"


def sleeps(setting: bool | None, base: Base, *, beside: bool) -> bool:
    """Whether an engine gives its memory back during updates: by default where it is `beside` its
    trainer on a CUDA device.

    Errors: ConfigError where it is set and the engine is not.
    """
    possible = beside and base.device.type == "cuda"
    if setting and not possible:
        raise ConfigError(
            f"{FIELD}: an engine sleeps where it shares its trainer's CUDA device, started by the "
            "run and without gpus of its own; leave it out"
        )
    return possible if setting is None else setting
