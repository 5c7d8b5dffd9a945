"""Schema of a declared graph: nodes that ask a role, use a tool or branch, and rewards."""

from __future__ import annotations

from collections.abc import Mapping
from string import Formatter
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from .team import role_problem
from .tool import plain

END = "end"
"""Value of `next` that ends the run."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def read_fields(text: str) -> list[str]:
    """Names of the fields in braces.

    Errors: ValueError for anything other than `{name}`: a conversion, a width, an attribute, an
    unclosed brace.
    """
    names = []
    try:
        parts = list(Formatter().parse(text))
    except ValueError as error:
        raise ValueError(f"{error}; write {{{{ and }}}} for braces that are text") from None
    for _, name, form, conversion in parts:
        if name is None:
            continue
        if form or conversion or not name.isidentifier():
            raise ValueError(f"'{{{name}...' is no field; write {{name}}, or {{{{ for a brace")
        names.append(name)
    return names


def _readable(text: str) -> str:
    read_fields(text)
    return text


Template = Annotated[str, AfterValidator(_readable)]
"""A string with fields in braces."""


def _name(name: str) -> str:
    if name == END or not name.strip():
        raise ValueError(f"'{name}' cannot name a role or a node; choose another name")
    return name


def _role(name: str) -> str:
    if problem := role_problem(_name(name)):
        raise ValueError(problem)
    return name


Name = Annotated[str, AfterValidator(_name)]
Role = Annotated[str, AfterValidator(_role)]
"""The name of a role or a tool."""


class When(_Section):
    """A condition on a field's text."""

    field: str
    contains: str | None = None
    equals: str | None = None

    def holds(self, fields: Mapping[str, Any]) -> bool:
        """Returns whether the stripped text equals `equals`, or the text contains `contains`."""
        text = plain(fields[self.field])
        if self.contains is not None:
            return self.contains in text
        return text.strip() == self.equals


class GraphNode(_Section):
    """One step of a graph."""

    name: Name
    role: Role | None = None
    prompt: Template = ""
    tool: str | None = None
    arguments: Mapping[str, Template] = Field(default_factory=dict)
    when: When | None = None
    """Condition under which `next` is taken; otherwise the following node runs."""
    next: str | None = None
    """Name of the next node. None: the following node; `end`: the run ends."""
    at_most: int | None = Field(default=None, ge=1, le=1000)
    """Maximum number of times that `next` is taken; afterwards the following node runs."""

    @property
    def reads(self) -> set[str]:
        """Names of the fields that the node reads."""
        texts = (self.prompt, *self.arguments.values())
        fields = {name for text in texts for name in read_fields(text)}
        return fields | ({self.when.field} if self.when else set())


class Reward(_Section):
    """A reward for the team or one role: the score of a field against the item's gold answers."""

    score: Literal["f1", "em", "accuracy"]
    field: str
    gold: str
    to: str | None = None
    """Role that is paid for each of its answers, if it gave any. None: the team is paid."""
    weight: float = 1.0


class Graph(_Section):
    """A whole workflow."""

    items: str
    """A .jsonl or .csv file, relative to the graph's folder; a fifth is the test split."""
    tools: tuple[Role, ...] = ()
    nodes: tuple[GraphNode, ...]
    rewards: tuple[Reward, ...]

    @property
    def roles(self) -> tuple[str, ...]:
        """Role names in order of appearance."""
        return tuple(dict.fromkeys(node.role for node in self.nodes if node.role))
