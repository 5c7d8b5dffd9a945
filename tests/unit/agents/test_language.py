"""The temperature of a request that a player of a language model makes."""

from __future__ import annotations

from dataclasses import replace

from tiny import Notes, cast

from colearn.contract import ActionRequest, Sampling
from colearn.contract.types import Observation
from colearn.rollout.agents import Language


def temperature(player: Language, *, greedy: bool = False) -> float:
    asked = ActionRequest(
        player=player,
        seat="ada",
        task=Notes(),
        state=None,
        observation=Observation("hi", (1, 2)),
        history=None,
        seeds=(7,),
        greedy=greedy,
    )
    return player.token_request(asked).sampling.temperature


def test_a_request_has_the_temperature_of_its_time_in_training_and_without_one_the_agent_s() -> (
    None
):
    usual = cast(("ada",)).players["ada"]
    falling = replace(
        usual.spec,
        sampling=Sampling(temperature=0.5),
        training_temperature=lambda done: 1.0 - done,
    )
    usual = replace(usual, spec=falling)
    assert temperature(usual) == 0.5
    assert temperature(usual.at(0.25)) == 0.75
    assert temperature(usual.at(0.25), greedy=True) == 0.0
