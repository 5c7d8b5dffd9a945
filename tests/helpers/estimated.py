"""A dry run of a tiny team, as fixtures of the tests that import all of this."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from tiny import register, save_model

from colearn.config import load_config
from colearn.estimate import Estimate, estimate
from colearn.estimate.learning import UpdatePass
from colearn.estimate.ledger import Cost
from colearn.estimate.machine import Machine
from colearn.estimate.phases import Passes
from colearn.estimate.speaking import CallPass


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_model(tmp_path_factory.mktemp("model"), "llama")


@pytest.fixture(scope="module")
def passes() -> Passes:
    """Passes of the tiny model, which each estimate of a module would rehearse again."""
    return Passes()


@pytest.fixture
def estimated(model: str, passes: Passes, monkeypatch: pytest.MonkeyPatch) -> Any:
    register(monkeypatch, notes="tiny:Notes")

    def run(
        *overrides: str,
        processes: int = 1,
        machine: Machine | None = None,
        passes: Passes = passes,
        **sections: Any,
    ) -> Estimate:
        settings = {
            "task": {"name": "notes", "horizon": 2, "items": 3},
            "algorithm": {"name": "collm_cc"},
            "models": {"*": {"path": model}},
            "agents": {"*": {"sampling": {"max_tokens": 4}}},
            "critic": {"path": model},
            "train": {"episodes": 2},
            "evaluation": {"episodes": 1},
            "run": {"device": "cpu"},
        }
        config = load_config(settings | sections, overrides)
        return estimate(config, processes=processes, machine=machine, rehearsed=passes)

    return run


@pytest.fixture
def planned(estimated: Any, no_passes: None) -> Any:
    """As `estimated`, without the passes over the models."""
    return partial(estimated, passes=Passes())


@pytest.fixture
def no_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the passes over the models, which take most of a dry run's time, as needing nothing."""
    nothing = Cost(0, 0.0)
    call, update = CallPass(0, nothing, nothing), UpdatePass(0, nothing)
    monkeypatch.setattr("colearn.estimate.phases.rehearse_call", lambda *passed: call)
    monkeypatch.setattr(
        "colearn.estimate.phases.rehearse_update", lambda *passed, **options: update
    )
