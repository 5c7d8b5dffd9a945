"""HTML pages from jinja2 templates; all text from agents, tasks and files is escaped."""

from __future__ import annotations

import base64
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from colearn.text.printable import printable

from .curves import colour, darkened
from .settings import show
from .show import show_number


def render(template: str, **values: Any) -> str:
    """Render one of `templates/`; every string is escaped unless it is marked as HTML."""
    return _environment().get_template(template).render(values)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("colearn.runs.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "colour": colour,
        "commas": "{:,}".format,
        "darkened": darkened,
        "data_uri": _data_uri,
        "number": show_number,
        "setting": show,
    }
    return environment


def _printable(value: Any) -> Any:
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _data_uri(svg: str) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()
