"""Filters events for the page of a person: during an episode it shows only what the person's agent
may see, and after the episode everything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Event = Mapping[str, Any]

_PRIVATE = ("asked", "retried", "acted")
"""Events about a single agent."""
_REVEALED = ("observed", "acted", "stepped")
"""Events that are sent again, unfiltered, after the episode has ended."""


def seen_from(seat: str, log: Sequence[Event], index: int) -> Iterator[Event]:
    """The events that `seat` receives for event `index` of a play session.

    Until the episode has ended or is lost, the other agents' observations, actions and local
    rewards are withheld. The world and the item, which may contain the answer, are also withheld.
    All except the item are then sent before the event that ends the episode.
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
        seen = {name: text for name, text in event["observations"].items() if name == seat}
        yield {**event, "observations": seen, "picture": None, "world": None}
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
