"""Detection of images, audio and video in data rows, which no agent can read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_COLUMNS = {
    f"{name}{ending}": kind
    for name, kind in (("image", "an image"), ("video", "a video"), ("audio", "audio"))
    for ending in ("", "s")
}
"""Columns and message fields in which other trainers pass media to a model."""
_NAMED = re.compile(r"(image|video|audio)s?(?:_?(?:url|uri|path|file|base64|b64|bytes|data)s?)?")
"""Names of columns, in lower case, whose text is media or the address of media."""
_WORDS = re.compile(r"image|img|picture|photo|figure|screenshot|video|audio")
"""What names of columns with media contain."""
_PARTS = ("image", "video", "audio", "input_image", "input_audio", "image_url", "video_url")
"""Types of the parts of a message that are not text."""
_DECODED = {"PIL": "an image", "torchcodec": "a video or audio"}
"""Packages to whose classes `datasets` decodes media."""
_IMAGE_BYTES = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF", b"BM", b"II*\x00", b"MM\x00*")


def media_problem(row: Any, *, by_name: bool = True) -> str | None:
    """Describes the first image, audio or video in a row that a model would have to read, as the
    end of an error message that begins with the row's place; None if there is none.

    These are parts of messages, media in a column whose name speaks of them, and, with `by_name`,
    any text in a column such as `image` or `image_url`, which may be the address of an image. Media
    in another column are arguments of reward functions.
    """
    for name, value in row.items() if isinstance(row, Mapping) else ():
        kind = _part(value)
        if isinstance(name, str) and kind is None:
            named = _NAMED.fullmatch(name.lower()) if by_name else None
            if named and _is_filled(value):
                kind = _COLUMNS[named[1]]
            elif _WORDS.search(name.lower()):
                kind = _stored(value)
        if kind is not None:
            return (
                f"has {kind} in '{name}', and agents read text alone; remove it, or describe it in "
                "the prompt (a reward function can read a column whose name does not speak of it)"
            )
    return None


def _is_filled(value: Any) -> bool:
    if value is None or isinstance(value, bool | int | float):
        return False
    return not (isinstance(value, str | list | tuple | dict) and not value)


def _part(value: Any) -> str | None:
    """What messages in a value hold besides text; None if nothing."""
    if isinstance(value, list | tuple):
        return next(filter(None, map(_part, value)), None)
    if not isinstance(value, Mapping):
        return None
    kind = value.get("type")
    if isinstance(kind, str) and kind in _PARTS and "text" not in value:
        return next(_COLUMNS[name] for name in ("image", "video", "audio") if name in kind)
    if "role" in value:  # a message
        named = (media for name, media in _COLUMNS.items() if _is_filled(value.get(name)))
        return next(named, None) or _part(value.get("content"))
    return next(filter(None, map(_part, value.values())), None)


def _stored(value: Any) -> str | None:
    """The kind of media that a value stores; None if it stores none."""
    if isinstance(value, str):
        kinds = (kind for kind in ("image", "video", "audio") if value.startswith(f"data:{kind}/"))
        return next((_COLUMNS[kind] for kind in kinds), None)
    if isinstance(value, Mapping):
        if value.keys() == {"bytes", "path"} and any(map(_is_filled, value.values())):
            return "a file"  # how `datasets` stores images, audio and video
        if value.keys() >= {"array", "sampling_rate"}:
            return "audio"
        return next(filter(None, map(_stored, value.values())), None)
    if isinstance(value, list | tuple):
        return next(filter(None, map(_stored, value)), None)
    if isinstance(value, bytes | bytearray):
        return "an image" if bytes(value[:8]).startswith(_IMAGE_BYTES) else None
    packages = (base.__module__.partition(".")[0] for base in type(value).__mro__)
    return next((_DECODED[name] for name in packages if name in _DECODED), None)
