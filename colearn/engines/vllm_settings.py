"""Settings of vLLM in this process and of vLLM servers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from colearn.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class VLLMSettings:
    """Settings with which vLLM starts."""

    cache_gib: float | None = None
    """Memory of the key/value cache in GiB. None selects 1 GiB on the CPU, a tenth of the device's
    memory if vLLM shares the trainer's device, and vLLM's default on separate devices."""
    max_length: int | None = None
    """Maximum length of a history in tokens; None: the model's maximum, or less if vLLM's cache or
    a server's limit is smaller."""
    max_rows: int = 256
    """Maximum number of rows decoded together."""
    eager: bool | None = None
    """Skip compilation and graph capture: a faster start and slower decoding. None: on the CPU
    only."""
    sleep: bool | None = None
    """Whether to release device memory during updates. None: only on a CUDA device that vLLM shares
    with the trainer."""
    tolerance: float | None = None
    """Maximum gap in nats to the trained model's log-probabilities; None: depends on the dtype."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of `vllm.LLM`; for a server, further options of its command line, under the
    same names."""

    def __post_init__(self) -> None:
        check_positive(
            cache_gib=self.cache_gib,
            max_length=self.max_length,
            max_rows=self.max_rows,
            tolerance=self.tolerance,
        )


@dataclass(frozen=True, kw_only=True)
class ServerSettings(VLLMSettings):
    """Settings of a server, except for its URL."""

    folder: str | None = None
    """Folder on a file system that trainer and server share; None: this machine's temporary
    folder."""
    python: str | None = None
    """Python interpreter with which the run starts a server; its environment must have vLLM. None:
    the current interpreter."""
    gpus: str | None = None
    """GPUs of a started server, as in CUDA_VISIBLE_DEVICES; None: the GPUs of this process."""
    start_minutes: float = 15.0
    """Timeout in minutes for the start of a server."""
    request_minutes: float = 15.0
    """Timeout in minutes for a single request."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(start_minutes=self.start_minutes, request_minutes=self.request_minutes)


def check_positive(**settings: float | None) -> None:
    """Check settings. Errors: ConfigError that names a setting of 0 or below."""
    for name, number in settings.items():
        if number is not None and number <= 0:
            raise ConfigError(f"{name}: must be above 0, got {number}")
