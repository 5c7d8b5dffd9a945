"""A static page with an episode before and after training."""

from __future__ import annotations

from pathlib import Path

from colearn.errors import CheckpointError
from colearn.runs.record.files import write_text
from colearn.runs.report.draw_picture import Drawing

from .page import render
from .source import read_source
from .transcripts import choose_samples


def write_episode_page(folder: str | Path, page: str | Path) -> Path:
    """Write the episodes of a run or comparison as one HTML file without external resources.

    Errors: CheckpointError if no run is finished or no episode was recorded.
    """
    source = read_source(Path(folder))
    samples = choose_samples(source)
    if not samples:
        raise CheckpointError(
            f"{folder}: no episode was written out; set evaluation.transcripts above 0"
        )
    pictures = [picture for sample in samples for picture in sample.pictures]
    page = Path(page)
    page.parent.mkdir(parents=True, exist_ok=True)
    html = render(
        "episodes.html",
        title=f"{source.compared.task}: an episode before and after training",
        headline=", ".join(sample.algorithm for sample in samples),
        samples=samples,
        drawing=Drawing(pictures, source.compared.agents),
        pictured=bool(pictures),
        several_turns=any(len(sample.before.record.turns) > 1 for sample in samples),
    )
    write_text(page, html)
    return page
