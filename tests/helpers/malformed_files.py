"""Damaged files, made from whole ones: by their bytes, and by the values in them."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import yaml

UNKNOWN = "xyzzy"
DEEP = 3000
Dump = Callable[[Any], str]


@dataclass(frozen=True)
class Damage:
    """What was done to a file, and what it holds then."""

    how: str
    content: bytes
    surely: bool
    """Whether nobody can read it; else what is left may be right after all."""


def of_bytes(whole: bytes, *, lines: bool = False, binary: bool = False) -> Iterator[Damage]:
    """Damage that needs no knowledge of what the bytes say. `lines`: each line stands for itself,
    so that a cut leaves whole ones."""
    middle = _inside(whole, len(whole) // 2)
    yield Damage("empty", b"", True)
    for quarter in (1, 2, 3):
        yield Damage(f"cut at {quarter}/4", whole[: len(whole) * quarter // 4], binary)
    yield Damage("twice", whole + whole, False)
    noise = random.Random(len(whole)).randbytes(200)
    yield Damage("noise", noise, True)
    yield Damage("noise within", whole[:middle] + noise + whole[middle:], False)
    yield Damage("noise after", whole + noise, not binary)
    if binary:
        return
    yield Damage("NUL", whole[:middle] + b"\0" + whole[middle:], False)
    yield Damage("escape", whole[:middle] + b"\x1b[2J" + whole[middle:], False)
    yield Damage("no UTF-8", whole[:middle] + b"\xff\xfe" + whole[middle:], True)
    yield Damage("Latin-1", whole[:middle] + "é".encode("latin-1") + whole[middle:], True)
    yield Damage("half a sign", whole[:middle] + "ключ".encode()[:-1] + whole[middle:], True)
    yield Damage("a surrogate's bytes", whole[:middle] + b"\xed\xa0\x80" + whole[middle:], True)
    yield Damage("UTF-16", whole.decode().encode("utf-16"), True)
    yield Damage("UTF-32", whole.decode().encode("utf-32"), True)
    yield Damage("a byte order mark", b"\xef\xbb\xbf" + whole, False)
    yield Damage("carriage returns", whole.replace(b"\n", b"\r\n"), False)
    yield Damage("old line ends", whole.replace(b"\n", b"\r"), False)
    yield Damage("a page of HTML", b"<!doctype html>\n<p>Not found</p>\n", True)
    yield Damage("brackets", b"[" * DEEP, True)
    yield Damage("a long line", whole + b"x" * 200_000 + b"\n", False)
    if lines:
        first = whole.partition(b"\n")[0]
        yield Damage("a cut line", first[: len(first) // 2] + b"\n" + whole, False)


def _inside(whole: bytes, start: int) -> int:
    """The next place within a word, where a sign cannot be between two lines."""
    return next((at for at in range(start, len(whole) - 1) if whole[at : at + 2].isalpha()), start)


_DEEP_LIST = "@deep@"
_SPLICED = {
    _DEEP_LIST: "[" * DEEP + "]" * DEEP,
    "@digits@": "7" * 5000,
    "@nan@": "NaN",
    "@surrogate@": '"\\ud800"',
}
"""Values that a writer refuses, put into its text."""


def of_values(whole: Any, dump: Dump = json.dumps) -> Iterator[Damage]:
    """Another value in every place of a tree of sections and lists, and other keys."""
    if not isinstance(whole, dict | list):
        return
    for other in (None, 7, "word", [], {}, [[]], [7], {UNKNOWN: 1}):
        if type(other) is not type(whole) or other == [7]:
            yield Damage(f"the whole is {other!r}", dump(other).encode(), False)
    for path in places(whole):
        name = ".".join(map(str, path))
        for other in _others(at(whole, path)):
            yield Damage(f"{name} is {_short(other)}", _replaced(whole, path, other, dump), False)
        if isinstance(path[-1], str):
            lacking = copy.deepcopy(whole)
            del at(lacking, path[:-1])[path[-1]]
            yield Damage(f"without {name}", dump(lacking).encode(), False)
            doubled = _doubled(whole, path, dump)
            yield Damage(f"{name} twice", doubled, False)
    for path in [(), *places(whole)]:
        section = at(whole, path)
        if isinstance(section, dict):
            for key in (UNKNOWN, "", "new\nline", "x" * 3000, "\u202egnp"):
                more = copy.deepcopy(whole)
                at(more, path)[key] = 1
                where = ".".join(map(str, path)) or "the whole"
                yield Damage(f"{key[:10]!r} in {where}", dump(more).encode(), False)


def places(whole: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every key, and of a list the first element."""
    entries = list(whole.items()) if isinstance(whole, dict) else list(enumerate(whole))[:1]
    for key, value in entries:
        yield (*above, key)
        if isinstance(value, dict | list):
            yield from places(value, (*above, key))


