"""Results of the nightly run, one for each test of a marker, and the page that shows them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from xml.etree import ElementTree


@dataclass(frozen=True)
class Result:
    """What became of a test, or of a marker that could not run (`test` is empty then)."""

    marker: str
    test: str
    outcome: str
    """`passed`, `failed`, `skipped` or `cannot run`."""
    commit: str
    reason: str = ""
    """Why it was skipped or could not run."""
    seconds: float = 0.0


class Results:
    """The newest result of each test, in a file that is written after every run of pytest."""

    def __init__(self, file: Path) -> None:
        self.file = file
        lines = file.read_text().splitlines() if file.exists() else []
        self.results = [Result(**json.loads(line)) for line in lines]

    def replace(self, marker: str, paths: Sequence[str], new: Sequence[Result]) -> None:
        """Puts `new` in the place of a marker's results under `paths`; no paths are all of it."""

        def stays(result: Result) -> bool:
            return result.marker != marker or bool(
                paths and result.test and not under(result, paths)
            )

        self.results = [*filter(stays, self.results), *new]
        lines = (json.dumps(asdict(result)) for result in self.results)
        self.file.write_text("".join(f"{line}\n" for line in lines))

    def of(self, marker: str) -> list[Result]:
        """A marker's results."""
        return [result for result in self.results if result.marker == marker]


def under(result: Result, paths: Sequence[str]) -> bool:
    """Whether a test is one of `paths`, or stands in a file or folder that is."""
    return any(
        result.test == path
        or result.test.startswith(tuple(f"{path}{end}" for end in ("::", "[", "/")))
        for path in paths
    )


def read_report(marker: str, commit: str, xml: str) -> list[Result]:
    """The results in pytest's JUnit report. A test belongs to the module that ran it, which its
    class name spells with dots."""
    results = []
    for case in ElementTree.fromstring(xml).iter("testcase"):
        module, name = case.get("classname") or "", case.get("name") or ""
        skip = case.find("skipped")
        outcome, reason = "passed", ""
        if case.find("failure") is not None or case.find("error") is not None:
            outcome = "failed"
        elif skip is not None:
            outcome, reason = "skipped", skip.get("message") or "no reason"
        seconds = float(case.get("time") or 0)
        test = f"{module.replace('.', '/')}.py::{name}" if module else name
        results.append(Result(marker, test, outcome, commit, reason, seconds))
    return results


def page(results: Results, markers: Sequence[str], day: str, machine: str) -> str:
    """A row for each marker, then what failed and what was skipped."""
    lines = [
        "# All tests, by marker",
        "",
        f"Written by `.ci/nightly` on {day}, {machine}. A row shows the newest result of each "
        "test, the time of these tests together and the commits that they ran on. A marker that "
        "could not run here has its reason; failed and skipped tests are listed below the table.",
        "",
        "| marker | passed | failed | skipped | minutes | commit | cannot run here |",
        "|---|---|---|---|---|---|---|",
    ]
    failed, skipped = [], []
    for marker in markers:
        found = results.of(marker)
        if not found:
            lines.append(f"| `{marker}` | - | - | - | - | | not run |")
            continue
        counts = Counter(result.outcome for result in found)
        commits = ", ".join(dict.fromkeys(result.commit for result in found))
        minutes = f"{sum(result.seconds for result in found) / 60:.1f}"
        shown = [counts["passed"], counts["failed"], counts["skipped"], minutes]
        reasons = [result.reason for result in found if result.outcome == "cannot run"]
        cells = [*(["-"] * 4 if reasons else map(str, shown)), commits, *(reasons or [""])]
        lines.append(f"| `{marker}` | {' | '.join(cells)} |")
        failed += [f"- `{marker}`: {result.test}" for result in found if result.outcome == "failed"]
        why = Counter(result.reason for result in found if result.outcome == "skipped")
        skipped += [f"- `{marker}`: {count} x {reason}" for reason, count in why.items()]
    lines += ["", "## Failed", "", *failed] if failed else []
    lines += ["", "## Skipped", "", *skipped] if skipped else []
    return "\n".join(lines) + "\n"
