"""The nightly run's table: what pytest reported, by marker."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))

from nightly import Row, markers, read_report, table

REPORT = """<testsuites><testsuite>
<testcase classname="tests.a" name="works"/>
<testcase classname="tests.a" name="falls"><failure message="no">no</failure></testcase>
<testcase classname="tests.a" name="breaks"><error message="no">no</error></testcase>
<testcase classname="tests.a" name="rests"><skipped message="no chromium"/></testcase>
<testcase classname="tests.a" name="sleeps"><skipped message="no chromium"/></testcase>
</testsuite></testsuites>"""


def test_a_test_that_fails_or_errors_is_failed_and_skips_are_counted_by_reason() -> None:
    row = read_report("slow", REPORT, 60.0)
    assert row == Row("slow", 1, ("tests.a::falls", "tests.a::breaks"), {"no chromium": 2}, 60.0)


def test_the_table_has_a_line_for_each_marker_with_counts_or_the_reason() -> None:
    rows = [read_report("slow", REPORT, 90.0), Row("gpu", reason="no accelerator here")]
    page = table(rows, "abc123", "2026-11-25", "2 cores")
    assert "| `slow` | 1 | 2 | 2 | 1.5 |  |" in page
    assert "| `gpu` | - | - | - | - | no accelerator here |" in page
    assert "- `slow`: tests.a::falls" in page
    assert "- `slow`: 2 x no chromium" in page


def test_every_marker_that_deselects_tests_is_run() -> None:
    assert {"slow", "gpu", "vllm", "deepspeed", "ray", "frameworks"} <= set(markers())
    assert "fast" not in markers()
