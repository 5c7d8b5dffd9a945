"""Reads JSON and YAML records with one-line errors; writes text files atomically."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from colearn.errors import CheckpointError
from colearn.text.validation import first_fault
from colearn.text.yaml_text import read_yaml_file

Fields = TypeVar("Fields", bound=BaseModel)


def read_fields(cls: type[Fields], path: Path) -> Fields:
    """Reads a JSON object with the fields of `cls`.

    Errors: CheckpointError naming the file, the field and the remedy.
    """
    try:
        data = _parse(path.read_bytes())
    except FileNotFoundError:
        raise CheckpointError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise CheckpointError(f"{path}: is a folder; delete it or the folder it is in") from None
    except ValueError as error:
        raise CheckpointError(f"{path}: {error}; delete it or its folder") from None
    return _checked(cls, data, str(path), "delete it or its folder")


def read_lines(cls: type[Fields], path: Path) -> Iterator[Fields]:
    """Reads the objects of a .jsonl file; an incomplete last line is ignored.

    A missing file counts as empty. Errors: CheckpointError naming the line and its field.
    """
    return (fields for _, fields in read_texts(cls, path))


def read_texts(cls: type[Fields], path: Path) -> Iterator[tuple[str, Fields]]:
    """Like `read_lines`, but returns each object with the text of its line."""
    if not path.is_file():
        return
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            data = _parse(line)
        except ValueError as error:
            if number == len(lines):
                return
            raise CheckpointError(f"{path}:{number}: {error}; delete the line") from None
        yield line.decode("utf-8"), _checked(cls, data, f"{path}:{number}", "delete the line")


def read_yaml(path: Path) -> dict[str, Any]:
    """Reads a mapping from a YAML file.

    Errors: CheckpointError naming the file.
    """
    try:
        data = read_yaml_file(path)
    except FileNotFoundError:
        raise CheckpointError(f"{path}: no such file; run it again") from None
    except ValueError as error:
        raise CheckpointError(f"{path}: {error}; run it again") from None
    if not isinstance(data, dict):
        raise CheckpointError(f"{path}: must hold a mapping; run it again")
    return data


def write_text(path: Path, text: str) -> None:
    """Replace a file atomically: readers see either the old or the new text. A link is replaced,
    and the file that it names stays as it is."""
    aside = path.with_name(f".{path.name}.partial")
    aside.unlink(missing_ok=True)  # of a process that was killed, or a link
    with aside.open("x", encoding="utf-8") as file:
        file.write(text)
    aside.replace(path)


@contextmanager
def published(folder: Path) -> Iterator[Path]:
    """Context with a new, empty folder. When the block ends, its files replace those of `folder`;
    if the block fails, `folder` stays as it is. Links in `folder` are replaced, and the files that
    they name stay as they are."""
    try:
        with TemporaryDirectory(prefix=".colearn-", dir=folder) as new:
            yield Path(new)
            for source in sorted(Path(new).rglob("*")):
                target = folder / source.relative_to(new)
                if not source.is_dir():
                    source.replace(target)
                elif target.is_symlink() or not target.is_dir():
                    target.unlink(missing_ok=True)
                    target.mkdir()
    except OSError as error:  # that of a full disk has no name
        error.filename = error.filename or str(folder)
        raise


def _parse(text: bytes) -> dict[str, Any]:
    """Parse one JSON object.

    Errors: ValueError with a short reason.
    """
    try:
        data = json.loads(text.decode("utf-8"))
    except UnicodeDecodeError:
        raise ValueError("not text in UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON ({error})") from None
    if not isinstance(data, dict):
        raise ValueError("must hold a JSON object")
    return data


def _checked(cls: type[Fields], data: dict[str, Any], source: str, remedy: str) -> Fields:
    try:
        return cls.model_validate(data)
    except ValidationError as error:
        place, faults = first_fault(error, data)
        field = ".".join(map(str, place))
        if faults[0]["type"] == "missing":
            raise CheckpointError(f"{source}: lacks '{field}'; {remedy}") from None
        message = faults[0]["msg"].lower()
        raise CheckpointError(f"{source}: {field}: {message}; {remedy}") from None
