"""Plan-Path: a tool user and a planner find a path on a grid (Stronger-MAS, B.4 and D)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from colearn.contract.picture import Cell as Drawn
from colearn.contract.picture import Panel, Picture
from colearn.errors import ConfigError

from .. import move_text, moves
from ..checks import check_number, check_whole
from ..generated import draw_splits
from ..moves import STEPS, Cell, Moves, distance, moved
from ..tool_team import TOOL, TeamState, ToolRun, ToolTeam
from . import reward
from .world import Map, draw_map, shortest_path, walk

_COLOURS = {"wall": "#43474e", "goal": "#3f9c5a", "team": "#d9822b", "way": "#f1cfa5"}
_TASK = """\
Move from S to the goal G on a {rows}x{columns} grid with U (row - 1), D (row + 1), L \
(column - 1) and R (column + 1). '#' is a wall, '.' is free; rows and columns count from 0 at \
the top left. Moves are made in order until the goal is reached or a move is not possible.
{grid}
Position: {at}. Goal: {goal}."""


@dataclass(kw_only=True, eq=False)
class PlanPath(ToolTeam[Map, Cell, Moves]):
    """Reach the goal of a map within T turns (B.4); an answer is a list of moves.

    At the goal, the team earns 1. Elsewhere, it earns max(0, decrease in Manhattan distance to the
    goal / distance at the start). Local rewards:

        plan  0.1 format + 0.1 legal + 0.8 shortest  shortest: share of moves on a shortest path
        tool  0.1 format + 0.1 executes + 0.8 shape  shape: the distance does not grow

    Moves are executed one by one; an impossible move ends the list. The tool user's moves are only
    simulated.

    With `prompt='compact'`, a prompt such as `tool at_c2 goal_a1 wall_a2` has a word for each
    occupied cell, with a1 at the top left. Answers have the form `U L`, and the prompt of `plan`
    ends with the tool user's proposal, `... tool U L`.

    The paper leaves the following choices open. A cell is a wall with probability 0.22. The paper's
    formulas are for one action, but an answer is a list of moves. The list is legal if all its
    moves are legal, and its shortest-path score is the share of its moves on a shortest path. An
    empty list does not count as a valid format. A step of the tool user pays the team the reward
    that the proposal would earn; the planner's step then pays only the rest of the turn's reward.

    Errors: ConfigError from the constructor and from `items`, one line that names the setting.
    """

    size: int = 10
    """Height and width of the map (H and W)."""
    walls: float = 0.22
    """Probability that a cell is a wall."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("size", self.size, 2, 50)
        check_number("walls", self.walls, 0.0, 0.5)

    def splits(self) -> Mapping[str, Sequence[Map]]:
        """The maps by split, cached for equal settings."""
        return _splits(self.size, float(self.walls), self.train, self.test, self.seed, self.fresh)

    def start(self, item: Map) -> Cell:
        """The start cell."""
        return item.start

    def solved(self, item: Map, world: Cell) -> bool:
        """Whether the team is at the goal."""
        return world == item.goal

    def progress(self, item: Map, world: Cell) -> float:
        """Returns max(0, 1 - d / D), where d is the number of moves to the goal and D is d at the
        start."""
        return max(0.0, 1.0 - item.oracle[world] / item.oracle[item.start])

    def read(self, item: Map, text: str) -> Moves | None:
        """Parses a list of moves."""
        return moves.read_compact(text) if self.prompt == "compact" else moves.read(text)

    def written(self, item: Map, answer: Moves) -> str:
        """Formats a list of moves."""
        return moves.compact(answer) if self.prompt == "compact" else moves.written(answer)

    def carried_out(self, item: Map, world: Cell, answer: Moves) -> Cell:
        """The cell where the moves end."""
        return walk(item, world, answer).end

    def team_reward(self, item: Map, before: Cell, after: Cell) -> float:
        """r_team, from the distance to the goal."""
        return reward.team(item, before, after)

    def tool_reward(self, item: Map, world: Cell, run: ToolRun[Moves]) -> float:
        """r_loc of the tool user: format, execution and potential."""
        return reward.tool_reward(item, world, run.answer)

    def plan_reward(self, item: Map, before: Cell, answer: Moves | None, after: Cell) -> float:
        """r_loc of the planner: format, legality and the oracle."""
        return reward.plan_reward(item, before, answer)

    def shown(self, state: TeamState[Map, Cell, Moves], agent: str) -> str:
        """The map, the earlier attempts and, for `plan`, the tool user's proposal."""
        item, at = state.item, state.world
        if self.prompt == "compact":
            facts = {"at": [at], "goal": [item.goal], "wall": item.walls}
            return move_text.compact_prompt(move_text.compact_words(facts), agent, state.tool)
        grid = "\n".join(item.drawn(at))
        task = _TASK.format(
            rows=item.rows, columns=item.columns, grid=grid, at=list(at), goal=list(item.goal)
        )
        steps = [
            (decision.answer, f"position {list(decision.world)}") for decision in state.decisions
        ]
        if agent == TOOL:
            aim = "moves from the start to the goal"
            return move_text.tool_prompt(task, aim, steps, state.tool)
        single = self.variant == "single"
        return move_text.plan_prompt(task, steps, state.tool, single=single)

    def solution(self, item: Map, world: Cell) -> Moves:
        """A shortest path."""
        return shortest_path(item, world)

    def random_answer(self, item: Map, world: Cell, rng: np.random.Generator) -> Moves:
        """A random walk over free cells; its length is less than twice the size of the map."""
        length, way, at = int(rng.integers(1, 2 * self.size - 1)), [], world
        for _ in range(length):
            ways = [move for move in STEPS if moved(at, move) in item.free]
            way.append(ways[int(rng.integers(len(ways)))])
            at = moved(at, way[-1])
        return tuple(way)

    def render(self, state: TeamState[Map, Cell, Moves]) -> str:
        """The map, with S at the team's cell."""
        return "\n".join(state.item.drawn(state.world))

    def picture(self, state: TeamState[Map, Cell, Moves]) -> Picture:
        """A picture of the map with the cells where the turns ended."""
        item = state.item
        cells = {(c, r): Drawn("wall") for r, c in item.walls}
        ends = (item.start, *(decision.world for decision in state.decisions))
        cells |= {(c, r): Drawn("way") for r, c in ends}
        cells |= {(item.goal[1], item.goal[0]): Drawn("goal")}
        cells |= {(state.world[1], state.world[0]): Drawn("team")}
        panel = Panel("map", item.columns, item.rows, cells)
        remaining = distance(state.world, item.goal)
        return Picture(groups=((panel,),), colours=_COLOURS, caption=f"distance {remaining}")


@lru_cache(maxsize=16)
def _splits(
    size: int, walls: float, train: int, test: int, seed: int, fresh: bool
) -> dict[str, Sequence[Map]]:
    def draw(rng: np.random.Generator) -> Map:
        try:
            return draw_map(size, size, walls, rng)
        except ValueError as error:
            raise ConfigError(f"task.walls: {error}; set fewer walls") from None

    return draw_splits(
        draw,
        str,
        sizes={"train": train, "test": test},
        seed=seed,
        remedy="set task.size or task.walls higher or ask for fewer",
        fresh=fresh,
    )
