"""The example programs in their frameworks: trained, then run against `colearn serve` unchanged.

Set COLEARN_LANGGRAPH, COLEARN_AGENTS_SDK, COLEARN_AG2, COLEARN_MINI_SWE and COLEARN_VERIFIERS to
the Python of an environment with the packages that each example names, and run
`pytest -m frameworks`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
from exported import serving

from colearn.tasks.verifiers import Verifiers
from colearn.tasks.verifiers.task import WORKER

EXAMPLES = Path(__file__).parents[2] / "examples" / "gateway"
PROGRAMS = {
    "relay_langgraph": "COLEARN_LANGGRAPH",
    "handoff_agents_sdk": "COLEARN_AGENTS_SDK",
    "pairs_ag2": "COLEARN_AG2",
    "coder_mini_swe": "COLEARN_MINI_SWE",
}
MODELS = {"coder_mini_swe": "embedded-copy:1"}
"""Models of other weights, where those of the config answer all items alike if they are greedy, so
that their score says nothing of what they were asked."""
SETTINGS = {
    "agents": {"*": {"sampling": {"max_tokens": 24, "temperature": 1e-4}}},
    "evaluation": {"every": 1, "episodes": None, "repeats": 1, "greedy": True},
    "train": {"environment_steps": 1, "episodes": 1, "minibatch": 32},
}
"""A run whose agents are all but greedy: their score does not depend on how they are reached."""

PLAY = """
import asyncio, json, sys
sys.path[:0] = [sys.argv[1], "."]
from worker import open_env, play
env = open_env({"env": sys.argv[4], "settings": {}})
tasks = list(env.taskset)

async def main(urls, held_out):
    async with env.serving():
        paid = [(await play(env, tasks[item], urls))[sys.argv[5]] for item in held_out]
    print(f"{sum(paid) / len(paid):.3f} on {len(paid)} held-out items")

asyncio.run(main(json.loads(sys.argv[3]), json.loads(sys.argv[2])))
"""
"""Plays held-out items of an environment with the agents at the URLs; prints a role's score."""

pytestmark = pytest.mark.frameworks


def run(*command: str) -> str:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=EXAMPLES, env=environment, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_scores_at_colearn_serve_what_it_scored_in_training(program, tmp_path):
    """The same file: only the URLs differ."""
    python = python_of(PROGRAMS[program])
    command = json.dumps([python, f"{program}.py"])
    trained, served = scores(
        program, f"task.command={command}", (python, f"{program}.py"), tmp_path
    )
    assert served == trained


@pytest.mark.parametrize(
    ("program", "role", "score"),
    [("lamps_verifiers", "agent", "return"), ("pair_verifiers", "seeker", "return/seeker")],
)
def test_an_environment_scores_at_colearn_serve_what_it_scored_in_training(
    program, role, score, tmp_path, monkeypatch
):
    python = python_of("COLEARN_VERIFIERS")
    monkeypatch.chdir(EXAMPLES)
    held_out = list(Verifiers(program, python=python).items("test"))
    player = (python, "-c", PLAY, str(WORKER.parent), json.dumps(held_out))
    trained, served = scores(
        program, f"task.python={python}", player, tmp_path, (program, role), score
    )
    assert served == trained


def python_of(variable: str) -> str:
    python = os.environ.get(variable)
    if not python:
        pytest.skip(f"{variable} is not set")
    return python


def scores(
    config: str,
    runs: str,
    player: Sequence[str],
    tmp_path: Path,
    more: Sequence[str] = (),
    score: str = "return",
) -> tuple[str, str]:
    """What the agents of a run score in it, and what they score at their servers."""
    colearn = (sys.executable, "-m", "colearn")
    sets = [runs, *(f"models.*.path={model}" for name, model in MODELS.items() if name == config)]
    for section, values in SETTINGS.items():
        for key, value in values.items():
            sets.append(f"{section}.{key}={json.dumps(value)}")
    options = [part for one in sets for part in ("--set", one)]
    out, agents = str(tmp_path / "run"), tmp_path / "agents"
    run(*colearn, "train", f"{config}.yaml", "--out", out, *options)
    run(*colearn, "export", out, "--to", str(agents))
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    with ExitStack() as stack:
        servers = {
            folder.name: stack.enter_context(serving(folder))
            for folder in sorted(agents.iterdir())
            if folder.is_dir()
        }
        urls = {name: f"{server.url}/v1" for name, server in servers.items()}
        told = run(*player, json.dumps(urls), *more)
    # AG2 prints the end of each chat, too
    return f"{record['last'][score]:.3f}", told.splitlines()[-1].split()[0]
