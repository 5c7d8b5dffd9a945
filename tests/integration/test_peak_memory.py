"""The peak memory that a run records is its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

CHILD = "from colearn.training.run_summary import peak_memory; print(peak_memory())"
PARENT = f"""
import subprocess, sys
held = b"1" * {10**9}
print(len(held), flush=True)
del held
subprocess.run([sys.executable, "-c", {CHILD!r}], check=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the peak is that of `getrusage`")
def test_a_run_that_a_large_process_starts_does_not_record_the_peak_of_that_process() -> None:
    done = subprocess.run([sys.executable, "-c", PARENT], check=True, capture_output=True)
    held, peak = map(int, done.stdout.split())
    assert 10**8 < peak < held
