"""Names of agents, players, models and a suite's tasks, which become keys of a config, modules of
torch, folders and metrics."""

from __future__ import annotations

_LONGEST = 60
"""Maximum number of characters: four bytes each and a prefix fit the 255 bytes of a file's name."""
_APART = frozenset("./\\*")
"""A dot separates keys and modules, a slash folders and metrics; a star stands for every name."""


def name_problem(name: str) -> str | None:
    """Describes why a text cannot be a name; None if it can be one."""
    length = 0 < len(name) <= _LONGEST
    if length and name.isprintable() and name == name.strip() and not _APART.intersection(name):
        return None
    shown = repr(name if len(name) <= _LONGEST else f"{name[:_LONGEST]}...")
    return (
        f"{shown} cannot be a key, a folder and a metric; name it with 1 to {_LONGEST} printable "
        "characters other than . / \\ *, without spaces at its ends"
    )
