"""A model's architecture and tokenizer without its weights."""

from __future__ import annotations

import json
import resource
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from colearn.contract import DecPOMDP
from colearn.errors import ConfigError, nearest
from colearn.models.embedded import EMBEDDED, RECIPES, WarmStart, _play, _tokenizer
from colearn.models.load import load_tokenizer

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerBase

    from colearn.config import Config


class NotHere(Exception):
    """A model that can be counted only where its config.json is; says what to do."""


class Architectures:
    """What is known of the models of one task, each read or made once."""

    def __init__(self, task: DecPOMDP[Any, Any], config: Config) -> None:
        self.task = task
        chosen = [config.task.model_dump(mode="json"), config.wrapper]
        self.tokenizer_bytes: dict[str, int] = {}
        """Resident bytes by which each tokenizer made this process grow, by path."""
        self._tokenizers: dict[str, PreTrainedTokenizerBase] = {}
        self._task_key = json.dumps(chosen, sort_keys=True)

    def config(self, path: str, field: str) -> PretrainedConfig:
        """Errors: NotHere; ConfigError naming `field` for a folder or size that does not exist."""
        if path.startswith(EMBEDDED):
            return self._embedded(path, field)[0]
        from transformers import AutoConfig

        if path.startswith((".", "/", "~")) and not Path(path).is_dir():
            raise ConfigError(f"{field}: no folder {path}; give a model's folder or hub name")
        try:
            return AutoConfig.from_pretrained(path, local_files_only=True)
        except (OSError, ValueError):
            raise NotHere(
                f"not on this machine: {path}; download it (hf download {path}) or set {field} to "
                "its folder"
            ) from None

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
        size, _, draw = name.partition(":")
        if size not in RECIPES:
            raise ConfigError(f"{field}: no embedded model '{size}'; {nearest(size, RECIPES)}")
        if draw and not draw.isdecimal():
            raise ConfigError(
                f"{field}: '{draw}' is no number; write {size}, {size}:1, {size}:2, ..."
            )
        if not isinstance(self.task, WarmStart):
            raise ConfigError(
                f"{field}: '{name}' needs a task with legal_action(state, agent, rng) to "
                "warm-start on; add it to the task or give a model's folder or hub name"
            )
        return _embedded(_Hidden(self.task), self._task_key, size)


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
    hidden: _Hidden, task_key: str, size: str
) -> tuple[PretrainedConfig, PreTrainedTokenizerBase]:
    """The embedded model of `colearn.models.embedded`, its words counted and no weight made."""
    from transformers import LlamaConfig

    recipe, task = RECIPES[size], hidden.task
    tokenizer = _tokenizer(task, _play(task, task, recipe))
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=recipe.width,
        intermediate_size=2 * recipe.width,
        num_hidden_layers=recipe.layers,
        num_attention_heads=recipe.heads,
        num_key_value_heads=recipe.heads,
        max_position_embeddings=32768,
        tie_word_embeddings=True,
    )
    return config, tokenizer
