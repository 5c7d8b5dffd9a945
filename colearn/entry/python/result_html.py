"""Formats results as HTML for notebooks: curves, metrics and a transcript."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from colearn.runs.record import Run, RunFolder
from colearn.runs.record.fields import Episode
from colearn.runs.record.folder import RUNS
from colearn.runs.report.curves import small_svg
from colearn.runs.report.show import show_number
from colearn.runs.report.summary import Curve


def result_html(run: Run, title: str, label: str, curve: Sequence[tuple[int, float | None]]) -> str:
    """Returns a finished run as HTML without scripts; agents' texts are escaped.

    label: name of the curve's metric.
    """
    axes = f"evaluation {label} over environment steps (joint actions)"
    parts = [
        Markup("<p><b>{}</b></p><p>{}</p>").format(title, axes),
        Markup(_curve_svg(curve)),
        _metrics(run),
    ]
    if episodes := run.folder.episodes():
        parts.append(_transcript(episodes[-1]))
    return str(Markup("").join(parts))


def comparison_html(folder: Path, headline: str) -> str:
    """Returns a finished comparison as HTML without scripts: the headline, the curves with their
    intervals, the first table and the last transcript."""
    picture = base64.b64encode((folder / "curves.png").read_bytes()).decode()
    parts = [
        Markup("<p><b>{}</b></p>").format(headline),
        Markup(
            '<img alt="learning curves" style="max-width: 100%" src="data:image/png;base64,{}">'
        ).format(picture),
        _first_table((folder / "table.md").read_text(encoding="utf-8")),
    ]
    for path in sorted((folder / RUNS).iterdir()):
        if episodes := RunFolder(path).episodes():
            parts.append(_transcript(episodes[-1]))
            break
    return str(Markup("").join(parts))


def _first_table(text: str) -> Markup:
    """The first table of a Markdown text."""
    lines = text[text.index("\n|") + 1 :].partition("\n\n")[0].splitlines()
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    parts = [_row(head, Markup("th")), *(_row(row, Markup("td")) for row in rows)]
    return Markup("<table>{}</table>").format(Markup("").join(parts))


def _row(cells: Sequence[str], tag: Markup) -> Markup:
    html_cells = [Markup("<{0}>{1}</{0}>").format(tag, cell.replace("**", "")) for cell in cells]
    return Markup("<tr>{}</tr>").format(Markup("").join(html_cells))


def _curve_svg(curve: Sequence[tuple[int, float | None]]) -> str:
    measured = [(float(steps), value) for steps, value in curve if value is not None]
    steps, values = [x for x, _ in measured], [y for _, y in measured]
    return small_svg({0: Curve(x=steps, mean=values, low=values, high=values, seeds={})})


def _metrics(run: Run) -> Markup:
    first, last = run.evaluations[0], run.evaluations[-1]
    rows = Markup("").join(
        Markup("<tr><td>{}</td><td>{}</td><td>{}</td></tr>").format(
            name, _shown(first.metrics.get(name)), _shown(value)
        )
        for name, value in last.metrics.items()
    )
    head = Markup("<tr><th></th><th>{} steps</th><th>{} steps</th></tr>").format(
        first.environment_steps, last.environment_steps
    )
    return Markup("<table>") + head + rows + Markup("</table>")


def _transcript(episode: Episode) -> Markup:
    """An evaluation episode, turn by turn."""
    turns = Markup("").join(
        Markup(
            "<tr><td>{}</td><td>{}</td><td><pre>{}</pre></td><td><pre>{}</pre></td></tr>"
        ).format(number, agent, turn.observations.get(agent, ""), turn.actions.get(agent, ""))
        for number, turn in enumerate(episode.turns)
        for agent in turn.actions
    )
    head = Markup("<tr><th>turn</th><th>agent</th><th>observation</th><th>action</th></tr>")
    title = Markup("<summary>an episode of the last evaluation: {}</summary>").format(episode.item)
    return (
        Markup("<details open>")
        + title
        + Markup("<table>")
        + head
        + turns
        + Markup("</table></details>")
    )


def _shown(value: float | None) -> str:
    return "" if value is None else show_number(value)
