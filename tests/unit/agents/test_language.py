"""What a player of a language model asks of its engine, and what it adds to the answers."""

from __future__ import annotations

from dataclasses import replace

from tiny import Notes, cast

from colearn.contract import ActionRequest, Sampling, TokenAnswer, TokenHistory
from colearn.contract.types import Action, Observation
from colearn.rollout.agents import Language
from colearn.rollout.agents.language import with_tokens


def asked(player: Language, *, greedy: bool = False) -> ActionRequest:
    return ActionRequest(
        player=player,
        seat="ada",
        task=Notes(),
        state=None,
        observation=Observation("hi", (1, 2)),
        history=None,
        seeds=(7,),
        greedy=greedy,
    )


def temperature(player: Language, *, greedy: bool = False) -> float:
    return player.token_request(asked(player, greedy=greedy)).sampling.temperature


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


def test_an_answer_has_the_version_of_its_weights_and_the_seconds_that_it_took() -> None:
    player = cast(("ada",)).players["ada"]
    said = TokenAnswer(Action("yes", (3, 4)), TokenHistory((1, 2, 3, 4)), 2.5)
    (answer,) = player.completed(asked(player), [said], version=4)
    assert (answer.action.version, answer.seconds) == (4, 2.5)
    assert answer.history == said.history


def test_a_conversation_that_begins_with_earlier_turns_is_in_the_tokens_of_its_first_text() -> None:
    chat = cast(("ada",)).players["ada"].spec.chat_format
    alone = Observation("now")
    later = Observation("now", turns=(("hi", "yo"),))
    assert with_tokens(chat, later, None).tokens == chat.open_conversation(later)
    assert len(with_tokens(chat, later, None).tokens) > len(with_tokens(chat, alone, None).tokens)
