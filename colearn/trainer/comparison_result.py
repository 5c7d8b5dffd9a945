"""Result of a comparison: the comparison's folder, report and summary numbers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup


@dataclass(frozen=True)
class ComparisonResult:
    """A finished comparison. A notebook displays the comparison's curves, its table and an
    episode."""

    folder: Path
    """Folder that `colearn report` reads. A call of `compare` with the same arguments adds runs to
    this folder."""

    @property
    def report(self) -> Path:
        """Path of the page with the curves and the transcripts."""
        return self.folder / "report.html"

    @property
    def summary(self) -> dict[str, Any]:
        """The content of summary.json, which lists every metric of each algorithm at the start and
        at the end of training."""
        read: dict[str, Any] = json.loads((self.folder / "summary.json").read_text())
        return read

    def __fspath__(self) -> str:
        return str(self.report)

    def __str__(self) -> str:
        table = (self.folder / "table.md").read_text().strip()
        return f"{self.summary['headline']}\n\n{table}\n\nreport: {self.report}"

    def _repr_html_(self) -> str:
        from .result_html import comparison_html  # draws with matplotlib

        shown = comparison_html(self.folder, self.summary["headline"])
        return f"{shown}{Markup('<p>report: {}</p>').format(self.report)}"
