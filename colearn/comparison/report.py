"""report.html, table.md, curves.png and summary.json of a comparison's folder."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from . import markup
from .curves import panel_svg, small_svg, write_curves
from .escape import escape
from .pictures import Drawing
from .show import show_number
from .source import Compared, read_source
from .summary import AXES, DIAGNOSTICS, SMOOTHING, RunSummary, Summary, summarise
from .tables import ResultTable, tables
from .transcripts import TranscriptPair, choose_samples

_CAPTIONS = {
    "environment_steps": "Return by environment steps",
    "generated_tokens": "Return by generated tokens",
    "wall_seconds": "Return by training time",
}


def write_report(folder: str | Path) -> Path:
    """Report what is finished in a comparison's folder, or a single run; the path of report.html.

    Runs that are not finished are named in it. Errors: CheckpointError if nothing is finished or a
    file cannot be read.
    """
    source = read_source(Path(folder))
    summary = summarise(source)
    shown = tables(summary)
    out = source.folder
    summary.write(out / "summary.json")
    write_curves(summary, out / "curves.png")
    (out / "table.md").write_text(_markdown(summary, shown), encoding="utf-8")
    write_tables(shown, out)
    report = out / "report.html"
    report.write_text(_html(summary, shown, choose_samples(source)), encoding="utf-8")
    return report


def write_tables(shown: list[ResultTable], out: Path) -> None:
    """Each table as CSV and as LaTeX, in `out`/tables."""
    folder = out / "tables"
    folder.mkdir(exist_ok=True)
    for table in shown:
        (folder / f"{table.name}.csv").write_text(table.csv(), encoding="utf-8")
        (folder / f"{table.name}.tex").write_text(table.latex(), encoding="utf-8")


def _markdown(summary: Summary, shown: list[ResultTable]) -> str:
    lines = [f"# {_title(summary.compared)}", "", summary.headline, ""]
    if summary.missing:
        names = ", ".join(f"{missing.run} ({missing.status})" for missing in summary.missing)
        lines += [f"Missing: {names}.", ""]
    return "\n".join([*lines, *(table.markdown() for table in shown)])


def _html(summary: Summary, shown: list[ResultTable], samples: list[TranscriptPair]) -> str:
    indices = {label: index for index, label in enumerate(summary.algorithms)}
    sections = [
        _missing(summary),
        _facts(summary),
        _settings(summary),
        _curves(summary),
        *(markup.table(table, indices) for table in shown),
        _more_curves(summary),
        _samples(samples, indices, summary.compared.agents),
        _runs(summary, indices),
        _method(summary),
    ]
    return markup.page(_title(summary.compared), summary.headline, sections)


def _title(compared: Compared) -> str:
    return f"{', '.join(compared.algorithms)} on {compared.task}"


def _missing(summary: Summary) -> str:
    if not summary.missing:
        return ""
    rows = "".join(
        f"<li><code>{escape(missing.run)}</code>: {escape(missing.status)}"
        + (
            f", {missing.environment_steps:,} environment steps made"
            if missing.environment_steps
            else ""
        )
        + "</li>"
        for missing in summary.missing
    )
    total = len(summary.missing) + len(summary.runs)
    return (
        f'<section class="warning"><h2>{len(summary.missing)} of {total} runs are missing here</h2>'
        f"<ul>{rows}</ul><p>Everything below rests on the finished ones alone.</p></section>"
    )


def _facts(summary: Summary) -> str:
    compared = summary.compared
    trained = compared.parameters
    models = (
        f"<code>{escape(name)}</code> {escape(path)}{_trained(trained.get(name))}"
        for name, path in compared.models.items()
    )
    critics = [
        f"<code>{escape(name)}</code>{_trained(count)}"
        for name, count in trained.items()
        if name not in compared.models
    ]
    algorithms = (
        f"<div>{markup.swatch(index, label)} "
        f"<small>seeds {_listed(summary.algorithms[label].seeds)}</small></div>"
        for index, label in enumerate(compared.algorithms)
    )
    budget = compared.environment_steps
    return (
        "<section><h2>What was compared</h2>"
        + markup.definitions(
            [
                ("Algorithms", "".join(algorithms)),
                (
                    "Task",
                    f"{escape(compared.task)} {markup.settings(compared.task_settings)}",
                ),
                ("Agents", escape(", ".join(compared.agents))),
                ("Models", "<br>".join(models)),
                ("Critic", "<br>".join([escape(compared.critic or ""), *critics])),
                (
                    "Budget",
                    f"{budget:,} environment steps (joint actions) per run" if budget else "",
                ),
                ("colearn", escape(", ".join(compared.versions))),
                (
                    "Command",
                    f"<code>{escape(compared.command)}</code>" if compared.command else "",
                ),
            ]
        )
        + "</section>"
    )


def _trained(parameters: int | None) -> str:
    return "" if parameters is None else f" ({parameters:,} trained parameters)"


def _curves(summary: Summary) -> str:
    legend = " ".join(
        f"<span>{markup.swatch(index, label)}</span>"
        for index, label in enumerate(summary.algorithms)
    )
    figures = "".join(
        markup.picture(
            panel_svg(summary, axis),
            _CAPTIONS[axis],
        )
        for axis in AXES
    )
    optimum = (
        f" The dashed line is the optimum, {show_number(summary.optimum)}."
        if summary.optimum is not None
        else ""
    )
    return (
        f'<section><h2>Learning curves</h2><p class="legend">{legend}</p>'
        f'<div class="figures">{figures}</div><p class="note">Mean evaluation return, shaded with '
        "its 95% interval over seeds; thin lines are single seeds. Smoothed by a "
        f"time-weighted exponential moving average ({SMOOTHING:.0%} of the axis); the tables are "
        f"not smoothed.{optimum}</p></section>"
    )


def _settings(summary: Summary) -> str:
    compared = summary.compared
    labels = list(compared.algorithms)
    differing = [setting for setting in compared.settings if setting.differs]
    shared = [setting for setting in compared.settings if not setting.differs]
    first = (
        markup.settings_rows(differing, labels)
        if differing
        else '<p class="note">Nothing differs.</p>'
    )
    return (
        f"<section><h2>Settings</h2>{first}<details><summary>The other {len(shared)} settings"
        f"</summary>{markup.settings_rows(shared, labels)}</details>"
        '<p class="note">What differs between algorithms, then everything else, with the defaults '
        "of task and algorithm spelled out. A key is what <code>--set</code> takes.</p></section>"
    )


def _more_curves(summary: Summary) -> str:
    """The task's own metrics, then diagnostics of the updates."""
    algorithms = list(summary.algorithms.values())
    names = dict.fromkeys(name for a in algorithms for name in a.metrics_curves)
    metrics = [
        (
            name,
            {
                n: a.metrics_curves[name]
                for n, a in enumerate(algorithms)
                if name in a.metrics_curves
            },
        )
        for name in names
    ]
    diagnostics = [
        (title, {n: a.diagnostics[name] for n, a in enumerate(algorithms) if name in a.diagnostics})
        for name, title in DIAGNOSTICS.items()
    ]
    parts = [
        f"<h3>{title}</h3>"
        + markup.small_pictures((small_svg(curves), caption) for caption, curves in found if curves)
        for title, found in (("The task's own metrics", metrics), ("Diagnostics", diagnostics))
        if any(curves for _, curves in found)
    ]
    if not parts:
        return ""
    return (
        f'<section><h2>More curves</h2>{"".join(parts)}<p class="note">Over environment steps; '
        "colours, intervals and smoothing as above. Metrics are those of evaluations, diagnostics "
        "those of updates, means over the models.</p></section>"
    )


