"""Formats agents' outputs for another agent's prompt."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from colearn.types import Observation


def with_outputs(prompt: Observation, outputs: Iterable[tuple[str, str]], when: str) -> Observation:
    """`prompt` followed by the outputs ((agent, output) pairs), each under a line that names its
    agent."""
    quoted = (f"Output of {agent} {when}:\n{said}" for agent, said in outputs)
    return replace(prompt, text="\n\n".join([prompt.text, *quoted]))
