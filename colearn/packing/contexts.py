"""One agent's contexts in a tree: what it reads together, from a fresh prompt to the next one."""

from __future__ import annotations

from dataclasses import dataclass

from colearn.types import Action, Observation, Tree


@dataclass(frozen=True, slots=True)
class Part:
    """What one node adds to a context."""

    node: int
    parent: int | None
    """The node before it in the same context; None where the context begins."""
    action: Action | None
    """The agent's, that led to the node."""
    observation: Observation | None
    """What the agent sees there."""

    @property
    def size(self) -> int:
        """Tokens."""
        acted = 0 if self.action is None else len(self.action.tokens)
        return acted + (0 if self.observation is None else len(self.observation.tokens))


def contexts(tree: Tree[object], agent: str) -> list[list[Part]]:
    """The contexts of an agent, in the order of their first nodes, each with parents first. Without
    fresh prompts there is one, and it holds every node.

    A node with a fresh prompt ends one context with its action and opens another. Of a cut node
    only the candidate's action is read: nobody answers to what is seen there.
    """
    found: list[list[Part]] = []
    of_node: list[int] = []
    for node in tree.nodes:
        if node.cut and not node.samples(agent):
            of_node.append(-1)  # another agent's candidate: nothing of it goes on or is trained
            continue
        seen = None if node.cut else node.observations.get(agent)
        before = None if node.parent is None else of_node[node.parent]
        opens = before is None or (seen is not None and seen.fresh)
        if before is not None:
            found[before].append(
                Part(node.index, node.parent, node.actions.get(agent), None if opens else seen)
            )
        if opens:
            found.append([Part(node.index, None, None, seen)])
        of_node.append(len(found) - 1 if opens else _same(before))
    return found


def _same(context: int | None) -> int:
    assert context is not None, "a node that opens no context continues one"
    return context
