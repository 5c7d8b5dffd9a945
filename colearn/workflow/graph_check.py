"""What can be said of a declared graph before it is played."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from colearn.errors import ConfigError, nearest

from .graph import GraphNode, Reward

END = "end"


def check_graph(
    nodes: Sequence[GraphNode], rewards: Sequence[Reward], given: set[str], tools: Collection[str]
) -> int:
    """The most turns that an episode can have.

    Errors: ConfigError for a name that is used twice or unknown, a node that does two things or
    none, one that nothing leads to, a field that some way to a node has not set, or a loop without
    `at_most`.
    """
    place = {node.name: number for number, node in enumerate(nodes)}
    if len(place) < len(nodes):
        raise _wrong("two nodes have one name; rename one")
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
    known = _known_fields(nodes, ways, given)
    for node, fields in zip(nodes, known, strict=False):
        if fields is None:
            raise _wrong(f"nothing leads to node '{node.name}'; mend a next or remove it")
        own = {node.name} if node.role or node.tool else set()
        for name in sorted(node.reads):
            late = node.when is not None and name == node.when.field and name in own
            if name not in fields and not late:
                raise _wrong(
                    f"node '{node.name}' reads '{name}', which is not set on every way there; "
                    f"{nearest(name, fields)}"
                )
    for reward in rewards:
        everything = given | {node.name for node in nodes if node.role or node.tool}
        for name in (reward.field, reward.gold):
            if name not in everything:
                raise _wrong(
                    f"a reward reads '{name}', which nothing sets; {nearest(name, everything)}"
                )
        if reward.to is not None and reward.to not in {node.role for node in nodes}:
            raise _wrong(f"a reward goes to '{reward.to}', which is no role")
    return _most_turns(nodes, place)


def _ways(node: GraphNode, number: int, place: dict[str, int], end: int) -> set[int]:
    """The nodes that may come after one; `end` is past the last."""
    if node.next is None:
        return {number + 1}
    target = end if node.next == END else place[node.next]
    sure = node.when is None and node.at_most is None
    return {target} if sure else {target, number + 1}


def _known_fields(
    nodes: Sequence[GraphNode], ways: Sequence[set[int]], given: set[str]
) -> list[set[str] | None]:
    """By node, the fields that every way to it has set; None where there is no way."""
    known: list[set[str] | None] = [None] * (len(nodes) + 1)
    known[0] = set(given)
    open_nodes = [0]
    while open_nodes:
        at = open_nodes.pop()
        if at == len(nodes):
            continue
        before, node = known[at], nodes[at]
        assert before is not None, "only nodes that were reached are open"
        after = before | ({node.name} if node.role or node.tool else set())
        for target in ways[at]:
            earlier = known[target]
            found = after if earlier is None else earlier & after
            if found != earlier:
                known[target] = found
                open_nodes.append(target)
    return known


def _most_turns(nodes: Sequence[GraphNode], place: dict[str, int]) -> int:
    """An upper bound: a jump back repeats what lies between, once for each time it is taken."""
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
    return sum(count for node, count in zip(nodes, times, strict=True) if node.role)


def _wrong(text: str) -> ConfigError:
    return ConfigError(f"task.graph: {text}")
