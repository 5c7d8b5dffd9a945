"""Reports without figures, for tests that read none: drawing takes most of a report's time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from matplotlib.figure import Figure

WRITE = "colearn.runs.report.write"


@contextmanager
def undrawn() -> Iterator[None]:
    """Pages, tables and numbers are as ever; every figure is empty, and no file of one is
    written."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("panel_figure", "training_figure", "small_figure", "calibration_figure"):
            patch.setattr(f"{WRITE}.{name}", lambda *curves: Figure())
        patch.setattr(f"{WRITE}.write_curves", lambda summary, out: None)
        patch.setattr("colearn.runs.report.plots.svg_of", lambda figure: "<svg/>")
        patch.setattr("colearn.runs.report.plots.write_files", lambda figure, svg, path: None)
        yield
