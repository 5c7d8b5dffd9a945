"""An environment of verifiers: two lamps of a room, asked for one after the other."""

from __future__ import annotations

from collections.abc import Mapping

import lamps
import verifiers as vf
from datasets import Dataset
from openai import AsyncOpenAI
from verifiers.clients import OpenAIChatCompletionsClient
from worker import main

CLIENT = AsyncOpenAI(base_url="http://unused", api_key="unused", max_retries=0)


class Lamps(vf.MultiTurnEnv):
    """The second lamp is shown after the answer to the first."""

    async def env_response(self, messages: vf.Messages, state: vf.State) -> vf.Messages:
        """Shows the second lamp."""
        return [vf.UserMessage(content=f"The next lamp is {state['info']['second']}.")]


def right(completion: vf.Messages, info: Mapping[str, str]) -> float:
    """Half of the reward for each answer that names its lamp's colour."""
    said = [message["content"].strip() for message in completion if message["role"] == "assistant"]
    return sum(a == b for a, b in zip(said, (info["first"], info["second"]), strict=False)) / 2


def load_environment() -> vf.Environment:
    """Builds the environment, as packages for verifiers do."""
    rows = [
        {
            "prompt": [{"role": "user", "content": f"Room {room}. The lamp is {first}."}],
            "info": {"first": first, "second": second},
        }
        for room, first, second in lamps.ROWS
    ]
    rubric = vf.Rubric(funcs=[right])
    return Lamps(max_turns=2, dataset=Dataset.from_list(rows), rubric=rubric)


ENVIRONMENT = load_environment()
ROWS = ENVIRONMENT.get_dataset().to_list()


async def play(item: int, endpoints: Mapping[str, str]) -> float:
    """Runs one rollout, and returns the rubric's reward."""
    client = OpenAIChatCompletionsClient(CLIENT.with_options(base_url=endpoints["agent"]))
    rollout = await ENVIRONMENT.run_rollout(ROWS[item], client, "agent", {})
    if rollout["error"] is not None:  # verifiers scores a rollout whose request failed
        raise RuntimeError(rollout["error"]["error_chain_str"])
    return rollout["reward"]


if __name__ == "__main__":
    main(play, list(lamps.items("test")), lambda item, result: result)
