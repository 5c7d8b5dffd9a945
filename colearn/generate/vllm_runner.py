"""Chooses between vLLM's two model runners for sampling actions."""

from __future__ import annotations

from collections.abc import Mapping

from colearn.agents import AgentSpec
from colearn.text.notes import note_once

_PREVIOUS = {"VLLM_USE_V2_MODEL_RUNNER": "0"}


def runner_variables(roles: Mapping[str, AgentSpec], *, on_cpu: bool) -> dict[str, str]:
    """Return the environment variables that choose a runner: the previous runner if vLLM runs on
    the CPU or a role uses top-p or top-k, else vLLM's default runner.

    The current runner of vLLM 0.32 reports scores before the temperature ('raw') or after top-p and
    top-k ('processed'). Without top-p and top-k, a run records the 'processed' scores. With top-p
    or top-k, colearn wraps the previous runner's sampler (`vllm_worker.py`); the current runner has
    no hook for such a wrapper.
    """
    if on_cpu:
        return dict(_PREVIOUS)
    for agent, role in roles.items():
        if cuts(role):
            note_once(
                f"run.generator: vLLM's previous model runner, because agents.{agent}.sampling has "
                "top_p or top_k, whose scores from before the cuts the current one (vLLM 0.32) "
                "does not report"
            )
            return dict(_PREVIOUS)
    return {}


def cuts(role: AgentSpec) -> bool:
    """Whether a role samples from a truncated distribution (top-p or top-k)."""
    return role.sampling.top_p < 1 or role.sampling.top_k is not None
