"""Language players whose generator always says the same ids."""

from __future__ import annotations

from collections.abc import Sequence

from colearn.contract import BatchEngine, TokenAnswer, TokenRequest
from colearn.contract.types import Action
from colearn.rollout.agents import AgentSpec, ChatFormat, language_players
from tests.helpers.tiny import byte_tokenizer


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
