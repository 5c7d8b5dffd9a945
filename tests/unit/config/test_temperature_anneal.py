"""`sampling.anneal`: the temperature of training, on its way to that of evaluation."""

from __future__ import annotations

import pytest

from colearn.config import AgentSettings, SamplingSettings, load_config
from colearn.errors import ConfigError


def agent(**sampling):
    return AgentSettings.model_validate({"sampling": sampling})


def test_the_temperature_falls_on_a_straight_line_to_that_of_evaluation():
    sampling = agent(temperature=0.2, anneal={"start": 1.0, "end": 0.5}).sampling
    temperatures = [sampling.training_temperature(done) for done in (0.0, 0.25, 0.5, 1.0)]
    assert temperatures == pytest.approx([1.0, 0.6, 0.2, 0.2])


def test_the_temperature_is_held_until_it_begins_to_fall():
    sampling = agent(temperature=0.2, anneal={"start": 1.0, "begin": 0.5, "end": 0.9}).sampling
    temperatures = [sampling.training_temperature(done) for done in (0.0, 0.5, 0.6, 0.8, 0.9, 1.0)]
    assert temperatures == pytest.approx([1.0, 1.0, 0.8, 0.4, 0.2, 0.2])


def test_without_a_schedule_training_has_the_temperature_of_evaluation():
    assert agent(temperature=0.7).sampling.training_temperature(0.3) == 0.7


def test_an_exported_agent_has_no_schedule():
    deployed = agent(temperature=0.2, top_k=5, anneal={"start": 1.0}).sampling.deployed
    assert type(deployed) is SamplingSettings
    assert deployed.model_dump(exclude_unset=True) == {"temperature": 0.2, "top_k": 5}


@pytest.mark.parametrize(
    ("seat", "message"),
    [
        ({"sampling": {"temperature": 0, "anneal": {"start": 1}}}, "temperature above 0 at its"),
        ({"sampling": {"anneal": {"start": 0}}}, "start: input should be greater than or equal to"),
        ({"sampling": {"anneal": {"start": 1, "end": 2}}}, "end: input should be less than"),
        ({"sampling": {"anneal": {"start": 1, "begin": 0.5, "end": 0.5}}}, "begin must lie below"),
        ({"sampling": {"anneal": {}}}, "anneal.start: missing"),
        ({"sampling": {"anneal": {"start": 1}}, "program": {"name": "legal"}}, "needs a model of"),
        ({"sampling": {"anneal": {"start": 1}}, "endpoint": "http://x"}, "needs a model of this"),
    ],
)
def test_a_schedule_that_has_no_meaning_is_refused(seat, message):
    config = {"task": {"name": "dpomdp"}, "models": {"*": {"path": "x"}}, "agents": {"*": seat}}
    with pytest.raises(ConfigError, match=rf"^agents\.\*[^\n]*{message}[^\n]*$"):
        load_config(config)
