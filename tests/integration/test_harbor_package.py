"""A task that Harbor itself made: COLEARN_HARBOR is the Python of an environment with harbor."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from colearn.tasks.harbor import Harbor

pytestmark = pytest.mark.frameworks
RNG = np.random.default_rng(0)
READ = """
import json, sys
from harbor.models.task.task import Task
task = Task(sys.argv[1])
print(json.dumps([task.instruction.strip(), task.config.verifier.timeout_sec]))
"""
DOCKERFILE = "COPY paint .\n"
VERIFY = """
if [ "$(cat wall)" = red ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
"""


@pytest.fixture
def python() -> Path:
    named = os.environ.get("COLEARN_HARBOR")
    if not named:
        pytest.skip("COLEARN_HARBOR is not set")
    return Path(named)


def append(path: Path, text: str) -> None:
    path.write_text(f"{path.read_text().rstrip()}\n{text}")


def test_a_task_of_harbors_template_is_read_as_harbor_reads_it_and_its_solution_is_paid(
    python, tmp_path
):
    words = ("init", "colearn/paint", "--task", "--verifier-mode", "shared", "--no-pytest")
    harbor = [str(python.with_name("harbor")), *words, "--output-dir", str(tmp_path)]
    subprocess.run(harbor, check=True, timeout=300)
    folder = tmp_path / "paint"
    append(folder / "instruction.md", "Paint the wall red.\n")
    append(folder / "environment" / "Dockerfile", DOCKERFILE)
    (folder / "environment" / "paint").write_text("echo $1 > wall\n")
    append(folder / "tests" / "test.sh", VERIFY)
    append(folder / "solution" / "solve.sh", "sh paint red\n")
    task = Harbor(str(tmp_path), agents=("agent",), horizon=1)
    [item] = task.items("train")
    read = subprocess.check_output([str(python), "-c", READ, str(folder)], timeout=300)
    assert json.loads(read) == [item.instruction, item.verifier_seconds]
    solution = (folder / "solution" / "solve.sh").read_text()
    state = task.reset(item, RNG)
    assert task.step(state, {"agent": solution}, RNG).reward == 1.0
    assert task.step(state, {"agent": "true"}, RNG).reward == 0.0
