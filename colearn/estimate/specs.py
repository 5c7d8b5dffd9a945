"""Reads a run's agent specs without loading weights, and sums the memory of the run's
tokenizers."""

from __future__ import annotations

from colearn.agents import AgentSpec, ChatFormat
from colearn.config import ResolvedRun
from colearn.contract import NetworkKey
from colearn.contract.rotary import steady_positions
from colearn.models.load import check_vocabulary

from .architecture import Architectures, NotHere


def read_specs(run: ResolvedRun, architectures: Architectures) -> dict[str, AgentSpec] | None:
    """Return the spec of each language-model agent; None if a model's files are not on this
    machine."""
    specs = {}
    for agent, settings in run.config.language_agents.items():
        key = NetworkKey("actor", settings.model)
        path, field = run.path(key), f"{key.section}.path"
        try:
            tokenizer = architectures.tokenizer(path, field)
            architecture = architectures.config(path, field).get_text_config()
        except NotHere:
            return None
        check_vocabulary(tokenizer, architecture.vocab_size, field)
        chat = ChatFormat(tokenizer, **settings.chat_format)
        positions = steady_positions(architecture)
        specs[agent] = AgentSpec(**settings.spec_fields, chat=chat, positions=positions)
    return specs


def tokenizer_bytes(run: ResolvedRun, architectures: Architectures) -> int:
    """Number of resident bytes of a run's tokenizers. Each path counts once. The tokenizers of
    embedded models are negligible."""
    uses = {run.path(key) for key in run.networks}
    return sum(architectures.tokenizer_bytes.get(path, 0) for path in uses)
