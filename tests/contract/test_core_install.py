"""An install without extras trains, compares, reports and exports."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import packages_distributions, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

RUN = """
import sys

class Core:
    # a finder that does not see the packages of extras

    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        return None if name in BLOCKED else self.finder.find_spec(name, path, target)

    def __getattr__(self, name):
        return getattr(self.finder, name)

sys.meta_path[:] = [Core(finder) for finder in sys.meta_path]

import colearn
import colearn.entry.cli, colearn.deploy.export
from colearn import registry
from colearn.runs.report import curves, plots

for module in (curves, plots):  # matplotlib is imported; one figure shows what all would
    module.write_files = lambda figure, svg, path: None
plots.svg_of = lambda figure: "<svg/>"

for name in registry.names("algorithms"):
    registry.algorithm_class(name, "algorithm.name")
for name in registry.names("tasks"):
    registry.task_class(name, "task.name")

def matches(prompts, completions, colour, **kwargs):
    return [float(said.strip() == right) for said, right in zip(completions, colour)]

tiny = {"path": "embedded-tiny-untrained"}
compared = colearn.compare(
    {"name": "dataset", "agents": ["draft", "final"], "words": ["red", "blue"]},
    "compared",
    algorithms=["collm_cc"],
    seeds=1,
    data=[{"prompt": f"paint {n} red", "colour": "red"} for n in range(4)],
    reward=matches,
    models=tiny,
    critic=tiny,
    train={"environment_steps": 4, "episodes": 4},
    evaluation={"episodes": 2},
    agents={"*": {"sampling": {"max_tokens": 2}}},
)
print(compared)
"""


def _core() -> set[str]:
    """The distributions that an install without extras has."""
    known: set[str] = set()
    waiting = ["colearn-llm"]
    while waiting:
        for line in requires(waiting.pop()) or ():
            wanted = Requirement(line)
            name = canonicalize_name(wanted.name)
            if name not in known and (not wanted.marker or wanted.marker.evaluate({"extra": ""})):
                known.add(name)
                waiting.append(name)
    return known


def test_a_comparison_needs_no_extra(tmp_path: Path) -> None:
    core = _core()
    blocked = {
        module
        for module, homes in packages_distributions().items()
        if module not in ("colearn", "setuptools", "pkg_resources", "_distutils_hack")
        and not {canonicalize_name(home) for home in homes} & core
    }
    assert {"fastapi", "httpx"} <= blocked
    code = RUN.replace("BLOCKED", repr(sorted(blocked)))
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert "report: compared/report.html" in done.stdout
