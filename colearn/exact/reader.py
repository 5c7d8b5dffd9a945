"""Reader for the `.dpomdp` format of the MADP toolbox."""

from __future__ import annotations

from pathlib import Path

from colearn.errors import ConfigError

from ._header import TABLES, read_header
from ._tables import Tables
from ._tokens import split_entries
from .model import TabularModel


def read_dpomdp(path: Path, field: str = "task.file") -> TabularModel:
    """Read the model from a file.

    Errors: ConfigError. The message names `field` if the file cannot be read, else the file, the
    line and the entry.
    """
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise ConfigError(f"{field}: no file '{path}'; give the path of a .dpomdp file") from None
    except OSError as error:
        raise ConfigError(
            f"{field}: cannot read '{path}' ({error.strerror}); give the path of a .dpomdp file"
        ) from None
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise ConfigError(f"{path}:{line}: {field}: is not UTF-8; save it as UTF-8 text") from None
    return parse_dpomdp(text, str(path))


def parse_dpomdp(text: str, name: str) -> TabularModel:
    """Parse the text of a `.dpomdp` file; error messages call the file `name`.

    The entries `agents`, `discount`, `values`, `states`, `start`, `actions`, `observations` must
    appear once each, in this order. T, O and R entries follow in any order, and later entries
    overwrite earlier ones. Agents given by a count are named agent_1, agent_2, ...; states, actions
    and observations given by a count are named '0', '1', ... Rows of T and O must sum to 1 within
    1e-6 and are divided by their sums; rewards that are not set are 0.

    Errors: ConfigError, with the one-line message `NAME:LINE: entry: what is wrong; remedy`.
    """
    entries, last_line = split_entries(text, name)
    if not entries:
        raise ConfigError(f"{name}:1: agents: the file is empty; begin with 'agents:'")
    header = read_header(entries, name, last_line)
    tables = Tables(header)
    for entry in entries:
        if entry.key in TABLES:
            tables.add(entry)
    return TabularModel(
        agents=header.agents,
        states=header.states,
        actions=header.actions,
        observations=header.observations,
        start=header.start,
        transition=tables.normalised("T", name, last_line),
        observation=tables.normalised("O", name, last_line),
        reward=tables.rewards(),
        discount=header.discount,
    )
