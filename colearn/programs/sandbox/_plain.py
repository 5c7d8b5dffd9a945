"""Serialisation of plain values between the processes of a sandbox.

None, bool, int, float, complex, str, bytes, bytearray, list, tuple, dict, set, frozenset and range
arrive unchanged. An instance of a subclass arrives as its plain base value, and an iterator arrives
as an iterator over its remaining items. Anything else arrives as `Opaque`. Reading creates only
these types, so no class, method or code of the writer is transferred. This module imports little,
because every program loads it.
"""

from __future__ import annotations

import os
import struct
from itertools import islice

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any


DEEPEST = 150
"""Maximum nesting depth of containers."""
MOST_ITEMS = 1_000_000
"""Maximum number of items of an iterator."""
LARGEST = 16 * 1024 * 1024
"""Maximum size of one frame in bytes."""

_LENGTH = struct.Struct(">I")
_FLOAT = struct.Struct(">d")
_SEQUENCES: dict[bytes, type] = {
    b"l": list,
    b"t": tuple,
    b"e": set,
    b"z": frozenset,
}


class NotPlain(Exception):
    """Raised for malformed bytes, and for a value that is too deep or too large to be sent."""


class Opaque:
    """Placeholder for an object that cannot be serialised; it has no truth value."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __bool__(self) -> bool:
        raise TypeError(f"an object of class {self.kind} has no truth value in a test")

    def __repr__(self) -> str:
        return f"<an object of class {self.kind}>"


def dump(value: Any) -> bytes:
    """Serialise a value.

    Errors: NotPlain if the value is too deeply nested (as cycles are) or too large.
    """
    parts: list[bytes] = []
    _write(value, parts.append, 0)
    data = b"".join(parts)
    if len(data) > LARGEST:
        raise NotPlain(f"a value of {len(data)} bytes; the limit is {LARGEST}")
    return data


def load(data: bytes) -> Any:
    """Deserialise the output of `dump`.

    Errors: NotPlain for any other bytes.
    """
    value, end = _read(data, 0, 0)
    if end != len(data):
        raise NotPlain("trailing bytes after the value")
    return value


def send(descriptor: int, value: Any) -> None:
    """Write one frame: four bytes of length, then the value."""
    data = dump(value)
    unsent = memoryview(_LENGTH.pack(len(data)) + data)
    while unsent:
        unsent = unsent[os.write(descriptor, unsent) :]


def receive(descriptor: int) -> Any:
    """Read and deserialise one frame. Errors: as for `receive_bytes` and `load`."""
    return load(receive_bytes(descriptor))


def receive_bytes(descriptor: int) -> bytes:
    """Read one frame.

    Errors: EOFError if the pipe is closed, NotPlain if the frame is too large.
    """
    (length,) = _LENGTH.unpack(_exactly(descriptor, _LENGTH.size))
    if length > LARGEST:
        raise NotPlain(f"a frame of {length} bytes; the limit is {LARGEST}")
    return _exactly(descriptor, length)


def frames(data: bytes) -> Iterator[Any]:
    """The values of all complete frames; a truncated last frame is ignored."""
    at = 0
    while at + _LENGTH.size <= len(data):
        (length,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size
        if at + length > len(data):
            return
        yield load(data[at : at + length])
        at += length


def framed(value: Any) -> bytes:
    data = dump(value)
    return _LENGTH.pack(len(data)) + data


def _exactly(descriptor: int, length: int) -> bytes:
    parts = []
    while length:
        part = os.read(descriptor, min(length, 1 << 20))
        if not part:
            raise EOFError("the pipe is closed")
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def _write(value: Any, write: Callable[[bytes], None], depth: int) -> None:
    if depth > DEEPEST:
        raise NotPlain(f"a value nested more than {DEEPEST} deep")
    if value is None:
        write(b"N")
    elif value is True or value is False:
        write(b"T" if value else b"F")
    elif isinstance(value, int):
        length = (int.bit_length(value) + 8) // 8
        _sized(b"i", int.to_bytes(value, length, "big", signed=True), write)
    elif isinstance(value, float):
        write(b"f" + _FLOAT.pack(value))
    elif isinstance(value, complex):
        write(b"c" + _FLOAT.pack(value.real) + _FLOAT.pack(value.imag))
    elif isinstance(value, str):
        _sized(b"s", str.encode(value, "utf-8", "surrogatepass"), write)
    elif isinstance(value, bytes):
        _sized(b"b", bytes(memoryview(value)), write)
    elif isinstance(value, bytearray):
        _sized(b"B", bytes(memoryview(value)), write)
    elif isinstance(value, dict):
        items = list(dict.items(value))
        write(b"d" + _LENGTH.pack(len(items)))
        for key, entry in items:
            _write(key, write, depth + 1)
            _write(entry, write, depth + 1)
    elif isinstance(value, range):
        write(b"r")
        for bound in (value.start, value.stop, value.step):
            _write(bound, write, depth + 1)
    elif isinstance(value, Opaque):
        _write_opaque(value.kind, write)
    else:
        _write_items(value, write, depth)


def _write_items(value: Any, write: Callable[[bytes], None], depth: int) -> None:
    tag = next((tag for tag, kind in _SEQUENCES.items() if isinstance(value, kind)), b"I")
    if tag in _SEQUENCES:
        items = list(_SEQUENCES[tag].__iter__(value))  # type: ignore[attr-defined]
    elif not hasattr(type(value), "__next__"):
        _write_opaque(type(value).__name__, write)
        return
    else:
        items = list(islice(value, MOST_ITEMS + 1))
        if len(items) > MOST_ITEMS:
            raise NotPlain(f"an iterator of more than {MOST_ITEMS} items")
    write(tag + _LENGTH.pack(len(items)))
    for item in items:
        _write(item, write, depth + 1)


def _write_opaque(kind: str, write: Callable[[bytes], None]) -> None:
    _sized(b"O", str(kind)[:100].encode("utf-8", "replace"), write)


def _sized(tag: bytes, data: bytes, write: Callable[[bytes], None]) -> None:
    if len(data) > LARGEST:
        raise NotPlain(f"a value of {len(data)} bytes; the limit is {LARGEST}")
    write(tag + _LENGTH.pack(len(data)))
    write(data)


def _read(data: bytes, at: int, depth: int) -> tuple[Any, int]:
    if depth > DEEPEST:
        raise NotPlain(f"a value nested more than {DEEPEST} deep")
    tag = data[at : at + 1]
    at += 1
    if tag in _CONSTANTS:
        return _CONSTANTS[tag], at
    try:
        if tag == b"f":
            return _FLOAT.unpack_from(data, at)[0], at + 8
        if tag == b"c":
            return complex(*struct.unpack_from(">dd", data, at)), at + 16
        if tag == b"r":
            start, at = _read(data, at, depth + 1)
            stop, at = _read(data, at, depth + 1)
            step, at = _read(data, at, depth + 1)
            return range(start, stop, step), at
        (length,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size
        if length > len(data) - at:
            raise NotPlain("a truncated value")
        if tag in _LEAVES:
            return _LEAVES[tag](data[at : at + length]), at + length
        if tag == b"d":
            items, at = _read_items(data, at, 2 * length, depth)
            return dict(zip(items[::2], items[1::2], strict=True)), at
        items, at = _read_items(data, at, length, depth)
        return (iter(items) if tag == b"I" else _SEQUENCES[tag](items)), at
    except (KeyError, TypeError, ValueError, struct.error) as error:
        raise NotPlain(str(error)[:200]) from None


def _read_items(data: bytes, at: int, count: int, depth: int) -> tuple[list[Any], int]:
    items = []
    for _ in range(count):
        item, at = _read(data, at, depth + 1)
        items.append(item)
    return items, at


_CONSTANTS: dict[bytes, Any] = {b"N": None, b"T": True, b"F": False}
_LEAVES: dict[bytes, Callable[[bytes], Any]] = {
    b"i": lambda data: int.from_bytes(data, "big", signed=True),
    b"s": lambda data: data.decode("utf-8", "surrogatepass"),
    b"b": bytes,
    b"B": bytearray,
    b"O": lambda data: Opaque(data.decode("utf-8", "replace")),
}
