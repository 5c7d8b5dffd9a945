"""Checks names of agents, players, models and a suite's tasks. These names become config keys,
torch module names, folder names and metric names."""

from __future__ import annotations

_LONGEST = 60
"""Maximum number of characters in a name. At four bytes per character, a name with a prefix fits
the 255 bytes of a file name."""
_APART = frozenset("./\\*")
"""Characters that no name may contain. A dot separates keys and modules; a slash separates folders
and metrics; a star matches every name."""


def name_problem(name: str) -> str | None:
    """Describes why a text cannot be a name; None if it can be one."""
    length = 0 < len(name) <= _LONGEST
    if length and name.isprintable() and name == name.strip() and not _APART.intersection(name):
        return None
    label = repr(name if len(name) <= _LONGEST else f"{name[:_LONGEST]}...")
    return (
        f"{label} cannot be a key, a folder and a metric; name it with 1 to {_LONGEST} printable "
        "characters other than . / \\ *, without spaces at its ends"
    )
