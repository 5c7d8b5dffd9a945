"""How one agent's output is put before another's eyes."""

from __future__ import annotations

from collections.abc import Iterable


def with_outputs(text: str, outputs: Iterable[tuple[str, str]], when: str) -> str:
    """`text` followed by the outputs, (agent, output) each, under a line that names the agent."""
    return "\n\n".join([text, *(f"Output of {agent} {when}:\n{said}" for agent, said in outputs)])
