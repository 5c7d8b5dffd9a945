"""The command line: thin commands over the library, one module each."""

from __future__ import annotations

import sys

import typer

from colearn.errors import ColearnError

from . import compare, evaluate, export, listing, new, play, serve, study, train

app = typer.Typer(
    name="colearn",
    help="Train teams of language models that run apart.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.command()(compare.compare)
app.command()(train.train)
app.command()(evaluate.evaluate)
app.command()(compare.report)
app.command()(study.study)
app.command()(export.export)
app.command()(serve.serve)
app.command()(play.play)
app.add_typer(new.app)
app.command()(listing.check)
app.command()(listing.tasks)
app.command()(listing.algorithms)
app.command()(listing.configs)


_MOST = 900
"""Characters of an error."""


def main() -> None:
    """A mistake is one line on stderr and exit code 2; everything else keeps its traceback."""
    sys.path.append("")  # `module:Class` may name a file in the folder one stands in
    try:
        code = app(args=sys.argv[1:] or ["--help"], standalone_mode=False)
    except (ColearnError, typer.TyperException) as error:
        told = error.format_message() if isinstance(error, typer.TyperException) else str(error)
        print(f"error: {_one_line(told)}", file=sys.stderr)
        raise SystemExit(2) from None
    except SystemExit as stop:
        if stop.code not in (None, 0):
            raise
        from colearn.contract.asking import line_of

        told = f"{line_of(stop)}: code of the config's ended the program; let it raise instead"
        print(f"error: {_one_line(told)}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        raise SystemExit(130) from None
    raise SystemExit(code or 0)


def _one_line(text: str) -> str:
    """Line breaks and control characters escaped, a middle of thousands of letters left out,
    whatever a config put into a message."""
    shown = "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)
    return shown if len(shown) <= _MOST else f"{shown[: _MOST // 2]} ... {shown[-_MOST // 2 :]}"
