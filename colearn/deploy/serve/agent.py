"""An exported agent in memory: weights, tokenizer and chat format."""

from __future__ import annotations

import copy
from functools import lru_cache
from pathlib import Path
from typing import Any

from colearn.contract import Sampling
from colearn.deploy.export import AgentManifest, read_manifest, verify
from colearn.models.load import load_base, load_end_ids, load_tokenizer, resolve_device
from colearn.models.torch_settings import use_threads
from colearn.rollout.agents import ChatFormat, QuotingChat

_PROMPTS = 32
"""Maximum number of cached chat formats, one per system prompt."""


class ServedAgent:
    """The agent in one exported folder, whose files have been verified.

    Errors: ConfigError, one line, for a damaged folder or one that is not an exported agent.
    """

    def __init__(
        self, folder: Path, *, device: str, context: int | None = None, threads: int | None = None
    ) -> None:
        self.manifest: AgentManifest = read_manifest(folder)
        verify(folder)
        self.base = load_base(
            str(folder),
            compute=self.manifest.dtype,
            trained=False,
            device=resolve_device(device, "--device"),
            field="weights",
            adapted=self.manifest.weights == "adapter",
        )
        use_threads(threads, [self.base.causal])
        self._tokenizer = load_tokenizer(str(folder), field="tokenizer")
        self._form: dict[str, Any] = {
            "chat": self.manifest.chat,
            "model_end_ids": load_end_ids(str(folder), field="weights"),
        }
        self.decoder = ServedChat(copy.deepcopy(self._tokenizer), **self._form)
        """Chat format for decoding in any thread. Its copy of the tokenizer is never used to
        encode, since encoding is not thread-safe."""
        self.context = min(n for n in (self.base.positions, context, 2**20) if n is not None)
        """Maximum number of tokens in a history."""
        self.longest_token = max(map(len, self._tokenizer.get_vocab()))
        """Number of characters in the longest token."""
        self.sampling = Sampling(**self.manifest.sampling.model_dump())
        self.chat = lru_cache(maxsize=_PROMPTS)(self._chat)
        """Returns the chat format for a system prompt. It may encode in one thread only.

        Errors: ConfigError if the template cannot hold this prompt.
        """
        self.chat(self.manifest.system)

    @property
    def name(self) -> str:
        return self.manifest.agent

    def _chat(self, system: str | None) -> ServedChat:
        kind = ServedChat if system == self.manifest.system else ClientChat
        return kind(self._tokenizer, system=system, **self._form)


class ServedChat(ChatFormat):
    """The chat format used in training. Unlike in training, token ids are not cached, because
    clients choose the texts.

    Special tokens in the agent's exported system text keep their meaning, as in training.
    """

    _cache = 0


class ClientChat(ServedChat, QuotingChat):
    """The chat format with a client's system text, whose special tokens are plain text."""
