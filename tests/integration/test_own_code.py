"""Code of the current folder: what a config names is imported, what a library looks for is not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

STRANGER = "open('/dev/stderr', 'w').write('STRANGER ' + __name__ + '\\n')\n"
LOOKED_FOR = ("cupy", "dill", "flash_attn", "pandas", "pynvml", "tensorflow", "torch_xla", "wandb")
"""Packages that torch and transformers look for; those that are installed are found first."""
TASK = """
import numpy as np

from helper import NAME
from colearn.tasks.str_build import StrBuild


class Mine(StrBuild):
    def step(self, state, actions, rng):
        from later import checked

        return checked(super().step(state, actions, rng))


assert NAME == "helper"
"""
CONFIG = """
task:
  {name: "mytask:Mine", prompt: compact, font: small, horizon: 1, strings: [A], test_strings: [E]}
algorithm: {name: magrpo, rollout: {k: 2}}
models: {"*": {path: embedded-tiny-untrained}}
agents: {"*": {sampling: {max_tokens: 2}}}
train: {environment_steps: 4, episodes: 1}
"""
SPAWNED = """
import multiprocessing, sys
from concurrent.futures import ProcessPoolExecutor

from colearn.registry import own_code

if __name__ == "__main__":
    sys.path[:] = [path for path in sys.path if path not in ("", {folder!r})]
    own_code.find_in({folder!r})
    task = own_code.imported("values")
    with own_code.safe_path() as added:
        context = multiprocessing.get_context("spawn")
        given = (own_code.folders(), added)
        with ProcessPoolExecutor(
            1, context, initializer=own_code.begin_worker, initargs=given
        ) as pool:
            print(pool.submit(task.doubled, task.Value(3)).result())
"""


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words,
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )


@pytest.fixture
def folder(tmp_path):
    """A config's folder, in which files have the names of packages that libraries look for."""
    for name in LOOKED_FOR:
        (tmp_path / f"{name}.py").write_text(STRANGER)
    (tmp_path / "later.py").write_text("def checked(outcome):\n    return outcome\n")
    (tmp_path / "helper.py").write_text("from below import NAME\n")
    (tmp_path / "below.py").write_text("NAME = 'helper'\n")
    (tmp_path / "mytask.py").write_text(TASK)
    (tmp_path / "config.yaml").write_text(CONFIG)
    return tmp_path


def test_a_run_imports_what_its_config_names_and_no_stranger(folder):
    words = ("train", "config.yaml", "--out", "run", "--set", "run.step_workers=1")
    done = run(folder, sys.executable, "-P", "-m", "colearn", *words)
    assert done.returncode == 0, done.stderr
    assert "STRANGER" not in done.stderr and "mytask.py, which the config" in done.stderr


def test_a_spawned_worker_finds_the_modules_of_pickled_values_and_no_stranger(folder):
    for name in ("signal", "pickle", "dill"):
        (folder / f"{name}.py").write_text(STRANGER)
    (folder / "shown.py").write_text("class Shown(int):\n    pass\n")
    (folder / "values.py").write_text(
        "class Value(int):\n    pass\n\n\n"
        "def doubled(value):\n    from shown import Shown\n\n    return Shown(2 * value)\n"
    )
    script = folder.parent / "spawned.py"
    script.write_text(SPAWNED.format(folder=str(folder)))
    done = run(folder, sys.executable, str(script))
    assert done.stdout.split() == ["6"], done.stderr
    assert "STRANGER" not in done.stderr


def test_a_module_that_only_a_library_asks_for_is_not_found(folder, monkeypatch):
    import importlib.util

    from colearn.registry import own_code

    others = [one for one in sys.meta_path if not isinstance(one, own_code.FolderFinder)]
    monkeypatch.setattr(sys, "meta_path", others)  # commands of other tests ran in this process
    for name in ("own_marker", "own_other"):
        (folder / f"{name}.py").write_text("")
    own_code.find_in(str(folder))
    assert importlib.util.find_spec("own_marker") is None
    assert own_code.imported("own_marker").__file__ == str(folder / "own_marker.py")
    assert importlib.util.find_spec("own_other") is None
