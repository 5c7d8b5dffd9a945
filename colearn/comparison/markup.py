"""Pieces of the report as HTML; all text passes through `escape`."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from string import Template
from typing import Any

from colearn.record import RecordedTurn

from .curves import colour, darkened
from .escape import escape
from .pictures import Drawing
from .settings import Setting, show
from .show import show_number
from .tables import ResultCell, ResultTable
from .transcripts import Shown, TranscriptPair


def swatch(index: int, label: str) -> str:
    """An algorithm's name with its colour in the curves."""
    return f'<span class="swatch" style="--tint:{colour(index)}"></span>{escape(label)}'


def picture(svg: str, caption: str) -> str:
    """An SVG as a figure, light or dark as the reader's colour scheme chooses."""
    return (
        "<figure><picture>"
        f'<source media="(prefers-color-scheme: dark)" srcset="{_data_uri(darkened(svg))}">'
        f'<img src="{_data_uri(svg)}" alt="{escape(caption)}">'
        f"</picture><figcaption>{escape(caption)}</figcaption></figure>"
    )


def definitions(entries: Iterable[tuple[str, str]]) -> str:
    """A list of terms; the descriptions are HTML already."""
    rows = (f"<dt>{escape(term)}</dt><dd>{text}</dd>" for term, text in entries if text)
    return f'<dl class="facts">{"".join(rows)}</dl>'


def settings(values: Mapping[str, Any]) -> str:
    """Settings as `key value` pairs."""
    pairs = (
        f"<span class=setting><b>{escape(key)}</b> {escape(show(value))}</span>"
        for key, value in values.items()
        if value is not None
    )
    return " ".join(pairs)


def table(content: ResultTable, indices: Mapping[str, int], *, wide: bool = False) -> str:
    """A table that becomes one card per row on a narrow screen; `wide` ones leave the column of
    text where the window has room."""
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in content.columns)
    body = "".join(
        f'<tr><th scope="row">{swatch(indices[name], name) if name in indices else escape(name)}'
        f"</th>{''.join(map(_cell, content.columns, cells))}</tr>"
        for name, cells in content.rows
    )
    opening = '<section class="wide">' if wide else "<section>"
    return (
        f"{opening}<h2>{escape(content.title)}</h2>"
        f'<div class="scroll"><table><thead><tr><td></td>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
        f'<p class="note">{escape(content.note)}{_files(content)}</p></section>'
    )


def _files(content: ResultTable) -> str:
    kinds = (("csv", "CSV"), ("tex", "LaTeX"))
    links = (f'<a href="tables/{content.name}.{end}">{kind}</a>' for end, kind in kinds)
    return f" As {' or '.join(links)}."


def settings_rows(found: Sequence[Setting], labels: Sequence[str]) -> str:
    """Settings as a table, a column for each algorithm; one that all share stands once."""
    heads = "".join(
        f'<th scope="col">{swatch(index, label)}</th>' for index, label in enumerate(labels)
    )
    rows = []
    for setting in found:
        cells = (
            "".join(
                f'<td data-label="{escape(label)}"><code>{escape(value)}</code></td>'
                for label, value in zip(labels, setting.values, strict=True)
            )
            if setting.differs
            else f'<td data-label="all" colspan="{len(labels)}">'
            f"<code>{escape(setting.values[0])}</code></td>"
        )
        rows.append(f'<tr><th scope="row">{escape(setting.key)}</th>{cells}</tr>')
    return (
        f'<div class="scroll"><table class="settings"><thead><tr><td></td>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def small_pictures(pictures: Iterable[tuple[str, str]]) -> str:
    """Small figures side by side: (SVG, caption) of each."""
    return f'<div class="figures small">{"".join(picture(*one) for one in pictures)}</div>'


def sample(content: TranscriptPair, index: int, drawing: Drawing) -> str:
    """An algorithm's transcripts before and after training, side by side where there is room."""
    parts = [_episode("Before training", content.before, drawing)]
    if content.after is not None:
        parts.append(_episode("After training", content.after, drawing))
    other = "" if content.after is None or content.same_item else " (different items)"
    return (
        f'<article class="sample"><h3>{swatch(index, content.algorithm)} '
        f'<small>seed {content.seed}{other}</small></h3><div class="episodes">{"".join(parts)}'
        "</div></article>"
    )


def _cell(column: str, cell: ResultCell) -> str:
    text = f"<b>{escape(cell.text)}</b>" if cell.best else escape(cell.text)
    below = cell.note.replace(", ", ",\u00a0")  # an interval stays in one line
    note = f"<small>{escape(below)}</small>" if below else ""
    if cell.blank:
        return '<td class="blank"></td>'
    return f'<td data-label="{escape(column)}"><span>{text} {note}</span></td>'


def _episode(title: str, shown: Shown, drawing: Drawing) -> str:
    episode = shown.record
    metrics = {"return": episode.value, **episode.metrics}
    values = " ".join(
        f"<span class=setting><b>{escape(name)}</b> {escape(_number(value))}</span>"
        for name, value in metrics.items()
    )
    text = None if any(shown.pictures) else episode.picture
    turns = zip(episode.turns, shown.pictures, (None, *shown.pictures), strict=False)
    return (
        f'<section class="episode"><h4>{escape(title)} <small>iteration '
        f"{episode.iteration}, item {escape(episode.item)}</small></h4><p>{values}</p>"
        + (f'<pre class="picture">{escape(text)}</pre>' if text else "")
        + _drawn(episode.drawing)
        + "".join(
            _turn(number, turn, "" if picture is None else drawing.draw(picture, earlier))
            for number, (turn, picture, earlier) in enumerate(turns, start=1)
        )
        + "</section>"
    )


def _drawn(drawing: str | None) -> str:
    """As an image, in which nothing that a run's file holds can run."""
    if drawing is None:
        return ""
    return f'<img class="drawing" alt="What was executed" src="{_data_uri(drawing)}">'


def _turn(number: int, turn: RecordedTurn, drawn: str) -> str:
    agents = dict.fromkeys([*turn.observations, *turn.actions])
    columns = "".join(
        f'<div class="agent"><h6>{escape(agent)}</h6>'
        + (
            f"<details><summary>what it was shown</summary><pre>{escape(turn.observations[agent])}"
            "</pre></details>"
            if agent in turn.observations
            else ""
        )
        + (f"<pre>{escape(turn.actions[agent])}</pre>" if agent in turn.actions else "")
        + "</div>"
        for agent in agents
    )
    return (
        f'<div class="turn"><h5>Turn {number} <small>reward {_number(turn.reward)}</small>'
        f'</h5>{drawn}<div class="agents">{columns}</div></div>'
    )


def _number(value: float | None) -> str:
    return "-" if value is None else show_number(value)


def _data_uri(svg: str) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()


def page(title: str, headline: str, sections: Iterable[str]) -> str:
    """A whole page of its own; empty sections are left out."""
    package = files("colearn.comparison")
    template = Template(package.joinpath("page.html").read_text(encoding="utf-8"))
    return template.substitute(
        title=escape(title),
        headline=escape(headline),
        style=package.joinpath("page.css").read_text(encoding="utf-8"),
        sections="\n".join(section for section in sections if section),
    )
