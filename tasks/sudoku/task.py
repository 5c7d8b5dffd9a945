"""Sudoku: a tool user and a planner fill a grid (Stronger-MAS, B.3 and C.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import isqrt

import numpy as np

from colearn.contract.picture import Cell, Mark, Panel, Picture
from colearn.errors import ConfigError
from colearn.text.reasoning import without_reasoning

from ..checks import check_whole
from ..generated import draw_splits
from ..tool_team import TeamState, ToolRun, ToolTeam
from . import reward, text
from .grid import Fill, Grid, filled, puzzle, unique_solution

Fills = tuple[Fill, ...]


@dataclass(frozen=True, slots=True)
class SudokuItem:
    """A puzzle with one solution."""

    clues: Grid

    def __str__(self) -> str:
        between = "" if len(self.clues) < 10 else " "
        return between.join(str(digit or ".") for row in self.clues for digit in row)


@dataclass(kw_only=True, eq=False)
class Sudoku(ToolTeam[SudokuItem, Grid, Fills]):
    """Fill the blanks of a puzzle that has one solution, within T turns (B.3).

    The team earns 1 for a complete legal grid. Local rewards:

        plan  0.1 format + 0.1 legal + 0.8 progress  progress: newly filled cells over N^2
        tool  0.1 format + 0.1 executes + 0.8 sane   sane: its fills leave a legal grid

    An agent's local reward is 0 if its answer cannot be read. An answer is a grid (0 for a blank)
    or a list of [row, column, digit]. The answer of `plan` is written into the grid and may
    overwrite earlier fills. An answer that changes a clue writes nothing and is not legal. The tool
    user's answer is only simulated on the grid.

    With `prompt='compact'`, the prompt states the puzzle as constraints on its blanks, which are
    named a, b, ... in reading order: `tool a_not_1 a_not_3 b_not_2 a_not_b`. Each word states
    either that a blank cannot hold a digit of its row, column or sub-grid, or that two blanks in
    one row, column or sub-grid must differ. Answers have the form `a_4 b_3`. The prompt also lists
    the earlier fills in the form of answers, and then the tool user's fills.

    The paper leaves the following choices open. A puzzle has up to 8 blanks. Illegal fills stay in
    the grid and may be overwritten. An empty list does not count as a valid format. A step of the
    tool user pays the team the reward that the proposal would earn; the planner's step then pays
    only the rest of the turn's reward.

    Errors: ConfigError from the constructor and from `items`, one line that names the setting.
    """

    size: int = 4
    """N, the number of rows: 4, 9 or 16."""
    blanks: int = 8
    """Maximum number of blanks of a puzzle; a puzzle has fewer if more would allow two
    solutions."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("size", self.size, 4, 16)
        if isqrt(self.size) ** 2 != self.size:
            raise ConfigError(f"task.size: {self.size} has no square sub-grids; set 4, 9 or 16")
        check_whole("blanks", self.blanks, 1, self.size**2 - 1)

    def splits(self) -> Mapping[str, Sequence[SudokuItem]]:
        """The puzzles by split, cached for equal settings."""
        return _splits(self.size, self.blanks, self.train, self.test, self.seed, self.fresh)

    def start(self, item: SudokuItem) -> Grid:
        """The puzzle."""
        return item.clues

    def solved(self, item: SudokuItem, world: Grid) -> bool:
        """Whether the grid is complete and legal; the clues cannot have changed."""
        return reward.solved(world)

    def progress(self, item: SudokuItem, world: Grid) -> float:
        """The share of the puzzle's blanks that hold the solution's digit."""
        solution = self._solution(item)
        matches = [
            world[r][c] == solution[r][c]
            for r, row in enumerate(item.clues)
            for c, digit in enumerate(row)
            if not digit
        ]
        return sum(matches) / len(matches)

    def read(self, item: SudokuItem, text_: str) -> Fills | None:
        """Parses a grid or a list of fills."""
        answer = without_reasoning(text_)
        if self.prompt == "compact":
            return text.read_compact(answer, item.clues)
        return text.read(answer, self.size)

    def written(self, item: SudokuItem, answer: Fills) -> str:
        """Formats a list of fills."""
        if self.prompt == "compact":
            return text.compact(answer, item.clues)
        return text.written(answer)

    def carried_out(self, item: SudokuItem, world: Grid, answer: Fills) -> Grid:
        """The grid after the fills; unchanged if a fill changes a clue."""
        return filled(world, answer) if reward.keeps(item.clues, answer) else world

    def team_reward(self, item: SudokuItem, before: Grid, after: Grid) -> float:
        """r_team: 1 if solved."""
        return reward.team(after)

    def tool_reward(self, item: SudokuItem, world: Grid, run: ToolRun[Fills]) -> float:
        """r_loc of the tool user: format, execution and sanity."""
        return reward.tool_reward(item.clues, world, run.ran, run.answer)

    def plan_reward(
        self, item: SudokuItem, before: Grid, answer: Fills | None, after: Grid
    ) -> float:
        """r_loc of the planner: format, legality and progress."""
        return reward.plan_reward(item.clues, before, answer, after)

    def shown(self, state: TeamState[SudokuItem, Grid, Fills], agent: str) -> str:
        """The puzzle, the grid so far and, for `plan`, the tool user's proposal."""
        clues, grid = state.item.clues, state.world
        if self.prompt == "compact":
            return text.compact_prompt(clues, grid, agent, state.tool)
        single = self.variant == "single"
        return text.full_prompt(clues, grid, agent, state.tool, single)

    def solution(self, item: SudokuItem, world: Grid) -> Fills:
        """Fills of all of the puzzle's blanks with the solution's digits."""
        solution = self._solution(item)
        return tuple(
            (r + 1, c + 1, solution[r][c])
            for r, row in enumerate(item.clues)
            for c, digit in enumerate(row)
            if not digit
        )

    def random_answer(self, item: SudokuItem, world: Grid, rng: np.random.Generator) -> Fills:
        """Fills of all of the puzzle's blanks with random digits."""
        digits = rng.integers(1, self.size + 1, size=self.size**2)
        return tuple(
            (r + 1, c + 1, int(digits[r * self.size + c]))
            for r, row in enumerate(item.clues)
            for c, digit in enumerate(row)
            if not digit
        )

    def render(self, state: TeamState[SudokuItem, Grid, Fills]) -> str:
        """The grid."""
        return text.rows_of(state.world)

    def picture(self, state: TeamState[SudokuItem, Grid, Fills]) -> Picture:
        """A picture of the puzzle next to the grid, with a colour for each digit. Wrong fills are
        marked."""
        solution = self._solution(state.item)

        def mark(r: int, c: int) -> Mark:
            digit = state.world[r][c]
            return "" if digit == solution[r][c] else "wrong" if digit else "missing"

        span = range(self.size)
        cells = [(r, c) for r in span for c in span]
        clues = {
            (c, r): Cell(str(state.item.clues[r][c])) for r, c in cells if state.item.clues[r][c]
        }
        grid = {
            (c, r): Cell(str(state.world[r][c] or solution[r][c]), mark=mark(r, c))
            for r, c in cells
        }
        group = (
            Panel("puzzle", self.size, self.size, clues),
            Panel("filled", self.size, self.size, grid),
        )
        return Picture(groups=(group,), caption=f"turn {state.turn}")

    def _solution(self, item: SudokuItem) -> Grid:
        return _solved(item.clues)


@lru_cache(maxsize=4096)
def _solved(clues: Grid) -> Grid:
    solution = unique_solution(clues)
    assert solution is not None, "puzzles are made with one solution"
    return solution


@lru_cache(maxsize=16)
def _splits(
    size: int, blanks: int, train: int, test: int, seed: int, fresh: bool
) -> dict[str, Sequence[SudokuItem]]:
    def draw(rng: np.random.Generator) -> SudokuItem:
        return SudokuItem(puzzle(size, blanks, rng))

    return draw_splits(
        draw,
        str,
        sizes={"train": train, "test": test},
        seed=seed,
        remedy="set task.blanks higher or ask for fewer",
        fresh=fresh,
    )
