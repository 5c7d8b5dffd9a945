"""Workflows that are declared as a graph in YAML and checked before any episode.

    items: questions.jsonl                  # or .csv; the keys of a row are fields
    tools: [search]                         # a subset of the tools given to the task
    nodes:
      - {name: query, role: rewriter, prompt: "Search words for: {question}"}
      - {name: passages, tool: search, arguments: {query: "{query}"}}
      - {name: answer, role: answerer, prompt: "{passages} Answer: {question}"}
      - {name: again, when: {field: answer, contains: unknown}, next: query, at_most: 2}
    rewards: [{score: f1, field: answer, gold: answers}]

In a config, the whole `task` section is `task: graph.yaml`, or with tools
`task: {name: graph.yaml, tools: {search: "module:function"}}`.

Nodes run in order; `next` jumps to another node, or to `end`. A node with `role` stores the role's
answer under the node's name, and a node with `tool` stores the tool's result. A node with `when`
branches. Each score is a metric; if a graph scores several fields, the later ones are named
`SCORE_FIELD_GOLD`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence, Set
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from colearn import registry
from colearn.contract import Headline
from colearn.contract.held_out import hold_out
from colearn.errors import ConfigError
from colearn.programs.files.regular import read_regular
from colearn.programs.workflow.qa import accuracy, exact_match, f1
from colearn.text.csv_table import as_objects, read_csv
from colearn.text.json_value import numbered_lines, read_row
from colearn.text.media import media_problem
from colearn.text.validation import first_fault
from colearn.text.yaml_text import read_yaml_file

from .graph import Graph, Reward
from .graph_check import check_graph
from .task import Workflow
from .team import Team
from .tool import Tool, plain

SCORES: Mapping[str, Callable[[str, Sequence[str]], float]] = {
    "f1": f1,
    "em": exact_match,
    "accuracy": accuracy,
}


class DeclaredWorkflow(Workflow[Mapping[str, Any]]):
    """A task that executes the graph in a YAML file. `tools` maps the graph's tool names to async
    functions, or to `module:function`.

    Errors: ConfigError for an unreadable file, an unreachable node, a field that is not set, or a
    loop without `at_most`. The message is one line that names the node and the remedy.
    """

    def __init__(
        self, graph: str, *, tools: Mapping[str, str | Callable[..., Awaitable[Any]]] | None = None
    ) -> None:
        path = Path(graph)
        self.graph = _read(path)
        functions = tools or {}
        for name in self.graph.tools:
            if name not in functions:
                raise ConfigError(f"task.graph: tool '{name}' is not given; pass it in `tools`")
        self.tools = tuple(Tool(_function(name, functions[name])) for name in self.graph.tools)
        golds = {reward.gold for reward in self.graph.rewards}
        rows = _rows(path.parent / self.graph.items, golds)
        longest = check_graph(self.graph.nodes, self.graph.rewards, set(rows[0]), self.graph.tools)
        self.agents, self.horizon = self.graph.roles, longest
        self._check_names()
        self._metrics = _metrics(self.graph.rewards)
        self.measures = tuple(self._metrics.values())
        if self.measures:
            self.headline = Headline(self.measures[0])
        self._rows = hold_out(
            rows,
            self._asked,
            size=max(1, len(rows) // 5),
            source=f"task.graph: {self.graph.items}",
        )

    def _asked(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        """The fields of a row that the nodes read: rows that differ in others, such as a number,
        are the same question."""
        read = {name for node in self.graph.nodes for name in node.reads}
        return {name: value for name, value in row.items() if name in read} or row

    def items(self, split: str) -> Sequence[Mapping[str, Any]]:
        """Returns the file's rows for a split; a fifth of the rows is the split 'test'. Rows that
        are equal to the nodes are in the same split."""
        return self._rows[split]

    async def run(self, team: Team, item: Mapping[str, Any]) -> None:
        """Executes the nodes, then pays the rewards."""
        nodes, fields, jumps = self.graph.nodes, dict(item), dict[str, int]()
        answered_roles = set[str]()
        place = {node.name: number for number, node in enumerate(nodes)}
        at = 0
        while at < len(nodes):
            node = nodes[at]
            if node.role is not None:
                fields[node.name] = await team.ask(node.role, _filled(node.prompt, fields))
                answered_roles.add(node.role)
            elif node.tool is not None:
                arguments = {key: _filled(text, fields) for key, text in node.arguments.items()}
                fields[node.name] = await team.use(node.tool, **arguments)
            at += 1
            allowed = node.at_most is None or jumps.get(node.name, 0) < node.at_most
            if node.next is not None and allowed and (not node.when or node.when.holds(fields)):
                jumps[node.name] = jumps.get(node.name, 0) + 1
                at = len(nodes) if node.next == "end" else place[node.next]
        for reward in self.graph.rewards:
            gold = fields[reward.gold]
            texts = (gold,) if isinstance(gold, str) else tuple(map(str, gold))
            score = SCORES[reward.score](plain(fields.get(reward.field, "")), texts)
            team.measure(**{self._metrics[reward.score, reward.field, reward.gold]: score})
            if reward.to is None or reward.to in answered_roles:
                team.reward(reward.weight * score, to=reward.to)


def _metrics(rewards: Sequence[Reward]) -> dict[tuple[str, str, str], str]:
    """Returns the name of the metric of each score, field and gold field: the first of a score has
    the score's name."""
    names: dict[tuple[str, str, str], str] = {}
    for reward in rewards:
        key = (reward.score, reward.field, reward.gold)
        names.setdefault(key, "_".join(key) if reward.score in names.values() else reward.score)
    return names


