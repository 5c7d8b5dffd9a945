"""Frozen objects: a run's own are collected again after it, a program's stay frozen."""

from __future__ import annotations

import gc
import subprocess
import sys

from colearn.training.garbage import few_collections

PROGRAM = """
import gc
from colearn.training.garbage import few_collections

with few_collections():
    print(gc.get_freeze_count() > 10 * len(gc.get_objects()))
print(gc.get_freeze_count())
"""


def test_a_run_freezes_what_is_there_and_unfreezes_it() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.stdout.split() == ["True", "0"], done.stderr


def test_what_a_program_froze_itself_stays_frozen() -> None:
    """As the tests' own session did after it collected them."""
    frozen = gc.get_freeze_count()
    assert frozen > len(gc.get_objects())
    with few_collections():
        assert gc.get_freeze_count() == frozen
    assert gc.get_freeze_count() == frozen