def _runs(summary: Summary, indices: dict[str, int]) -> str:
    rows = "".join(
        f'<tr><th scope="row">{markup.swatch(indices[run.algorithm], run.algorithm)}</th>'
        f'<td data-label="Seed">{run.seed}</td>'
        f'<td data-label="Return after">{_shown(run.final_return)}</td>'
        f'<td data-label="Best">{_best(run)}</td>'
        f'<td data-label="Iterations">{run.iterations:,}</td>'
        f'<td data-label="Files">{_links(run)}</td></tr>'
        for run in summary.runs
    )
    heads = ("Seed", "Return after", "Best return", "Iterations", "Files")
    head = "".join(f'<th scope="col">{name}</th>' for name in heads)
    return (
        '<section><h2>Runs</h2><div class="scroll"><table><thead><tr><td></td>'
        f"{head}</tr></thead><tbody>{rows}</tbody></table></div></section>"
    )


def _links(run: RunSummary) -> str:
    links = (f'<a href="{escape(quote(path))}">{name}</a>' for name, path in run.files.items())
    return " ".join(links)


def _best(run: RunSummary) -> str:
    if run.best is None:
        return "-"
    return f"{show_number(run.best.value)} <small>iteration {run.best.iteration:,}</small>"


def _shown(value: float | None) -> str:
    return "-" if value is None else show_number(value)


def _samples(samples: list[TranscriptPair], indices: dict[str, int], agents: list[str]) -> str:
    if not samples:
        return ""
    pictures = [picture for sample in samples for picture in sample.pictures]
    drawing = Drawing(pictures, agents)
    shown = "".join(markup.sample(each, indices[each.algorithm], drawing) for each in samples)
    turns = max(len(sample.before.pictures) for sample in samples)
    return (
        '<section><h2>Transcripts</h2><p class="note">The first item that was written out both '
        "before and after training, from each algorithm's first seed: not chosen by its result."
        f"</p>{drawing.legend(changes=turns > 1) if pictures else ''}{shown}</section>"
    )


def _method(summary: Summary) -> str:
    fewest = min(len(algorithm.seeds) for algorithm in summary.algorithms.values())
    caution = (
        f" With {fewest} seed{'s' if fewest > 1 else ''} neither a change nor a difference can be "
        "told from chance at 95%; four can."
        if fewest < 4
        else ""
    )
    return (
        '<section><h2>How to read the intervals</h2><p class="note">Every interval of a mean is '
        "Student's over seeds; the unit is the run, not the episode. It covers 95% where runs "
        "scatter normally and 93% at a skewness of 1; where single runs break it covers less "
        "(<code>python -m colearn.comparison.coverage</code> prints the rates). A change counts as "
        f"one from four seeds on.{caution} Every number here is in summary.json.</p></section>"
    )


def _listed(seeds: list[int]) -> str:
    return ", ".join(map(str, seeds))