def at(whole: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        whole = whole[key]
    return whole


def _others(value: Any) -> list[Any]:
    """Values of other types, of the same type at its ends, and ones that no file can hold."""
    wrong: list[Any] = [None, True, 7, -1, 0.5, "word", "", [], [[]], {}, {UNKNOWN: [1]}]
    ends: list[Any] = list(_SPLICED)
    if isinstance(value, int | float) and not isinstance(value, bool):
        ends += [10**30, 1e300, -(10**12), 0]
    if isinstance(value, str):
        ends += ["x" * 20_000, "\x00", "💥", "../../..", "\u2028", "{0.__class__}", "%s"]
    return [other for other in (*wrong, *ends) if other != value or type(other) is not type(value)]


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 30 else f"{text[:27]}..."


def _replaced(whole: Any, path: tuple[Any, ...], other: Any, dump: Dump) -> bytes:
    changed = copy.deepcopy(whole)
    at(changed, path[:-1])[path[-1]] = other
    text = dump(changed)
    if isinstance(other, str) and other in _SPLICED:
        for quoted in (f'"{other}"', f"'{other}'", other):
            text = text.replace(quoted, _SPLICED[other])
    return text.encode()


def _doubled(whole: Any, path: tuple[Any, ...], dump: Dump) -> bytes:
    """The same key again in its section, with another value."""
    changed = copy.deepcopy(whole)
    at(changed, path[:-1])["@again@"] = 7
    return dump(changed).replace("@again@", str(path[-1])).replace("'@again@'", "").encode()


def of_text(whole: str) -> Iterator[Damage]:
    """Of a format with lines of words: each line lost, doubled, cut and with another word."""
    rows = whole.splitlines()
    for number, row in enumerate(rows):
        words = row.split()
        if not words or row.startswith("#"):
            continue
        for other in ("", "-1", "1e400", "nan", "word", "99999999999", ":", "💥", "*"):
            changed = " ".join((*words[:-1], other))
            yield _with_row(rows, number, changed, f"line {number + 1} ends in {other!r}")
        yield _with_row(rows, number, f"{row}\n{row}", f"line {number + 1} twice")
        yield _with_row(rows, number, f"{UNKNOWN} {row}", f"{UNKNOWN} before line {number + 1}")
        yield _with_row(rows, number, row.replace(":", "", 1), f"line {number + 1} without a colon")


def _with_row(rows: list[str], number: int, row: str, how: str) -> Damage:
    return Damage(how, "\n".join([*rows[:number], row, *rows[number + 1 :], ""]).encode(), False)


def of_yaml(whole: Any) -> Iterator[Damage]:
    """Of values, and of what YAML alone can say."""

    def dump(value: Any) -> str:
        return yaml.safe_dump(value, allow_unicode=True, sort_keys=False)

    yield from of_values(whole, dump)
    for path in places(whole):
        for odd in ("!!python/object:os.system x", "!!int abc", "*nowhere", "&a [*a]", "2024-13-45",
                    "0b_", "[1, 2", "'", "{a: 1, a: 2}", "!!binary x", "? [a]"):  # fmt: skip
            changed = copy.deepcopy(whole)
            at(changed, path[:-1])[path[-1]] = "@odd@"
            text = dump(changed).replace("'@odd@'", odd).replace("@odd@", odd)
            name = ".".join(map(str, path))
            surely = odd not in ("!!binary x", "? [a]")
            yield Damage(f"{name} is {odd}", text.encode(), surely)
    bomb = "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9 if n else ['x'])}]\n" for n in range(12)
    )
    yield Damage("an alias bomb", (bomb + dump(whole)).encode(), True)


def of_rows(rows: list[Any], dump: Dump = json.dumps) -> Iterator[Damage]:
    """Of JSON lines: damage to the first row, the others whole after it."""
    rest = "".join(f"{dump(row)}\n" for row in rows[1:]).encode()
    for damage in of_values(rows[0], dump):
        yield Damage(damage.how, damage.content + b"\n" + rest, damage.surely)
