"""Planted faults are changes of code that is still there."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
from planted import FAULTS, ROOT, Fault


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_code_that_a_fault_changes_stands_once_in_its_file(fault: Fault) -> None:
    assert (ROOT / fault.file).read_text().count(fault.old) == 1
