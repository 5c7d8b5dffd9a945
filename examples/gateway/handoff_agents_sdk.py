"""A dispatcher and two specialists in the OpenAI Agents SDK: a handoff and a function tool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import jobs
from agents import (
    Agent,
    MaxTurnsExceeded,
    OpenAIChatCompletionsModel,
    RunContextWrapper,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI
from worker import main

set_tracing_disabled(True)
CLIENT = AsyncOpenAI(base_url="http://unused", api_key="unused", max_retries=0)


@dataclass
class Place:
    """What a look at the place shows, and whether somebody has looked."""

    colour: str
    looked: bool = False


@function_tool
def look(context: RunContextWrapper[Place]) -> str:
    """Shows the place."""
    context.context.looked = True
    return context.context.colour


def team(endpoints: Mapping[str, str]) -> Agent[Place]:
    """Builds the agents, each with the model at its URL."""

    def model(agent: str) -> OpenAIChatCompletionsModel:
        return OpenAIChatCompletionsModel(agent, CLIENT.with_options(base_url=endpoints[agent]))

    specialists = [
        Agent(name=name, instructions="Say the colour.", model=model(name), tools=[look])
        for name in ("painter", "gardener")
    ]
    return Agent(
        name="dispatcher",
        instructions="Hand the job over.",
        model=model("dispatcher"),
        handoffs=specialists,
    )


async def play(item: Mapping[str, str], endpoints: Mapping[str, str]) -> dict[str, str]:
    """Runs the agents on one job."""
    place = Place(item["colour"])
    try:
        run = await Runner.run(team(endpoints), item["job"], context=place, max_turns=4)
    except MaxTurnsExceeded:
        return {"specialist": "", "answer": "", "looked": "no"}
    looked = "yes" if place.looked else "no"
    return {"specialist": run.last_agent.name, "answer": run.final_output, "looked": looked}


if __name__ == "__main__":
    held_out = list(jobs.items("test"))
    main(play, held_out, lambda item, result: jobs.grade(item, result)["team"])
