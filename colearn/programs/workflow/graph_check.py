"""Static checks of a declared graph."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from colearn.errors import ConfigError, nearest

from .graph import END, GraphNode, Reward

_TURNS = 100_000
"""Maximum number of turns of an episode."""


def check_graph(
    nodes: Sequence[GraphNode],
    rewards: Sequence[Reward],
    item_fields: set[str],
    tools: Collection[str],
) -> int:
    """Checks a graph and returns an upper bound on the turns of an episode.

    Errors: ConfigError for a duplicate or unknown name, a node with both a role and a tool, a node
    without a function, an unreachable node, a field that is not set on every path, or a loop
    without `at_most`, and for a reward whose gold answers a node would replace.
    """
    place = {node.name: number for number, node in enumerate(nodes)}
    if len(place) < len(nodes):
        raise _wrong("two nodes have the same name; rename one")
    for node in nodes:
        if sum(part is not None for part in (node.role, node.tool)) + (node.when is not None) == 0:
            raise _wrong(f"node '{node.name}' does nothing; give it a role, a tool or a when")
        if node.role is not None and node.tool is not None:
            raise _wrong(f"node '{node.name}' has a role and a tool; split it")
        if node.tool is not None and node.tool not in tools:
            raise _wrong(f"node '{node.name}': no tool '{node.tool}'; {nearest(node.tool, tools)}")
        if node.next is not None and node.next != END and node.next not in place:
            hint = nearest(node.next, [*place, END])
            raise _wrong(f"node '{node.name}': next is no node '{node.next}'; {hint}")
        if node.when and (node.when.contains is None) == (node.when.equals is None):
            raise _wrong(f"node '{node.name}': when needs either contains or equals")
        if node.when and node.next is None:
            raise _wrong(f"node '{node.name}': when without next leads nowhere; add next")
    ways = [_ways(node, number, place, len(nodes)) for number, node in enumerate(nodes)]
    known = _known_fields(nodes, ways, item_fields)
    for node, fields in zip(nodes, known, strict=False):
        if fields is None:
            raise _wrong(f"nothing leads to node '{node.name}'; correct a next or remove it")
        written = {node.name} if node.role or node.tool else set()
        for name in sorted(node.reads):
            late = node.when is not None and name == node.when.field and name in written
            if name not in fields and not late:
                raise _wrong(
                    f"node '{node.name}' reads '{name}', which is not set on every way there; "
                    f"{nearest(name, fields)}"
                )
    results = {node.name for node in nodes if node.role or node.tool}
    for reward in rewards:
        if reward.gold in results:
            raise _wrong(
                f"a reward's gold '{reward.gold}' is the result of a node; name a field of the "
                "items, and rename a node that has the field's name"
            )
        for name, sources in ((reward.field, item_fields | results), (reward.gold, item_fields)):
            if name not in sources:
                raise _wrong(
                    f"a reward reads '{name}', which nothing sets; {nearest(name, sources)}"
                )
        if reward.to is not None and reward.to not in {node.role for node in nodes}:
            raise _wrong(f"a reward goes to '{reward.to}', which is no role")
    return _most_turns(nodes, place)


def _ways(node: GraphNode, number: int, place: dict[str, int], end: int) -> set[int]:
    """Returns the possible successors of a node; `end` is the last node's number plus 1."""
    if node.next is None:
        return {number + 1}
    target = end if node.next == END else place[node.next]
    sure = node.when is None and node.at_most is None
    return {target} if sure else {target, number + 1}


def _known_fields(
    nodes: Sequence[GraphNode], ways: Sequence[set[int]], item_fields: set[str]
) -> list[set[str] | None]:
    """Returns, by node, the fields that are set on every path to it; None if there is no path."""
    known: list[set[str] | None] = [None] * (len(nodes) + 1)
    known[0] = set(item_fields)
    open_nodes = [0]
    while open_nodes:
        at = open_nodes.pop()
        if at == len(nodes):
            continue
        before, node = known[at], nodes[at]
        assert before is not None, "open nodes have been reached"
        after = before | ({node.name} if node.role or node.tool else set())
        for target in ways[at]:
            earlier = known[target]
            fields = after if earlier is None else earlier & after
            if fields != earlier:
                known[target] = fields
                open_nodes.append(target)
    return known


def _most_turns(nodes: Sequence[GraphNode], place: dict[str, int]) -> int:
    """Returns an upper bound on the number of turns: each jump back repeats all nodes from its
    target to the jump."""
    times = [1] * len(nodes)
    for number, node in enumerate(nodes):
        back = place.get(node.next or "", number + 1)
        if back > number:
            continue
        if node.at_most is None:
            raise _wrong(
                f"node '{node.name}' jumps back to '{node.next}' without a bound; set at_most"
            )
        for inside in range(back, number + 1):
            times[inside] *= node.at_most + 1
    turns = sum(count for node, count in zip(nodes, times, strict=True) if node.role)
    if turns > _TURNS:
        raise _wrong(f"its loops ask roles up to {turns:,} times; lower at_most")
    return turns


def _wrong(text: str) -> ConfigError:
    return ConfigError(f"task.graph: {text}")
