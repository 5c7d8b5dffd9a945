"""Requests to token engines, from an agent's voice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from colearn.contract import TokenHistory, TokenRequest
from colearn.rollout.agents import AgentSpec
from colearn.rollout.agents.language import extended


def token_request(
    voices: Mapping[str, AgentSpec],
    agent: str,
    tokens: Sequence[int],
    seeds: Sequence[int],
    *,
    continues: TokenHistory | None = None,
    greedy: bool = False,
    **sampling: Any,
) -> TokenRequest:
    """One action of an agent for each seed, after `continues` and then `tokens`; `sampling` changes
    fields of the voice's."""
    voice = voices[agent]
    changes = {**sampling, **({"temperature": 0.0} if greedy else {})}
    return TokenRequest(
        agent=agent,
        history=extended(agent, continues, tokens, voice.window),
        continues=continues,
        sampling=replace(voice.sampling, **changes),
        seeds=tuple(seeds),
    )
