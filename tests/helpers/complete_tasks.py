"""Tasks that can be built from their defaults alone."""

from __future__ import annotations

from colearn.registry import names

NEED_SETTINGS = {
    "dataset",
    "environment",
    "gateway",
    "harbor",
    "openenv",
    "reasoning_gym",
    "textarena",
    "verifiers",
    "workflow",
}
"""They name a file, a folder, a program, a server, a data set or a game."""
COMPLETE_TASKS = sorted({*names("tasks")} - NEED_SETTINGS)
