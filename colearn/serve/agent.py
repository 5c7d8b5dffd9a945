"""An exported agent in memory: its weights, its tokenizer, and how it is spoken to."""

from __future__ import annotations

import copy
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from colearn.agents import QuotingChat
from colearn.contract import Sampling
from colearn.export import AgentManifest, read_manifest, verify
from colearn.models.load import load_base, load_tokenizer, resolve_device

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_PROMPTS = 32
"""System prompts of clients whose formats are kept ready."""


class ServedAgent:
    """The agent of one exported folder, its files checked.

    Errors: ConfigError, one line, for a folder that is damaged or no exported agent.
    """

    def __init__(self, folder: Path, *, device: str, context: int | None = None) -> None:
        self.manifest: AgentManifest = read_manifest(folder)
        verify(folder)
        self.base = load_base(
            str(folder),
            compute=self.manifest.dtype,
            trained=False,
            device=resolve_device(device, "--device"),
            field="weights",
        )
        self._tokenizer = load_tokenizer(str(folder), field="tokenizer")
        self.decoder = ServedChat(copy.deepcopy(self._tokenizer), chat=self.manifest.chat)
        """For decoding, in any thread: its tokenizer never encodes, which is not thread-safe."""
        own: int | None = getattr(self.base.config, "max_position_embeddings", None)
        self.context = min(n for n in (own, context, 2**20) if n is not None)
        """Most tokens of a history."""
        self.longest_token = max(map(len, self._tokenizer.get_vocab()))
        """Characters, at most, that one token stands for."""
        self.sampling = Sampling(**self.manifest.sampling.model_dump())
        self.chat = lru_cache(maxsize=_PROMPTS)(self._chat)
        """The format under a system prompt, for encoding; for one thread only.

        Errors: ConfigError where the template cannot be used with this prompt.
        """
        self.chat(self.manifest.system)

    @property
    def name(self) -> str:
        return self.manifest.agent

    def _chat(self, system: str | None) -> ServedChat:
        return ServedChat(self._tokenizer, chat=self.manifest.chat, system=system)


class ServedChat(QuotingChat):
    """The format without a memory of the texts it has turned into ids: they are clients'."""

    def __init__(
        self, tokenizer: PreTrainedTokenizerBase, *, system: str | None = None, **settings: Any
    ) -> None:
        super().__init__(tokenizer, system=system, **settings)
        self._ids = lru_cache(maxsize=0)(self._tokenize)
