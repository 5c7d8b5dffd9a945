"""A model's architecture and tokenizer without its weights."""

from __future__ import annotations

import json
import os
import resource
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from colearn.contract import DecPOMDP
from colearn.errors import ConfigError
from colearn.models.embedded import EMBEDDED, embedded_parts, embedded_recipe
from colearn.models.load import load_tokenizer, read_config

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerBase

    from colearn.config import Config


class NotHere(Exception):
    """A model that can be counted only where its config.json is; says what to do."""

    def __init__(self, path: str, field: str) -> None:
        super().__init__(
            f"not on this machine: {path}; its small files are enough here "
            f"(hf download {path} --include '*.json'), or set {field} to a folder"
        )


class Architectures:
    """What is known of the models of one task, each read or made once."""

    def __init__(self, task: DecPOMDP[Any, Any], config: Config) -> None:
        self.task = task
        chosen = config.model_dump(mode="json", include={"task", "wrapper"})
        self.tokenizer_bytes: dict[str, int] = {}
        """Resident bytes by which each tokenizer made this process grow, by path."""
        self._tokenizers: dict[str, PreTrainedTokenizerBase] = {}
        self._task_key = json.dumps(chosen, sort_keys=True)

    def config(self, path: str, field: str) -> PretrainedConfig:
        """Errors: NotHere; ConfigError naming `field` for a folder or size that does not exist."""
        if path.startswith(EMBEDDED):
            return self._embedded(path, field)[0]
        from huggingface_hub.errors import HFValidationError
        from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]
        from transformers import AutoConfig

        there = os.path.isdir(path)  # False, too, for what can be no path
        if path.startswith((".", "/", "~")) and not there:
            raise ConfigError(f"{field}: no folder {path[:200]}; give a model's folder or hub name")
        if there and not (Path(path) / "config.json").is_file():
            raise ConfigError(f"{field}: {path} holds no config.json; give a model's folder")
        if there:
            return read_config(path, field)
        try:
            return AutoConfig.from_pretrained(path, local_files_only=True, trust_remote_code=False)
        except (OSError, ValueError):
            try:
                validate_repo_id(path)
            except HFValidationError:
                raise ConfigError(
                    f"{field}: {path[:200]!r} is neither a folder nor a name that a hub can have"
                ) from None
            raise NotHere(path, field) from None

    def tokenizer(self, path: str, field: str) -> PreTrainedTokenizerBase:
        """Errors: as in `config`, and ConfigError for a model without a tokenizer."""
        self.config(path, field)
        if path.startswith(EMBEDDED):
            return self._embedded(path, field)[1]
        if path not in self._tokenizers:
            before = _resident()
            self._tokenizers[path] = load_tokenizer(path, field=field)
            self.tokenizer_bytes[path] = max(0, _resident() - before)
        return self._tokenizers[path]

    def _embedded(self, name: str, field: str) -> tuple[PretrainedConfig, PreTrainedTokenizerBase]:
        embedded_recipe(self.task, name, field)
        return _embedded(_Hidden(self.task), self._task_key, name)


def _resident() -> int:
    """Bytes of this process in memory; 0 where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * resource.getpagesize()


class _Hidden:
    """A task that a cache does not compare."""

    def __init__(self, task: Any) -> None:
        self.task = task

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Hidden)

    def __hash__(self) -> int:
        return 0


@lru_cache(maxsize=8)
def _embedded(
    hidden: _Hidden, task_key: str, name: str
) -> tuple[PretrainedConfig, PreTrainedTokenizerBase]:
    """Playing the warm-start episodes takes seconds: once for each task and name."""
    return embedded_parts(hidden.task, name, "path")
