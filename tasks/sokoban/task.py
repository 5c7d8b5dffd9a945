"""Sokoban: a tool user and a planner push boxes onto goals (Stronger-MAS, B.5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from colearn.contract.picture import Cell as Drawn
from colearn.contract.picture import Panel, Picture
from colearn.errors import ConfigError

from .. import move_text, moves
from ..checks import check_number, check_whole
from ..generated import draw_splits
from ..moves import Cell, Moves
from ..tool_team import TOOL, TeamState, ToolRun, ToolTeam
from . import reward
from .world import Board, Room, draw_room, play, potential, seen_from, solve, ways_to_push

_COLOURS = {
    "wall": "#43474e",
    "goal": "#3f9c5a",
    "box": "#b98a4e",
    "box on goal": "#2f7d7d",
    "player": "#d9822b",
}
_TASK = """\
Push every box onto a goal in a {rows}x{columns} room with U (row - 1), D (row + 1), L \
(column - 1) and R (column + 1). Walking into a box pushes it one cell, if the cell beyond is \
free; boxes cannot be pulled. Moves are made in order until all boxes are on goals or a move is \
not possible.
'#' wall, '-' floor, '@' player, '$' box, '.' goal, '*' box on goal, '+' player on goal; rows and \
columns count from 0 at the top left.
{grid}
Player: {player}. Boxes: {boxes}. Goals: {goals}."""


@dataclass(kw_only=True, eq=False)
class Sokoban(ToolTeam[Room, Board, Moves]):
    """Push all boxes onto goals within T turns (B.5); an answer is a list of moves.

    The team earns the share of boxes on goals at the end of each turn. Local rewards:

        plan  0.1 format + 0.1 legal + 0.8 deadlock free  no box pushed into a corner
        tool  0.1 format + 0.1 executes + 0.8 potential   boxes come no further from goals

    Moves are executed one by one; an impossible move ends the list. The tool user's moves are only
    simulated.

    With `prompt='compact'`, a prompt such as `tool at_c2 wall_e5 box_D1 goal_D1R1` lists the
    player's cell and the inner walls (a1 is at the top left). It then lists the positions of the
    boxes relative to the player, and the positions of the goals relative to the first box. Answers
    have the form `U L`, and the prompt of `plan` ends with the tool user's proposal, `... tool U
    L`.

    The paper leaves the following choices open. A room has one box, and an inner cell is a wall
    with probability 0.1. The paper's formulas are for one action, but an answer is a list of moves.
    The list is legal and deadlock-free if all its moves are. Play continues in a deadlocked room.
    An empty list does not count as a valid format. A step of the tool user pays the team the reward
    that the proposal would earn; the planner's step then pays only the rest of the turn's reward.
    The paper's appendix has no prompts for Sokoban, so this task uses the prompts of Plan-Path.

    Errors: ConfigError from the constructor and from `items`, one line that names the setting.
    """

    size: int = 6
    """Number of rows and of columns, including the surrounding walls."""
    boxes: int = 1
    walls: float = 0.1
    """Probability that an inner cell is a wall."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("size", self.size, 4, 20)
        check_whole("boxes", self.boxes, 1, 4)
        check_number("walls", self.walls, 0.0, 0.5)

    def splits(self) -> Mapping[str, Sequence[Room]]:
        """The rooms by split, cached for equal settings."""
        return _splits(
            self.size, self.boxes, float(self.walls), self.train, self.test, self.seed, self.fresh
        )

    def start(self, item: Room) -> Board:
        """The initial board."""
        return item.start

    def solved(self, item: Room, world: Board) -> bool:
        """Whether all boxes are on goals."""
        return item.solved(world)

    def progress(self, item: Room, world: Board) -> float:
        """The share of boxes on goals."""
        return reward.team(item, world)

    def read(self, item: Room, text: str) -> Moves | None:
        """Parses a list of moves."""
        return moves.read_compact(text) if self.prompt == "compact" else moves.read(text)

    def written(self, item: Room, answer: Moves) -> str:
        """Formats a list of moves."""
        return moves.compact(answer) if self.prompt == "compact" else moves.written(answer)

    def carried_out(self, item: Room, world: Board, answer: Moves) -> Board:
        """The board after the moves."""
        return play(item, world, answer).end

    def team_reward(self, item: Room, before: Board, after: Board) -> float:
        """r_team: the share of boxes on goals."""
        return reward.team(item, after)

    def tool_reward(self, item: Room, world: Board, run: ToolRun[Moves]) -> float:
        """r_loc of the tool user: format, execution and potential."""
        return reward.tool_reward(item, world, run.answer)

    def plan_reward(self, item: Room, before: Board, answer: Moves | None, after: Board) -> float:
        """r_loc of the planner: format, legality and deadlocks."""
        return reward.plan_reward(item, before, answer)

    def shown(self, state: TeamState[Room, Board, Moves], agent: str) -> str:
        """The room, the earlier attempts and, for `plan`, the tool user's proposal."""
        item, board = state.item, state.world
        if self.prompt == "compact":
            first, *_ = boxes = sorted(board.boxes)
            inner = {cell for cell in item.walls if not set(cell) & {0, item.rows - 1}}
            words = move_text.compact_words({"at": [board.player], "wall": inner})
            words += [f"box_{seen_from(board.player, box)}" for box in boxes]
            words += [f"goal_{seen_from(first, goal)}" for goal in sorted(item.goals)]
            return move_text.compact_prompt(words, agent, state.tool)
        task = _TASK.format(
            rows=item.rows,
            columns=item.columns,
            grid="\n".join(item.drawn(board)),
            player=list(board.player),
            boxes=_cells(board.boxes),
            goals=_cells(item.goals),
        )
        steps = [
            (
                decision.answer,
                f"player {list(decision.world.player)}, boxes {_cells(decision.world.boxes)}",
            )
            for decision in state.decisions
        ]
        if agent == TOOL:
            return move_text.tool_prompt(task, "pushes every box onto a goal", steps, state.tool)
        single = self.variant == "single"
        return move_text.plan_prompt(task, steps, state.tool, single=single)

    def solution(self, item: Room, world: Board) -> Moves:
        """A shortest list of moves.

        Errors: ValueError for a deadlocked room.
        """
        shortest = solve(item, world)
        if not shortest:
            raise ValueError("the room is deadlocked or already solved")
        return shortest

    def random_answer(self, item: Room, world: Board, rng: np.random.Generator) -> Moves:
        """A walk to a random box, followed by one or two pushes in one direction, regardless of the
        goals; a single step if no box can be pushed."""
        answer: list[str] = []
        for _ in range(int(rng.integers(1, 3))):
            ways = ways_to_push(item, world)
            if not ways:
                break
            *walk, push = ways[int(rng.integers(len(ways)))]
            answer += walk
            world = play(item, world, tuple(walk)).end
            for _ in range(int(rng.integers(1, self.size - 2))):
                result = play(item, world, (push,))
                if not result.legal:
                    break
                answer.append(push)
                world = result.end
        return tuple(answer) or ("U",)

    def render(self, state: TeamState[Room, Board, Moves]) -> str:
        """The room in standard Sokoban notation."""
        return "\n".join(state.item.drawn(state.world))

    def picture(self, state: TeamState[Room, Board, Moves]) -> Picture:
        """A picture of the room."""
        item, board = state.item, state.world
        kinds = dict.fromkeys(item.walls, "wall") | dict.fromkeys(item.goals, "goal")
        kinds |= {box: "box on goal" if box in item.goals else "box" for box in board.boxes}
        kinds[board.player] = "player"
        cells = {(c, r): Drawn(kind) for (r, c), kind in kinds.items()}
        panel = Panel("room", item.columns, item.rows, cells)
        caption = f"potential {potential(item, board)}"
        return Picture(groups=((panel,),), colours=_COLOURS, caption=caption)


def _cells(cells: Iterable[Cell]) -> str:
    return ", ".join(str(list(cell)) for cell in sorted(cells))


@lru_cache(maxsize=16)
def _splits(
    size: int, boxes: int, walls: float, train: int, test: int, seed: int, fresh: bool
) -> dict[str, Sequence[Room]]:
    def draw(rng: np.random.Generator) -> Room:
        try:
            return draw_room(size, boxes, walls, rng)
        except ValueError as error:
            raise ConfigError(f"task.boxes: {error}; set a larger size or fewer") from None

    return draw_splits(
        draw,
        str,
        sizes={"train": train, "test": test},
        seed=seed,
        remedy="set task.size higher or ask for fewer",
        fresh=fresh,
    )
