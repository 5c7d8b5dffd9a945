"""HTML of a result for notebooks: the curve, the metrics and the last transcript."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from colearn.record import Run
from colearn.record.fields import Episode
from colearn.report.curves import small_svg
from colearn.report.show import show_number
from colearn.report.summary import Curve


def result_html(run: Run, title: str, curve: Sequence[tuple[int, float | None]]) -> str:
    """A finished run as HTML without scripts; texts of agents are escaped."""
    parts = [Markup("<p>{}</p>").format(title), Markup(_curve_svg(curve)), _metrics(run)]
    if episodes := run.folder.episodes():
        parts.append(_transcript(episodes[-1]))
    return str(Markup("").join(parts))


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
    title = Markup("<summary>episode of {}</summary>").format(episode.item)
    return (
        Markup("<details>")
        + title
        + Markup("<table>")
        + head
        + turns
        + Markup("</table></details>")
    )


def _shown(value: float | None) -> str:
    return "" if value is None else show_number(value)
