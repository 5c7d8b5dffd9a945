"""What a generator's settings become of the engine that they build."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from colearn.engines import transformers
from colearn.engines.kinds import Transformers


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The settings of each engine that is built."""
    settings: list[dict[str, Any]] = []
    monkeypatch.setattr(
        transformers, "TransformersEngine", lambda base, roles, **given: settings.append(given)
    )
    return settings


def test_every_setting_of_the_default_generator_reaches_its_engine(
    built: list[dict[str, Any]],
) -> None:
    """Half a GiB is 2^29 bytes."""
    given = Transformers(max_rows=3, cache_gib=0.5, copy=True, device="cpu", cuda_graphs=False)
    given.build(None, {})  # type: ignore[arg-type]
    assert built == [
        {
            "max_rows": 3,
            "cache_bytes": 2**29,
            "copies": True,
            "device": torch.device("cpu"),
            "cuda_graphs": False,
        }
    ]


def test_without_a_limit_all_caches_are_kept(built: list[dict[str, Any]]) -> None:
    Transformers().build(None, {})  # type: ignore[arg-type]
    assert built[0]["cache_bytes"] is None and built[0]["device"] is None
