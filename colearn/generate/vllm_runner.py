"""Which of vLLM's two model runners draws the actions."""

from __future__ import annotations

from collections.abc import Mapping

from colearn.agents import AgentSpec
from colearn.text.notes import note_once

_PREVIOUS = {"VLLM_USE_V2_MODEL_RUNNER": "0"}


def runner_variables(roles: Mapping[str, AgentSpec], *, on_cpu: bool) -> dict[str, str]:
    """Variables that choose a runner: the package's own choice, but the previous one on the CPU and
    where a role cuts by top-p or top-k.

    The current runner of vLLM 0.32 reports scores before the temperature ('raw') or after the cuts
    ('processed'). Without cuts the latter are those that a run records. With cuts, the previous
    runner's sampler is wrapped (`vllm_worker.py`), which the current one has no place for.
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
    """Whether a role draws from a part of the distribution."""
    return role.sampling.top_p < 1 or role.sampling.top_k is not None
