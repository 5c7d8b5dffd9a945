"""Detection of images, audio and video in data rows, which no agent can read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_COLUMNS = {
    f"{name}{ending}": kind
    for name, kind in (("image", "an image"), ("video", "a video"), ("audio", "audio"))
    for ending in ("", "s")
}
"""Columns and message fields in which other trainers pass media to a model."""
_PARTS = ("image", "video", "audio", "input_image", "input_audio", "image_url", "video_url")
"""Types of the parts of a message that are not text."""
_DECODED = {"PIL": "an image", "torchcodec": "a video or audio"}
"""Packages to whose classes `datasets` decodes media."""
_IMAGE_BYTES = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF", b"BM", b"II*\x00", b"MM\x00*")


def media_problem(row: Any, *, by_name: bool = True) -> str | None:
    """Describes the first image, audio or video in a row, as the end of an error message that
    begins with the row's place; None if there is none.

    by_name: whether text in a column `image` counts, which may be the address of an image.
    """
    for name, value in row.items() if isinstance(row, Mapping) else ():
        named = _COLUMNS.get(name) if by_name and isinstance(name, str) else None
        kind = named if named is not None and _is_filled(value) else _media(value)
        if kind is not None:
            return (
                f"has {kind} in '{name}', and agents read text alone; remove it, or describe it in "
                "the prompt (a reward function can load a file whose path is in a column of "
                "another name)"
            )
    return None


def _is_filled(value: Any) -> bool:
    if value is None or isinstance(value, bool | int | float):
        return False
    return not (isinstance(value, str | list | tuple | dict) and not value)


def _media(value: Any) -> str | None:
    """What a value holds besides text and numbers; None if nothing."""
    if isinstance(value, str):
        for kind in ("image", "video", "audio"):
            if value.startswith(f"data:{kind}/"):
                return _COLUMNS[kind]
        return None
    if isinstance(value, Mapping):
        return _media_of_mapping(value)
    if isinstance(value, list | tuple):
        return next(filter(None, map(_media, value)), None)
    if isinstance(value, bytes | bytearray):
        return "an image" if bytes(value[:8]).startswith(_IMAGE_BYTES) else None
    packages = (base.__module__.partition(".")[0] for base in type(value).__mro__)
    return next((_DECODED[name] for name in packages if name in _DECODED), None)


def _media_of_mapping(value: Mapping[Any, Any]) -> str | None:
    if value.keys() == {"bytes", "path"} and any(map(_is_filled, value.values())):
        return "a file"  # how `datasets` stores images, audio and video
    if value.keys() >= {"array", "sampling_rate"}:
        return "audio"
    kind = value.get("type")
    if isinstance(kind, str) and kind in _PARTS and ("text" not in value):
        return next(_COLUMNS[name] for name in ("image", "video", "audio") if name in kind)
    if "role" in value:  # a message
        for name, media in _COLUMNS.items():
            if _is_filled(value.get(name)):
                return media
    return next(filter(None, map(_media, value.values())), None)
