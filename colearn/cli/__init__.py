"""The command line: thin commands over the library, one module each."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

import colearn
from colearn.comparison.heap import one_heap
from colearn.errors import ColearnError, line_of
from colearn.registry.own_code import find_in
from colearn.text.masking import MaskedStream, masked

from . import (
    compare,
    critic,
    evaluate,
    export,
    gateway,
    listing,
    new,
    play,
    serve,
    sft,
    study,
    train,
)

app = typer.Typer(
    name="colearn",
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _print_version(given: bool) -> None:
    if given:
        print(f"colearn {colearn.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Train teams of language models that run apart."""


app.command()(compare.compare)
app.command()(sft.sft)
app.command()(train.train)
app.command()(evaluate.evaluate)
app.command()(compare.report)
app.command()(export.export)
app.command()(serve.serve)
app.command()(play.play)
app.command()(gateway.gateway)
app.add_typer(new.app)
app.add_typer(critic.app)
app.add_typer(study.app)
app.command()(listing.check)
app.command()(listing.tasks)
app.command()(listing.algorithms)
app.command()(listing.configs)


_MOST = 900
"""Most characters of an error that are printed."""


def main() -> None:
    """Run a command; a ColearnError becomes one line on stderr and exit code 2."""
    one_heap()
    find_in("")  # `module:Class` may name a file in the folder one stands in
    arguments = sys.argv[1:]
    sys.argv[1:] = map(masked, arguments)  # trackers record the command line
    errors = sys.stderr
    sys.stderr = MaskedStream(errors)
    try:
        _run(arguments)
    except SystemExit:
        sys.stderr = errors  # not after another error, whose traceback is yet to be printed
        raise


def _run(arguments: list[str]) -> None:
    try:
        code = app(args=arguments or ["--help"], standalone_mode=False)
    except (ColearnError, typer.TyperException) as error:
        message = error.format_message() if isinstance(error, typer.TyperException) else str(error)
        print(f"error: {_one_line(message)}", file=sys.stderr)
        raise SystemExit(2) from None
    except SystemExit as stop:
        if stop.code not in (None, 0):
            raise
        message = f"{line_of(stop)}: code of the config's ended the program; let it raise instead"
        print(f"error: {_one_line(message)}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        raise SystemExit(130) from None
    raise SystemExit(code or 0)


def _one_line(text: str) -> str:
    """A message as one line: control characters escaped, the middle of a long one left out."""
    shown = "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)
    return shown if len(shown) <= _MOST else f"{shown[: _MOST // 2]} ... {shown[-_MOST // 2 :]}"
