"""The example programs in their frameworks: trained, then run against `colearn serve` unchanged.

Set COLEARN_LANGGRAPH, COLEARN_AGENTS_SDK, COLEARN_AG2 and COLEARN_VERIFIERS to the Python of an
environment with the packages that each example names, and run `pytest -m frameworks`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from exported import serving

EXAMPLES = Path(__file__).parents[2] / "examples" / "gateway"
PROGRAMS = {
    "relay_langgraph": "COLEARN_LANGGRAPH",
    "handoff_agents_sdk": "COLEARN_AGENTS_SDK",
    "pairs_ag2": "COLEARN_AG2",
    "lamps_verifiers": "COLEARN_VERIFIERS",
}
SETTINGS = {
    "agents": {"*": {"sampling": {"max_tokens": 24, "temperature": 1e-4}}},
    "evaluation": {"every": 1, "episodes": 8, "repeats": 1, "greedy": True},
    "train": {"environment_steps": 1, "episodes": 1, "minibatch": 32},
}
"""A run whose agents are all but greedy: their score does not depend on how they are reached."""

pytestmark = pytest.mark.frameworks


def run(*command: str) -> str:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=EXAMPLES, env=environment, capture_output=True, text=True, timeout=500
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_scores_at_colearn_serve_what_it_scored_in_training(program, tmp_path):
    """The same file: only the URLs differ."""
    python = os.environ.get(PROGRAMS[program])
    if not python:
        pytest.skip(f"{PROGRAMS[program]} is not set")
    colearn = (sys.executable, "-m", "colearn")
    sets = [f"task.command={json.dumps([python, f'{program}.py'])}"]
    for section, values in SETTINGS.items():
        for key, value in values.items():
            sets.append(f"{section}.{key}={json.dumps(value)}")
    options = [part for one in sets for part in ("--set", one)]
    out, agents = str(tmp_path / "run"), tmp_path / "agents"
    run(*colearn, "train", f"{program}.yaml", "--out", out, *options)
    run(*colearn, "export", out, "--to", str(agents))
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    with ExitStack() as stack:
        servers = {
            folder.name: stack.enter_context(serving(folder))
            for folder in sorted(agents.iterdir())
            if folder.is_dir()
        }
        urls = {name: f"{server.url}/v1" for name, server in servers.items()}
        told = run(python, f"{program}.py", json.dumps(urls))
    last = told.splitlines()[-1]  # AG2 prints the end of each chat, too
    assert last == f"{record['last']['return']:.3f} on 8 held-out items"
