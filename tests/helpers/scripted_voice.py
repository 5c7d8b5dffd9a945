"""Language players whose generator always says the same ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from colearn.contract import BatchEngine, TokenAnswer, TokenEngine, TokenRequest
from colearn.contract.types import Action
from colearn.rollout.agents import AgentSpec, ChatFormat, Language
from tests.helpers.tiny import byte_tokenizer


def language_players(engine: TokenEngine, specs: Mapping[str, AgentSpec]) -> dict[str, Language]:
    """The players of one engine, one for each name in `specs`."""
    return {name: Language(engine=engine, agent=name, spec=spec) for name, spec in specs.items()}


class Scripted(BatchEngine):
    """One text, ended by the end token, with log-probability -1 for each id."""

    def __init__(self, action: Action) -> None:
        self.action = action

    def sync(self) -> None:
        """Nothing is trained."""

    def generate(self, requests: Sequence[TokenRequest]) -> list[list[TokenAnswer]]:
        return [
            [TokenAnswer(self.action, one.history.act(self.action.tokens)) for _ in one.seeds]
            for one in requests
        ]


def scripted_players(agents, text):
    """The players, and their tokenizer."""
    tokenizer = byte_tokenizer()
    chat = ChatFormat(tokenizer)
    ids = (*tokenizer(text, add_special_tokens=False)["input_ids"], chat.end_id)
    action = Action(text=text, tokens=ids, logprobs=(-1.0,) * len(ids), finish="end")
    return language_players(
        Scripted(action), dict.fromkeys(agents, AgentSpec(chat=chat))
    ), tokenizer
