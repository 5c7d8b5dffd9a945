"""The command line. Every command has a separate module, which is a thin layer over the library."""

from __future__ import annotations

import io
import sys
import traceback
from pathlib import Path
from typing import Annotated

import rich
import typer

import colearn
from colearn.errors import ColearnError, ConfigError, is_disk_error, line_of
from colearn.registry.own_code import find_in
from colearn.runs.comparison.heap import one_heap
from colearn.text.masking import masked
from colearn.text.notes import speaks

from . import (
    compare,
    critic,
    evaluate,
    export,
    gateway,
    listing,
    measure,
    new,
    play,
    serve,
    sft,
    study,
    train,
)
from .output import CommandOutput, Errors

app = typer.Typer(
    name="colearn",
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _print_version(requested: bool) -> None:
    if requested:
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
    """Train teams of language models jointly, and deploy each agent independently.

    A first comparison that downloads nothing: colearn compare quickstart
    """


TRAIN, RUNS, DEPLOY, SHIPPED = "Train", "Finished runs", "Agents", "Tasks and what is shipped"
"""Panel titles in the help output."""

app.command(rich_help_panel=TRAIN, short_help="Compare algorithms on a task, over seeds.")(
    compare.compare
)
app.command(rich_help_panel=TRAIN, short_help="Train one algorithm on one task with one seed.")(
    train.train
)
app.command(rich_help_panel=TRAIN, short_help="Measure a device for the times of dry runs.")(
    measure.measure
)
app.command(rich_help_panel=TRAIN, short_help="Teach each agent recorded dialogues (TRL).")(sft.sft)
app.command(rich_help_panel=RUNS, short_help="Evaluate a checkpoint of a run.")(evaluate.evaluate)
app.command(rich_help_panel=RUNS, short_help="Write the report again.")(compare.report)
app.add_typer(critic.app, rich_help_panel=RUNS)
app.command(rich_help_panel=RUNS, short_help="Play teams of agents from different runs.")(
    study.study
)
app.command(rich_help_panel=DEPLOY, short_help="Export each agent, or each critic, as a folder.")(
    export.export
)
app.command(rich_help_panel=DEPLOY, short_help="Serve one exported agent behind OpenAI's API.")(
    serve.serve
)
app.command(rich_help_panel=DEPLOY, short_help="Play a task with agents behind servers.")(play.play)
app.command(rich_help_panel=DEPLOY, short_help="Serve agents to a program that you start.")(
    gateway.gateway
)
app.add_typer(new.app, rich_help_panel=SHIPPED)
app.command(rich_help_panel=SHIPPED, short_help="Check a task against the contract.")(listing.check)
app.command(rich_help_panel=SHIPPED)(listing.tasks)
app.command(rich_help_panel=SHIPPED)(listing.algorithms)
app.command(rich_help_panel=SHIPPED)(listing.configs)
app.command(rich_help_panel=SHIPPED)(listing.settings)


_MOST = 900
"""Maximum number of printed characters of an error."""


def main() -> None:
    """Run a command; prints a ColearnError as one line on stderr and exits with code 2."""
    one_heap()
    find_in("")  # `module:Class` may name a file in the current folder
    arguments = sys.argv[1:]
    sys.argv[1:] = map(masked, arguments)  # trackers record the command line
    output, errors = sys.stdout, sys.stderr
    for stream in (output, errors):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # if it lacks a character
    sys.stdout = None if output is None else CommandOutput(output)  # None: closed by the shell
    sys.stderr = None if errors is None else Errors(errors)
    try:
        _run(arguments)
    except SystemExit:
        sys.stderr = errors  # not after another error, whose traceback is yet to be printed
        raise
    finally:
        sys.stdout = output


def _run(arguments: list[str]) -> None:
    try:
        _check_empty(arguments)
        code = app(args=arguments or ["--help"], standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
    except (ColearnError, typer.TyperException) as error:
        message = error.format_message() if isinstance(error, typer.TyperException) else str(error)
        if "--set" in arguments and "extra argument" in message:
            message += " write --set KEY=VALUE without spaces around ="
        if speaks() or not getattr(error, "everywhere", False):
            print(f"error: {_one_line(message)}", file=sys.stderr)
        raise SystemExit(2) from None
    except OSError as error:
        if not is_disk_error(error):
            raise
        place = error.filename2 or error.filename or "a file"
        reason = f"{place}: {error.strerror}; make room or permit access there, or name another"
        print(f"error: {_one_line(f'{reason} folder')}", file=sys.stderr)
        raise SystemExit(2) from None
    except SystemExit as stop:
        if stop.code not in (None, 0) and _is_commands(stop):
            raise
        message = f"{line_of(stop)}: code of the config's ended the program; let it raise instead"
        print(f"error: {_one_line(message)}", file=sys.stderr)
        exit_code = stop.code if isinstance(stop.code, int) and stop.code else 2
        raise SystemExit(exit_code) from None
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        raise SystemExit(130) from None
    raise SystemExit(code or 0)


def _is_commands(stop: SystemExit) -> bool:
    """Whether a command, typer or rich raised the exception, in contrast to a task, a callback or
    other code that the config names. Typer and rich end a command whose output nobody reads any
    more."""
    [*_, frame] = traceback.extract_tb(stop.__traceback__)
    folders = (Path(file).parent for file in (__file__, typer.__file__, rich.__file__))
    return any(Path(frame.filename).is_relative_to(folder) for folder in folders)


def _check_empty(arguments: list[str]) -> None:
    """Errors: ConfigError for an empty argument, for example from an unset shell variable; an empty
    path would mean the current folder."""
    for before, argument in zip(["", *arguments], arguments, strict=False):
        option, _, value = argument.partition("=")
        if argument.startswith("--") and "=" in argument and not value.strip():
            raise ConfigError(f"{option}: is empty; write its value, or leave it out")
        if not argument.strip():
            if before.startswith("-"):
                raise ConfigError(f"{before}: is empty; write its value, or leave it out")
            raise ConfigError("an argument is empty; write a name or a path there")


def _one_line(text: str) -> str:
    """Returns the message as one line, with control characters escaped; the middle of a long
    message is omitted."""
    line = "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)
    return line if len(line) <= _MOST else f"{line[: _MOST // 2]} ... {line[-_MOST // 2 :]}"
