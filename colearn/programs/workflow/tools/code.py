"""Tool that runs a role's Python program in the sandbox."""

from __future__ import annotations

import asyncio

from colearn.programs.sandbox import Limits, run_program

LONGEST_OUTPUT = 2000
"""Maximum number of characters of a program's output that its caller receives."""


async def run_code(program: str, stdin: str = "") -> str:
    """Runs a Python program in a sandbox for up to 10 seconds and returns its output."""
    output = await asyncio.to_thread(run_program, program, stdin, limits=Limits())
    text = output.text[:LONGEST_OUTPUT]
    if output.error is not None:
        text = f"{text}\n{output.error}: {output.message}".strip()
    return text
