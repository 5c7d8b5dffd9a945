"""Formats agents' outputs for another agent's prompt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from colearn.contract.types import Observation


def with_outputs(
    prompt: Observation, outputs: Mapping[tuple[int, str], str], occasion: str
) -> Observation:
    """`prompt` followed by the outputs, each under a line that names its agent. The keys are the
    (turn, agent) of the outputs, which are added to the prompt's known sources."""
    quoted = (f"Output of {agent} {occasion}:\n{output}" for (_, agent), output in outputs.items())
    sources = prompt.made_from
    if sources is not None:
        sources = tuple(dict.fromkeys((*sources, *outputs)))
    return replace(prompt, text="\n\n".join([prompt.text, *quoted]), made_from=sources)
