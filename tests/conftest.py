"""Makes the shared parts of the tests (`tiny`) importable, keeps torch to one thread, and says
which tests are the fast tier: `pytest -m fast -n 2`, about a minute on two cores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

torch.set_num_threads(1)

HERE = Path(__file__).parent
FAST = {HERE / "integration" / f"test_{name}.py" for name in ("learning", "updater")}
"""Beside the unit tests: what an update does, by hand, and that teams learn by it."""
NOT_FAST = {
    HERE / "unit" / f"test_{name}.py"
    for name in (
        *("comparison", "coop_humaneval", "estimate", "pictures", "play_runner"),
        *("remote_agent", "report", "serve_text", "suite", "tabular_search"),
    )
}
"""Unit tests that start processes, draw reports or search."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Workers take the tests of a file together, so that what a file sets up (servers, warm
    starts) is set up once; who ends first takes from the others."""
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        unit = item.path.is_relative_to(HERE / "unit") and item.path not in NOT_FAST
        if (unit or item.path in FAST) and item.get_closest_marker("slow") is None:
            item.add_marker("fast")
