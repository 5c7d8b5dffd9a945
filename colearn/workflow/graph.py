"""A declared graph's sections: nodes that ask a role, use a tool or branch, and rewards."""

from __future__ import annotations

from collections.abc import Mapping
from string import Formatter
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from .tool import plain


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class When(_Section):
    """A condition on a field's text."""

    field: str
    contains: str | None = None
    equals: str | None = None

    def holds(self, fields: Mapping[str, Any]) -> bool:
        """Whether the text contains, or without white space equals, what is asked for."""
        text = plain(fields[self.field])
        if self.contains is not None:
            return self.contains in text
        return text.strip() == self.equals


class GraphNode(_Section):
    """One step."""

    name: str
    role: str | None = None
    prompt: str = ""
    tool: str | None = None
    arguments: Mapping[str, str] = Field(default_factory=dict)
    when: When | None = None
    """Take `next` only where this holds; else go on with the node below."""
    next: str | None = None
    """None: the node below; `end`: nowhere."""
    at_most: int | None = Field(default=None, ge=1)
    """How often `next` is taken in an episode; after that, the node below."""

    @property
    def reads(self) -> set[str]:
        """The fields that the node needs."""
        texts = (self.prompt, *self.arguments.values())
        found = {name for text in texts for _, name, _, _ in Formatter().parse(text) if name}
        return found | ({self.when.field} if self.when else set())


class Reward(_Section):
    """A score of a field against the item's gold answers, for the team or for one role."""

    score: Literal["f1", "em", "accuracy"]
    field: str
    gold: str
    to: str | None = None
    """A role, all that it said: nothing is paid where it was not asked. None: the team."""
    weight: float = 1.0


class Graph(_Section):
    """A whole workflow."""

    items: str
    """A .jsonl file, from the graph's folder; the last fifth is tested."""
    tools: tuple[str, ...] = ()
    nodes: tuple[GraphNode, ...]
    rewards: tuple[Reward, ...]

    @property
    def roles(self) -> tuple[str, ...]:
        """In order of appearance."""
        return tuple(dict.fromkeys(node.role for node in self.nodes if node.role))
