"""Number formatting for tables and headlines."""

from __future__ import annotations

import math
from collections.abc import Sequence

from colearn.runs.over_seeds import MeanEstimate


def show_number(value: float | None) -> str:
    """Formats a number with three significant digits and no exponent; from 1000 on, as a whole
    number with thousands separators. None is a dash."""
    if value is None:
        return "-"
    if abs(value) >= 999.5:
        return f"{value:,.0f}"
    if abs(value) < 5e-5:
        return "0"
    return f"{value:.3g}" if abs(value) >= 1e-4 else f"{value:.4f}"


def show_estimate(value: MeanEstimate | None) -> str:
    """Formats an estimate as `mean [low, high]`: only the mean if there is no interval, a dash if
    there is no value.

    The bounds have as many decimals as the mean, which has three significant digits. If the mean is
    less than a tenth of the larger bound, that bound determines the decimals.
    """
    if value is None:
        return "-"
    if value.low is None or value.high is None or value.low == value.high:
        alone = show_number(value.mean)
        return alone if value.low is None else f"{alone} [{alone}, {alone}]"
    widest = max(abs(value.low), abs(value.high))
    size = abs(value.mean) if abs(value.mean) >= widest / 10 else widest
    decimals = min(max(2 - math.floor(math.log10(size)), 0), 4) if size < 999.5 else 0
    mean, low, high = (
        # no minus before a zero
        f"{round(number, decimals) + 0.0:,.{decimals}f}"
        for number in (value.mean, value.low, value.high)
    )
    return f"{mean} [{low}, {high}]"


def show_mean(value: MeanEstimate) -> str:
    """The mean of an estimate as `show_estimate` formats it, without the interval."""
    return show_estimate(value).partition(" [")[0]


def show_over_seeds(value: MeanEstimate | None) -> str:
    """Formats an estimate as `show_estimate` does, and says where one seed gives no interval."""
    alone = value is not None and value.low is None
    return f"{show_estimate(value)} (one seed)" if alone else show_estimate(value)


_SPELLED_OUT = 3
"""Maximum number of runs that a note of the headline spells out."""


def first_sentences(sentences: Sequence[str], rest: str) -> str:
    """The first sentences of a note, followed by `rest` if there are more."""
    return " ".join(sentences[:_SPELLED_OUT]) + (rest if len(sentences) > _SPELLED_OUT else "")


LONGEST_HEADLINE = 360
"""Maximum number of characters of a headline: three lines of a page or of a wide terminal."""
_LEFT_OUT = "The report has {} more {}."


def in_three_lines(forms: Sequence[str], notes: Sequence[str]) -> tuple[str, list[str]]:
    """Returns a headline of at most `LONGEST_HEADLINE` characters, and the sentences that it leaves
    out. forms: forms of the finding, the fullest first. The headline has the first one that leaves
    half a line, or else the start of the last one, and the notes that fit behind it, in order.
    Empty notes are passed over."""
    most = LONGEST_HEADLINE - 60
    finding = next((form for form in forms if len(form) <= most), forms[-1])
    head = finding if len(finding) <= most else f"{finding[: most - 4]} ..."
    left_out = [] if head == forms[0] else [forms[0]]
    for note in filter(None, notes):
        if len(head) + len(note) + len(_LEFT_OUT) + 4 <= LONGEST_HEADLINE:
            head = f"{head} {note}"
        else:
            left_out.append(note)
    if left_out:
        more = _LEFT_OUT.format(len(left_out), "note" if len(left_out) == 1 else "notes")
        head = f"{head} {more}"
    return head, left_out
