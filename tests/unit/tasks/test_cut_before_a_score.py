"""An episode that is cut before anything was scored has no scores: they are not 0."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from colearn.tasks.coop_humaneval import CoopHumanEval
from colearn.tasks.writing.arxiv import ArXiv
from colearn.tasks.writing.tldr import TLDR


@pytest.mark.parametrize("kind", [CoopHumanEval, TLDR, ArXiv])
def test_what_was_not_scored_is_not_measured(kind: Any) -> None:
    task = kind(data="packaged")
    state = task.reset(task.items("train")[0], np.random.default_rng(0))
    assert set(task.metrics(state).values()) == {None}
