"""What the command line prints, also where the device takes no more."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from colearn.entry.cli.output import CommandOutput, Errors, OutputLost
from colearn.text.masking import MASK

FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="this machine has no /dev/full")


def run(*arguments: str, out: str, err: str) -> tuple[int, str, str]:
    command = f'"$0" -m colearn "$@" >{out} 2>{err}'
    done = subprocess.run(
        ["sh", "-c", command, sys.executable, *arguments], capture_output=True, text=True
    )
    return done.returncode, done.stdout, done.stderr


@needs_full
@pytest.mark.parametrize(
    "arguments", [["configs"], ["--version"], ["--help"], ["tasks"]], ids=lambda words: words[0]
)
def test_a_full_device_is_one_line(arguments: list[str]) -> None:
    code, _, err = run(*arguments, out="/dev/full", err="&2")
    assert (code, err) == (
        2,
        "error: standard output: No space left on device; write to a place with room\n",
    )


@needs_full
def test_notes_that_a_full_device_does_not_take_change_nothing() -> None:
    assert run("trian", out="&1", err="/dev/full")[0] == 2
    code, out, _ = run("--version", out="&1", err="/dev/full")
    assert code == 0 and out.startswith("colearn ")


@pytest.mark.parametrize("arguments", ["configs", "check --help"])
def test_a_reader_that_goes_away_is_no_error(arguments: str) -> None:
    """Typer writes the first, rich the second. A pipe that is closed before the first byte is not
    a matter of time, as one that is closed behind its first line is."""
    closed, writing = os.pipe()
    os.close(closed)
    command = [sys.executable, "-m", "colearn", *arguments.split()]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert done.stderr == "" and done.returncode == 1


def test_standard_error_masks_what_is_written_to_it() -> None:
    below = io.StringIO()
    stream = Errors(below)
    print("lost http://ada:SWORDFISH@host", file=stream)  # type: ignore[call-overload]
    assert below.getvalue() == f"lost http://{MASK}@host\n"
    assert not stream.isatty()


def test_standard_output_that_other_code_has_closed_is_one_line() -> None:
    below = io.StringIO()
    stream = CommandOutput(below)
    below.close()
    for call in (lambda: stream.write("a"), stream.flush):
        with pytest.raises(OutputLost, match="standard output: was closed by code of the config"):
            call()


def test_notes_to_a_standard_error_that_other_code_has_closed_change_nothing() -> None:
    below = io.StringIO()
    stream = Errors(below)
    below.close()
    assert stream.write("a note") == 6
    stream.flush()
