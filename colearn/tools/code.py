"""A program of a role's, run in the sandbox."""

from __future__ import annotations

import asyncio

from colearn.sandbox import Limits, run_program

LONGEST_OUTPUT = 2000
"""Characters of what a program printed that its caller is shown."""


async def run_code(program: str, stdin: str = "") -> str:
    """What a Python program prints, run in a sandbox for up to 10 seconds."""
    output = await asyncio.to_thread(run_program, program, stdin, limits=Limits())
    text = output.text[:LONGEST_OUTPUT]
    if output.error is not None:
        text = f"{text}\n{output.error}: {output.message}".strip()
    return text
