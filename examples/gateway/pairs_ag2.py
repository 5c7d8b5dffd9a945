"""Two agents in a group chat of AG2's classic framework: each sees what the other has said."""

from __future__ import annotations

from collections.abc import Mapping

import httpx
import pairs
from autogen import ConversableAgent, GroupChat, GroupChatManager
from worker import main


class Shared(httpx.Client):
    """HTTP client of all agents: AG2 copies an agent's settings, and copies are the client itself.

    A client for each agent costs ten times as much as the agent, and its connection stays open
    until Python collects the agent.
    """

    def __deepcopy__(self, memo: object) -> Shared:
        return self


CLIENT = Shared(timeout=600, limits=httpx.Limits(max_connections=None))


def member(name: str, endpoints: Mapping[str, str]) -> ConversableAgent:
    """Builds an agent with the model at its URL."""
    config = {
        "model": name,
        "base_url": endpoints[name],
        "api_key": "unused",
        "max_retries": 0,
        "http_client": CLIENT,
    }
    return ConversableAgent(
        name,
        system_message="Name a colour.",
        llm_config={"config_list": [config], "cache_seed": None},
        human_input_mode="NEVER",
    )


async def play(item: str, endpoints: Mapping[str, str]) -> dict[str, str]:
    """Runs a group chat of one turn each."""
    asker = ConversableAgent("asker", llm_config=False, human_input_mode="NEVER")
    members = [member(name, endpoints) for name in ("first", "second")]
    chat = GroupChat([asker, *members], [], max_round=3, speaker_selection_method="round_robin")
    manager = GroupChatManager(chat, llm_config=False, silent=True)
    await asker.a_initiate_chat(manager, message=f"Paint {item}.", silent=True)
    return {message["name"]: message["content"] for message in chat.messages[1:]}


if __name__ == "__main__":
    main(play, list(pairs.items("test")), pairs.grade)
