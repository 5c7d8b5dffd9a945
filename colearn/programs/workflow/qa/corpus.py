"""Passage sources: passages in memory, or the files of a folder."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from colearn.errors import ConfigError, reason_of
from colearn.programs.files.regular import read_regular
from colearn.text.json_value import numbered_lines, read_row


@dataclass(frozen=True, slots=True)
class Passage:
    """A titled text that a retriever can return."""

    title: str
    text: str


class Corpus(ABC):
    """A source of passages, hashable and small to pickle: every process reads them itself."""

    @abstractmethod
    def passages(self) -> tuple[Passage, ...]:
        """All passages, always in the same order."""

    @property
    def digest(self) -> str | None:
        """Digest of the passages, which is part of the name of the index on disk. None: no index is
        stored."""
        return None


@dataclass(frozen=True)
class Passages(Corpus):
    """Passages in memory."""

    given: tuple[Passage, ...]

    @cached_property
    def _hashed(self) -> int:
        return hash(self.given)

    def __hash__(self) -> int:
        return self._hashed  # every search looks up its corpus by hash

    def __reduce__(self) -> tuple[type[Passages], tuple[tuple[Passage, ...]]]:
        return Passages, (self.given,)  # string hashes differ between processes

    def passages(self) -> tuple[Passage, ...]:
        """The passages as given."""
        return self.given


@dataclass(frozen=True)
class Folder(Corpus):
    """Files under a folder: `.jsonl` files with one {"title", "text"} object per line, and `.txt`
    and `.md` files with one passage per paragraph, titled with the file's name.

    Errors: ConfigError for a folder without passages, or for a line that is not a passage.
    """

    path: str

    def passages(self) -> tuple[Passage, ...]:
        """The passages, in order of the files' names."""
        passages = tuple(passage for path in self._files() for passage in _read(path))
        if not passages:
            raise ConfigError(
                f"task.corpus: no passages under {self.path}; put .jsonl, .txt or .md files there"
            )
        return passages

    @property
    def digest(self) -> str:
        """Digest of the files' names, sizes and modification times."""
        parts = [
            (str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in self._files()
        ]
        return hashlib.blake2b(json.dumps(parts).encode(), digest_size=8).hexdigest()

    def _files(self) -> list[Path]:
        return sorted(
            path
            for path in Path(self.path).rglob("*")
            if path.suffix in (".jsonl", ".txt", ".md") and path.is_file()
        )


def _read(path: Path) -> Iterator[Passage]:
    try:
        content = read_regular(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError(f"task.corpus: {path} is no text in UTF-8; save it as that") from None
    except OSError as error:
        raise ConfigError(
            f"task.corpus: cannot read {path} ({reason_of(error)}); let it be read, or remove it"
        ) from None
    if path.suffix != ".jsonl":
        for paragraph in content.split("\n\n"):
            if paragraph.strip():
                yield Passage(path.stem, " ".join(paragraph.split()))
        return
    for number, line in numbered_lines(content):
        try:
            row = read_row(line)
            title, text = row["title"], row["text"]
            if {type(title), type(text)} - {str, int}:  # str() of null would be the word None
                raise ValueError
        except (ValueError, KeyError, TypeError):
            raise ConfigError(
                f"task.corpus: line {number} of {path} is no passage; write "
                '{"title": "...", "text": "..."}'
            ) from None
        yield Passage(str(title), str(text))
