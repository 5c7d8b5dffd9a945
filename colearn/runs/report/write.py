"""Writes the report of a comparison's folder: report.html, figures, tables and summary.json."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from colearn.runs.record.files import published
from colearn.runs.record.limits import MOST_CURVES
from colearn.runs.report.draw_picture import Drawing
from colearn.text.printable import printable

from .curves import (
    calibration_figure,
    curves_csv,
    panel_figure,
    small_figure,
    training_figure,
    write_curves,
)
from .page import render
from .plots import Plot, Plots
from .result_table import ResultTable
from .source import Compared, read_source
from .summarise import SMOOTHING, summarise
from .summary import DIAGNOSTICS, OBJECTIVE, Summary, is_objective
from .tables import column_title, tables
from .transcripts import TranscriptPair, choose_samples

_CAPTIONS = {
    "environment_steps": "by environment steps",
    "generated_tokens": "by generated tokens",
    "wall_seconds": "by training time",
}


def write_report(folder: str | Path) -> Path:
    """Write the report of the finished runs in a comparison's folder, or of a single run.

    Returns the path of report.html. The report names the runs that are not finished.
    Errors: CheckpointError if no run is finished or a file cannot be read.
    """
    source = read_source(Path(folder))
    summary = summarise(source)
    result_tables = tables(summary)
    plots = Plots(written=True)
    html = _html(summary, result_tables, choose_samples(source), plots)
    with published(source.folder) as out:
        summary.write(out / "summary.json")
        write_curves(summary, out)
        (out / "curves.csv").write_text(curves_csv(summary), encoding="utf-8")
        plots.write(out)
        (out / "table.md").write_text(_markdown(summary, result_tables), encoding="utf-8")
        write_tables(result_tables, out)
        (out / "report.html").write_text(html, encoding="utf-8")
    return source.folder / "report.html"


def write_tables(result_tables: list[ResultTable], out: Path) -> None:
    """Write each table as CSV and as LaTeX into the new folder `out`/tables."""
    folder = out / "tables"
    folder.mkdir()
    for table in result_tables:
        (folder / f"{table.name}.csv").write_text(table.csv(), encoding="utf-8")
        (folder / f"{table.name}.tex").write_text(table.latex(), encoding="utf-8")


def _markdown(summary: Summary, result_tables: list[ResultTable]) -> str:
    lines = [f"# {_title(summary.compared)}", "", summary.headline, ""]
    lines += [*(f"- {printable(note)}" for note in summary.notes), ""] if summary.notes else []
    if summary.missing:
        names = ", ".join(f"{missing.run} ({missing.status})" for missing in summary.missing)
        lines += [f"Missing: {names}.", ""]
    return "\n".join([*lines, *(table.markdown() for table in result_tables)])


def live_page(folder: Path, refresh: int | None) -> str:
    """Return an HTML page with the curves and transcripts of a run that may be unfinished. refresh:
    seconds after which a browser reloads the page; None means never.

    Errors: CheckpointError before the first evaluation.
    """
    source = read_source(folder, running=True)
    return _html(summarise(source), [], choose_samples(source), Plots(written=False), refresh)


def _html(
    summary: Summary,
    result_tables: list[ResultTable],
    samples: list[TranscriptPair],
    plots: Plots,
    refresh: int | None = None,
) -> str:
    compared = summary.compared
    judged = column_title(compared.headline.metric)
    pictures = [picture for sample in samples for picture in sample.pictures]
    turns = max((len(sample.before.pictures) for sample in samples), default=0)
    seeds = Counter(run.algorithm for run in summary.runs).values()
    return render(
        "report.html",
        title=_title(compared),
        headline=summary.headline,
        summary=summary,
        compares=len(summary.algorithms) > 1,
        judged=judged,
        critics={n: c for n, c in compared.parameters.items() if n not in compared.models},
        indices={label: index for index, label in enumerate(summary.algorithms)},
        refresh=refresh,
        curves=_main_curves(summary, judged, plots),
        smoothing=f"{SMOOTHING:.0%}",
        tables=result_tables,
        more_curves=_more_curves(summary, plots),
        calibrations=[
            plots.add(
                f"calibration_{label}",
                f"{label}: value against return",
                calibration_figure(a.critic.calibration, index),
            )
            for index, (label, a) in enumerate(summary.algorithms.items())
            if a.critic is not None and a.critic.calibration
        ],
        samples=samples,
        pictured=bool(pictures),
        drawing=Drawing(pictures, compared.agents),
        several_turns=turns > 1,
        fewest=min(seeds),
        most=max(seeds),
    )


def _main_curves(summary: Summary, judged: str, plots: Plots) -> list[Plot]:
    """Draws the headline metric over each axis, and the training return."""
    curves = [
        plots.add(f"{judged}_by_{axis}", f"{judged} {caption}", panel_figure(summary, axis))
        for axis, caption in _CAPTIONS.items()
    ]
    training = training_figure(summary)
    if training is not None:
        curves.insert(1, plots.add("training_return", "Return in training", training))
    return curves


def _title(compared: Compared) -> str:
    return f"{', '.join(compared.algorithms)} on {compared.task}"


def _more_curves(summary: Summary, plots: Plots) -> dict[str, list[Plot]]:
    """Draws the other metrics, the training objective and update diagnostics. The keys are
    titles."""
    algorithms = list(summary.algorithms.values())
    names = dict.fromkeys(name for a in algorithms for name in a.metrics_curves)
    curves_by_name = {name: [a.metrics_curves.get(name) for a in algorithms] for name in names}
    task_metrics = {
        name: curves for name, curves in curves_by_name.items() if not is_objective(name)
    }
    objective = {name: curves for name, curves in curves_by_name.items() if name == OBJECTIVE}
    updates = {
        title: [a.diagnostics.get(name) for a in algorithms] for name, title in DIAGNOSTICS.items()
    }
    groups = {
        "Other metrics": task_metrics,
        "Training objective": objective,
        "Diagnostics": updates,
    }
    drawn: dict[str, list[Plot]] = {}
    for title, group in groups.items():
        known = {
            caption: {n: curve for n, curve in enumerate(curves) if curve is not None}
            for caption, curves in group.items()
        }
        captions = [caption for caption, curves in known.items() if curves]
        if len(captions) > MOST_CURVES:
            title += f" ({MOST_CURVES} of {len(captions)}; all are in summary.json)"
        if captions:
            drawn[title] = [plots.add(c, c, small_figure(known[c])) for c in captions[:MOST_CURVES]]
    return drawn
