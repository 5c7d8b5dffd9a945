"""Loads models' architectures and tokenizers, and agent specs, without loading weights."""

from __future__ import annotations

import json
import os
import resource
from pathlib import Path
from typing import TYPE_CHECKING, Any

from colearn.contract import DecPOMDP, NetworkKey
from colearn.contract.rotary import steady_positions
from colearn.errors import ConfigError
from colearn.models.adapter_folder import bottom, is_adapter, tokenizer_path
from colearn.models.embedded import embedded_parts, embedded_recipe
from colearn.models.embedded_recipes import is_embedded
from colearn.models.load import check_vocabulary, load_tokenizer, read_config
from colearn.rollout.agents import AgentSpec, ChatFormat

from .stand_ins import CHARACTERS_PER_TOKEN, published_config, stand_in_tokenizer

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerBase

    from colearn.config import Config, ResolvedRun


_EMBEDDED: dict[tuple[str, str], tuple[PretrainedConfig, PreTrainedTokenizerBase]] = {}
"""Configs and tokenizers of embedded models by task and name, since playing the warm-start episodes
takes seconds."""


class Architectures:
    """Configs and tokenizers of the models of one task; each is read once."""

    def __init__(self, task: DecPOMDP[Any, Any], config: Config) -> None:
        self.task = task
        chosen = config.model_dump(mode="json", include={"task", "wrapper"})
        self._bytes: dict[str, int] = {}
        """Number of resident bytes of each tokenizer, measured as the growth of this process when
        the tokenizer was loaded. The key is the tokenizer's path."""
        self.without_tokenizer: set[str] = set()
        """Paths of models whose tokenizer is replaced by a stand-in."""
        self._assumed: dict[str, dict[str, None]] = {}
        self._tokenizers: dict[str, PreTrainedTokenizerBase] = {}
        self._task_key = json.dumps(chosen, sort_keys=True)

    @property
    def assumed(self) -> dict[str, str]:
        """Assumptions made because files are missing here. The keys are config fields."""
        return {field: "; ".join(texts) for field, texts in self._assumed.items()}

    def assume(self, field: str, text: str) -> None:
        self._assumed.setdefault(field, {})[text] = None

    def config(self, path: str, field: str) -> PretrainedConfig:
        """Errors: ConfigError naming `field` for a model that is not on this machine, an unknown
        folder or embedded size."""
        if is_embedded(path):
            return self._embedded(path, field)[0]
        from huggingface_hub.errors import HFValidationError
        from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]
        from transformers import AutoConfig

        if is_adapter(path):
            return self.config(bottom(path, field), field)
        is_folder = os.path.isdir(path)  # also False for an invalid path
        if path.startswith((".", "/", "~")) and not is_folder:
            raise ConfigError(f"{field}: no folder {path[:200]}; give a model's folder or hub name")
        if is_folder and not (Path(path) / "config.json").is_file():
            raise ConfigError(f"{field}: {path} holds no config.json; give a model's folder")
        if is_folder:
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
            known = published_config(path)
            if known is None:
                raise ConfigError(
                    f"{field}: not on this machine: {path}; an estimate needs its config.json only "
                    f"(hf download {path} config.json), or set {field} to a folder"
                ) from None
            self.assume(field, f"{path} is not on this machine: its published sizes are used")
            return known

    def tokenizer(self, path: str, field: str) -> PreTrainedTokenizerBase:
        """Errors: as for `config`; ConfigError for a model without a tokenizer."""
        self.config(path, field)
        if is_embedded(path):
            return self._embedded(path, field)[1]
        path = tokenizer_path(path, field)
        if not _has_tokenizer(path):
            self.without_tokenizer.add(path)
            self.assume(field, f"no tokenizer here: a token per {CHARACTERS_PER_TOKEN} characters")
            return stand_in_tokenizer()
        if path not in self._tokenizers:
            before = _resident()
            self._tokenizers[path] = load_tokenizer(path, field=field)
            self._bytes[path] = max(0, _resident() - before)
        return self._tokenizers[path]

    def tokenizer_bytes(self, run: ResolvedRun) -> int:
        """Number of resident bytes of a run's tokenizers. Each path counts once. The tokenizers of
        embedded models are negligible."""
        return sum(self._bytes.get(path, 0) for path in {run.path(key) for key in run.networks})

    def _embedded(self, name: str, field: str) -> tuple[PretrainedConfig, PreTrainedTokenizerBase]:
        embedded_recipe(self.task, name, field)
        key = self._task_key, name
        if key not in _EMBEDDED:
            _EMBEDDED[key] = embedded_parts(self.task, name, "path")
        return _EMBEDDED[key]


def read_specs(run: ResolvedRun, architectures: Architectures) -> dict[str, AgentSpec]:
    """The spec of each language-model agent. Errors: as for `Architectures.config`."""
    specs = {}
    for agent, settings in run.config.language_agents.items():
        key = NetworkKey("actor", settings.model)
        path, field = run.path(key), run.field(key)
        tokenizer = architectures.tokenizer(path, field)
        architecture = architectures.config(path, field).get_text_config()
        check_vocabulary(tokenizer, architecture.vocab_size, field)
        chat = ChatFormat(tokenizer, **settings.chat_format)
        chat.check_embedded(architecture.vocab_size, field)
        positions = steady_positions(architecture)
        specs[agent] = AgentSpec(**settings.spec_fields, chat=chat, positions=positions)
    return specs


def _has_tokenizer(path: str) -> bool:
    """Whether to load a model's tokenizer: False for a folder that holds only config.json, and for
    a hub model whose tokenizer is not in the cache."""
    if os.path.isdir(path):
        files = [file.name for file in Path(path).iterdir()]
        return any("token" in name or name.endswith(".safetensors") for name in files)
    from huggingface_hub import try_to_load_from_cache

    names = ("tokenizer.json", "tokenizer_config.json")
    return any(isinstance(try_to_load_from_cache(path, name), str) for name in names)


def _resident() -> int:
    """Resident bytes of this process; 0 if the system does not report them."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * resource.getpagesize()
