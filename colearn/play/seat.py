"""What a person's page receives: that seat alone while an episode runs, everything at its end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Event = Mapping[str, Any]

_PRIVATE = ("asked", "retried", "acted")
"""Events of one agent."""
_REVEALED = ("observed", "acted", "stepped")
"""Events that are sent again, in full, once the episode has ended."""


def seen_from(seat: str, log: Sequence[Event], index: int) -> Iterator[Event]:
    """What `seat` is told of event `index` of a play.

    Others' observations, actions and rewards, the world and the item, which may hold the answer,
    are withheld until the episode has ended or is lost; then they are told before its end is.
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
        own = {name: text for name, text in event["observations"].items() if name == seat}
        yield {**event, "observations": own, "picture": None, "world": None}
    elif kind == "stepped":
        own = {name: paid for name, paid in event["local_rewards"].items() if name == seat}
        yield {**event, "local_rewards": own}
    else:
        if kind in ("ended", "lost"):
            yield from (
                earlier
                for earlier in log[:index]
                if earlier["kind"] in _REVEALED and earlier["episode"] == event["episode"]
            )
        yield event
