"""Filters the events that are sent to a person's page. During an episode, the page receives only
events that the person's agent may see. After the episode, it receives all events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Event = Mapping[str, Any]

_PRIVATE = ("asked", "retried", "acted")
"""Kinds of events that concern a single agent."""
_REVEALED = ("observed", "acted", "stepped")
"""Kinds of events that are sent again, unfiltered, when the episode has ended."""


def seen_from(seat: str, log: Sequence[Event], index: int) -> Iterator[Event]:
    """Yield the events that the page of the agent `seat` receives for event number `index` of a
    play session.

    Until the episode has ended or is lost, the other agents' observations, actions and local
    rewards are withheld. The world and the item, which may contain the answer, are also withheld.
    All withheld data except the item are sent just before the event that ends the episode.
    """
    event = log[index]
    kind = event["kind"]
    if kind == "planned":
        yield {**event, "items": ["" for _ in event["items"]]}
    elif kind == "started":
        yield {**event, "item": ""}
    elif kind in _PRIVATE:
        if event["agent"] == seat:
            yield event
    elif kind == "observed":
        own_observations = {
            name: text for name, text in event["observations"].items() if name == seat
        }
        yield {**event, "observations": own_observations, "picture": None, "world": None}
    elif kind == "stepped":
        paid = {name: reward for name, reward in event["local_rewards"].items() if name == seat}
        yield {**event, "local_rewards": paid}
    else:
        if kind in ("ended", "lost"):
            yield from (
                earlier
                for earlier in log[:index]
                if earlier["kind"] in _REVEALED and earlier["episode"] == event["episode"]
            )
        yield event
