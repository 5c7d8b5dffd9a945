"""Reward of a build: cell counts compared with the target, in two variants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..blocks import TEXTURES, Block, palette, target_cells

HIGHEST = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterCounts:
    """Counts from which rewards and metrics are computed."""

    total: int
    """Cells of the target."""
    background: int
    """Cells of the grid outside the target."""
    covered: int
    """Target cells that hold a block of any kind."""
    extra: int
    """Blocks outside the target."""
    pairs: int
    """Pairs of blocks that share a side, inside or outside the target."""
    same_texture: int
    """Pairs of blocks that share a side and a texture."""
    incomplete: int
    """Number of agents that did not place a block of each kind in their palette."""

    @property
    def adjacency(self) -> float:
        """The share of pairs with equal textures, in [0, 1]; 0 if no two blocks touch."""
        return self.same_texture / self.pairs if self.pairs else 0.0

    @property
    def iou(self) -> float:
        """Intersection over union of blocks and target, ignoring textures, in [0, 1]."""
        return self.covered / (self.total + self.extra)


def survey(blocks: Sequence[Block], rows: Sequence[str], agents: int) -> LetterCounts:
    """Compare the blocks with the target, given as a text grid (top row first), and count them."""
    target = frozenset(target_cells(rows))
    texture = {block.cell: TEXTURES[block.name] for block in blocks}
    pairs = [
        (texture[x, y], texture[neighbour])
        for x, y in texture
        for neighbour in ((x + 1, y), (x, y + 1))
        if neighbour in texture
    ]
    owned = {(block.owner, block.name) for block in blocks}
    covered = len(target & texture.keys())
    return LetterCounts(
        total=len(target),
        background=len(rows) * len(rows[0]) - len(target),
        covered=covered,
        extra=len(blocks) - covered,
        pairs=len(pairs),
        same_texture=sum(first == second for first, second in pairs),
        incomplete=sum(
            any((agent, name) not in owned for name in palette(agent)) for agent in range(agents)
        ),
    )


def raw_reward(result: LetterCounts, variant: str) -> float:
    """The reward before the shift, at most 2: F.3 of the paper, or CoMLRL's formula."""
    covered = 2.0 * result.covered / result.total
    if variant == "paper":
        return covered - 1.5 * result.extra / result.total - result.adjacency / 2
    extra = 1.5 * result.extra / result.background if result.extra else 0.0
    return covered - extra - result.adjacency - 0.25 * result.incomplete


def lowest_reward(result: LetterCounts, variant: str, agents: int) -> float:
    """A lower bound of the raw reward of any build of the same target."""
    if variant == "paper":
        return -1.5 * result.background / result.total - 0.5
    return -1.5 - 1.0 - 0.25 * agents
