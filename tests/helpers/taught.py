"""The config of two agents that learn from a teacher alone."""

from __future__ import annotations

from typing import Any


def taught(student: str, teacher: str) -> dict[str, Any]:
    """The config; `teacher` is a path or the URL of a server."""
    return {
        "task": {"name": "notes", "horizon": 2, "items": 3},
        "models": {"*": {"path": student, "teacher": teacher, "learning_rate": 1e-3}},
        "agents": {"*": {"sampling": {"max_tokens": 4}}},
        "algorithm": {"name": "distillation"},
        "train": {"environment_steps": 16, "episodes": 8},
        "evaluation": {"episodes": 1, "every": 1000},
        "run": {"device": "cpu"},
    }
