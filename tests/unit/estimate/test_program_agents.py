"""A dry run of a team in which a program plays one of the agents."""

from __future__ import annotations

from typing import Any

import pytest
from estimated import *  # noqa: F403 - fixtures

IN_TURN = {"wrapper": {"name": "pipeline"}, "critic": None, "algorithm": {"name": "at_grpo"}}


@pytest.mark.parametrize("program", ["ada", "ben"])
def test_turns_of_a_program_are_played(planned: Any, program: str) -> None:
    other = "ben" if program == "ada" else "ada"
    agents = {other: {"sampling": {"max_tokens": 4}}, program: {"program": {"name": "says"}}}
    one = planned(**IN_TURN, agents=agents)
    # 2 episodes, two turns of each agent: 4 candidates of the model, one answer of the program
    assert (one.steps.generations, one.steps.joint_actions) == (20, 20)
    assert one.steps.new_tokens == 2 * 2 * 4 * 4
