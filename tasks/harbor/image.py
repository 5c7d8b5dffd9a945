"""Lays out a Dockerfile that adds only files, folders and variables to a plain base."""

from __future__ import annotations

import json
import posixpath
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from colearn.programs.files.regular import read_regular

from ._inside import pack

_BASES = re.compile(r"(docker\.io/)?(library/)?(ubuntu|debian|python|bash)(:[\w.-]+)?$")
"""Bases whose programs are those of this machine: a shell, the usual commands and Python."""
_IGNORED = ("LABEL", "CMD", "MAINTAINER")


class Refused(Exception):
    """Raised for a task that the sandbox cannot run; the message continues the task's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """What a Dockerfile adds to its base."""

    files: str = ""
    folder: str = "/"
    variables: dict[str, str]


def read_image(environment: Path) -> Image:
    """The image of a task's folder `environment`.

    Errors: Refused for an instruction that needs a container; OSError and ValueError for a
    Dockerfile that cannot be read.
    """
    for name in ("docker-compose.yaml", "docker-compose.yml", ".dockerignore"):
        if (environment / name).exists():
            raise Refused(f"needs a container (environment/{name})")
    text = read_regular(environment / "Dockerfile").decode()
    folder, variables = "/", dict[str, str]()
    files: list[tuple[str, str]] = []
    for line in re.sub(r"\\\n", " ", text).splitlines():
        instruction, _, rest = line.strip().partition(" ")
        match instruction.upper(), rest.strip():
            case ("FROM", base) if _BASES.match(base):
                continue
            case ("WORKDIR", path) if "$" not in path:
                folder = posixpath.normpath(posixpath.join(folder, path))
            case ("COPY", words) if not re.search(r"(^|\s)--|[*?$]", words):
                files += _copied(environment, words, folder)
            case ("ENV", words) if "$" not in words and "=" in words:
                variables |= dict(word.split("=", 1) for word in shlex.split(words))
            case (name, _) if not name or name.startswith("#") or name in _IGNORED:
                continue
            case _:
                raise Refused(f"needs a container (its Dockerfile says {line.strip()[:60]!r})")
    return Image(files=pack(files), folder=folder, variables=variables)


def _copied(environment: Path, words: str, folder: str) -> list[tuple[str, str]]:
    """The files of a COPY, each with its place in the image."""
    *sources, target = json.loads(words) if words.startswith("[") else shlex.split(words)
    place = posixpath.normpath(posixpath.join(folder, target))
    inside = target.endswith("/") or len(sources) > 1 or place == folder
    files = []
    for source in sources:
        path = (environment / source.lstrip("/")).resolve(strict=True)
        if not path.is_relative_to(environment.resolve()):
            raise ValueError(f"its Dockerfile copies {source} from outside of environment/")
        if path.is_dir():
            files += placed(path, place)
        else:
            files.append((str(path), posixpath.join(place, path.name) if inside else place))
    return files


def placed(folder: Path, place: str) -> list[tuple[str, str]]:
    """Everything in a folder, each with its place under `place`."""
    paths = sorted(folder.rglob("*"))
    return [(str(path), posixpath.join(place, path.relative_to(folder))) for path in paths]
