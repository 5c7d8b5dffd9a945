"""The order in which a batch holds its rows, whatever the order of the requests."""

from __future__ import annotations

from typing import Any

import pytest
from asking import token_request
from tiny import cast

from colearn.engines.transformers import TransformersEngine


def test_rows_of_one_adapter_are_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    team = cast(("ada", "ben"), lora={"ada": "one", "ben": "two"}, max_tokens=3)
    base, used = team.bases["ada"], []
    using = base.using

    def noted(adapters: Any) -> Any:
        used.append(list(adapters))
        return using(adapters)

    monkeypatch.setattr(base, "using", noted)
    asked = [
        token_request(team.voices, agent, (number, 9, 9), (1, 2))
        for number in (20, 30)
        for agent in ("ben", "ada")
    ]
    TransformersEngine(base, team.voices).generate(asked)
    one, two = (team.voices[agent].adapter for agent in ("ada", "ben"))
    assert used[:2] == [[one] * 2 + [two] * 2, [one] * 4 + [two] * 4], "prompts, then answers"