def _filled(text: str, fields: Mapping[str, Any]) -> str:
    return text.format_map({name: plain(value) for name, value in fields.items()})


def _read(path: Path) -> Graph:
    try:
        data = read_yaml_file(path)
    except OSError:
        raise ConfigError(
            f"task.graph: cannot read {path}; give the path of a .yaml file"
        ) from None
    except ValueError as error:
        raise ConfigError(f"task.graph: {path} is {error}; correct the file") from None
    try:
        return Graph.model_validate(data)
    except ValidationError as error:
        place, faults = first_fault(error, data)
        location = ".".join(map(str, place))
        raise ConfigError(
            f"task.graph: {location}: {faults[0]['msg'].removeprefix('Value error, ')}; correct "
            f"{path}"
        ) from None


def _rows(path: Path, golds: Set[str]) -> list[dict[str, Any]]:
    """Reads the file's objects; `golds` are the fields with gold answers."""
    rows: list[dict[str, Any]] = []
    for number, row in _numbered(path):
        location = f"task.graph: items: line {number} of {path}"
        if not isinstance(row, dict):
            raise ConfigError(f"{location} is not an object; write one with the fields of an item")
        if (problem := media_problem(row, by_name=False)) is not None:
            raise ConfigError(f"{location} {problem}")
        if rows and row.keys() != rows[0].keys():
            raise ConfigError(f"{location} has other keys than the first; use the same keys in all")
        for name in golds & row.keys():
            gold = row[name] if isinstance(row[name], list) else [row[name]]
            if not gold or not all(isinstance(text, str) and text.strip() for text in gold):
                raise ConfigError(
                    f"{location}: '{name}' is not a gold answer; write a text or a list of texts"
                )
        rows.append(row)
    if len(rows) < 2:
        raise ConfigError(
            f"task.graph: items: {path} has {len(rows)} rows; write two or more, one object per "
            "line: a fifth is the test split"
        )
    return rows


def _numbered(path: Path) -> Iterator[tuple[int, Any]]:
    """Yields the number and the parsed value of each line of a file."""
    try:
        text = read_regular(path).decode("utf-8-sig")
    except (OSError, ValueError):
        raise ConfigError(f"task.graph: items: cannot read {path} as lines of text") from None
    if path.suffix == ".csv":
        try:
            yield from as_objects(read_csv(text))
        except ValueError as error:
            raise ConfigError(f"task.graph: items: {path} {error}") from None
        return
    for number, line in numbered_lines(text):
        try:
            yield number, read_row(line)
        except ValueError as error:
            raise ConfigError(
                f"task.graph: items: line {number} of {path} {error}; write one object per line"
            ) from None


def _function(
    name: str, source: str | Callable[..., Awaitable[Any]]
) -> Callable[..., Awaitable[Any]]:
    field = f"task.tools.{name}"
    function = registry.own_function(source, field) if isinstance(source, str) else source
    if not iscoroutinefunction(function) or function.__name__ != name:
        raise ConfigError(f"{field}: must be `async def {name}(...)`; write or rename the function")
    return function
