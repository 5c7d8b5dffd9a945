"""The relay in LangGraph: a graph of two nodes, each a chat model at the base URL of its agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

import scenes
from langchain_core.runnables import RunnableConfig
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from openai import DefaultAsyncHttpxClient, DefaultHttpxClient
from worker import main


class State(TypedDict, total=False):
    """What the nodes share."""

    scene: str
    lookout: str
    painter: str


HTTP = {"http_async_client": DefaultAsyncHttpxClient(), "http_client": DefaultHttpxClient()}
"""Shared by all episodes, whose URLs differ: a client of its own costs each request 35 ms."""


async def say(config: RunnableConfig, agent: str, text: str) -> str:
    """Asks the chat model of an agent."""
    url = config["configurable"][agent]
    model = ChatOpenAI(model=agent, base_url=url, api_key="unused", max_retries=0, **HTTP)
    return str((await model.ainvoke(text)).content)


async def lookout(state: State, config: RunnableConfig) -> State:
    """Sees the scene."""
    text = f"You see: {state['scene']}. Which colour?"
    return {"lookout": await say(config, "lookout", text)}


async def painter(state: State, config: RunnableConfig) -> State:
    """Sees what the lookout said."""
    text = f"The lookout says: {state['lookout']}. Paint it."
    return {"painter": await say(config, "painter", text)}


graph = StateGraph(State)
graph.add_node("look", lookout)
graph.add_node("paint", painter)
graph.add_edge(START, "look")
graph.add_edge("look", "paint")
graph.add_edge("paint", END)
GRAPH = graph.compile()


async def play(item: str, endpoints: Mapping[str, str]) -> State:
    """Runs the graph on one item."""
    return await GRAPH.ainvoke({"scene": item}, {"configurable": dict(endpoints)})


if __name__ == "__main__":
    main(play, scenes.items("test"), scenes.grade)
