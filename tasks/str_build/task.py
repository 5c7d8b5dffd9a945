"""StrBuild: agents with different blocks build a string in Minecraft, turn by turn.

No game server is involved: a turn is a set of `/setblock` commands on a flat block map, scored by
counting (CoLLM, sections 6.1, E.3 and F.3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from colearn.contract import DecPOMDP
from colearn.contract.picture import Picture
from colearn.contract.types import Outcome
from colearn.errors import ConfigError

from ..blocks import (
    AIR,
    Block,
    Cell,
    build,
    cell_name,
    checkerboard,
    palette,
    parse,
    target_cells,
)
from ..checks import check_split
from ..turn_and_reward import turn_and_reward
from . import text
from .font import draw
from .picture import picture
from .reward import HIGHEST, lowest_reward, raw_reward, survey
from .settings import check_settings

TRAIN_STRINGS = ("I", "C", "M", "L", "MC", "CM", "LI", "LLM")
TEST_STRINGS = ("ICML", "CLIM")
SOLVED = 1.9


@dataclass(frozen=True, slots=True)
class StringItem:
    """A string to build, made of the letters A-Z and the digits 0-9."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class StrBuildState:
    """The world at the end of the last turn; empty before the first turn."""

    item: StringItem
    turn: int
    """Turns played so far."""
    blocks: tuple[Block, ...]
    reward: float
    """The raw reward of the last build, before the shift."""
    rejected: int
    """Number of lines of the last turn that were not valid commands, over all agents."""


class StrBuild(DecPOMDP[StringItem, StrBuildState]):
    """Agents build a string from blocks so that no two neighbouring blocks share a texture.

    Every turn starts from an empty world, and only the commands of this turn count. Commands run
    agent by agent, and later agents overwrite blocks of earlier agents. The palettes are oak_planks
    and stone for the first agent, and white_concrete and obsidian for the second agent; the
    palettes repeat for further agents. Every agent may place air. `blocks.parse` defines which
    lines count as commands.

    All agents share the raw reward of a turn (F.3), which is at most 2:

        paper   2 covered/total - 1.5 extra/total      - same/(2 pairs)
        comlrl  2 covered/total - 1.5 extra/background - same/pairs     - 0.25 m

    `total` counts the target's cells, `background` the other cells of the grid, `covered` the
    target cells with any block, and `extra` the blocks elsewhere. `pairs` counts the pairs of
    blocks that share a side, and `same` the pairs that share a side and a texture; without pairs,
    this term is 0. m counts the agents that did not place both of their blocks. The task adds
    `reward_shift`, -2 by
    default: rewards are then never positive, so finishing early is never worse than playing on. An
    episode is `done` when the raw reward exceeds 1.9.

    The variants differ further in

    - the grid: in comlrl, the first prompt omits the grid and each line about '#' and '.', so that
      agents know only the bounding box in the first turn;
    - the feedback: paper lists the empty target cells and the blocks outside the target;
      comlrl lists all letter positions and tells each agent to choose its share.

    CoMLRL has further kinds of feedback. CoMLRL repeats the first prompt and the agent's own answer
    at each turn; in this task, both are in the agent's history.

    The paper leaves the following choices open: the font, the origin (0, 0, 0), the shift, the
    threshold for stopping, the command limit and the words of the feedback. (The paper only states
    that "a simulated player gives instructions for incomplete building".) m_t contains the raw
    reward and counts turns from 1. Rejected lines do not count towards the limit.

    `prompt='compact'` is for small word-level models. The first prompt shows the grid, in which
    each '#' is replaced by the cell's name as on a chess board; later prompts are one line of
    feedback. Words are separated by single spaces, and rewards are rounded to quarters within [-2,
    2]. With this prompt, agents may answer `a1 block` as well as `/setblock x y z block`:

        grid 3 3                                               (width, height, then the rows)
        a3 . c3
        a2 b2 c2
        a1 . c1
        you builder_1 blocks oak_planks stone max 6
        reward 0.75 missing a3 b2 extra b1                     (the next turn)

    Settings: `strings` and `test_strings` replace the paper's strings (train I C M L MC CM LI LLM,
    test ICML CLIM). `max_commands` is the maximum number of commands per turn of all agents
    together, split evenly among the agents; the default is 300. There are 2 empty columns between
    the letters of the 5x5 font 'large' and 1 between those of the 3x3 font 'small'.

    Errors: ConfigError from the constructor, one line that names the setting.
    """

    def __init__(
        self,
        *,
        variant: Literal["paper", "comlrl"] = "paper",
        horizon: int = 4,
        agents: int = 2,
        strings: Sequence[str] | None = None,
        test_strings: Sequence[str] | None = None,
        font: Literal["large", "small"] = "large",
        max_commands: int | None = None,
        reward_shift: float = -2.0,
        prompt: Literal["full", "compact"] = "full",
    ) -> None:
        splits = {
            "train": TRAIN_STRINGS if strings is None else strings,
            "test": TEST_STRINGS if test_strings is None else test_strings,
        }
        check_settings(
            choices={"variant": variant, "font": font, "prompt": prompt},
            horizon=horizon,
            agents=agents,
            strings={"strings": splits["train"], "test_strings": splits["test"]},
            max_commands=max_commands,
            reward_shift=reward_shift,
        )
        trained = set(splits["train"])
        if shared := [string for string in splits["test"] if string in trained]:
            raise ConfigError(
                f"task.test_strings: '{shared[0]}' is among task.strings, too, and would be "
                "trained on; leave it out of one"
            )
        self.variant, self.font, self.prompt = variant, font, prompt
        self.horizon = horizon
        self.agents = tuple(f"builder_{number + 1}" for number in range(agents))
        self.max_commands = max_commands
        self.limit = (300 if max_commands is None else max_commands) // agents
        self.reward_shift = float(reward_shift)
        self.show_grid = variant == "paper"
        self._items = {
            split: tuple(StringItem(string) for string in texts) for split, texts in splits.items()
        }
        lowest = min(
            lowest_reward(survey((), self.rows(item), agents), variant, agents)
            for items in self._items.values()
            for item in items
        )
        self.reward_range = (lowest + self.reward_shift, HIGHEST + self.reward_shift)

    def items(self, split: str) -> Sequence[StringItem]:
        """The strings of 'train' or 'test'."""
        check_split(split)
        return self._items[split]

    def reset(self, item: StringItem, rng: np.random.Generator) -> StrBuildState:
        """The empty world; nothing is random."""
        return self._state(item, turn=0, blocks=(), rejected=0)

    def observe(self, state: StrBuildState, agent: str) -> str:
        """The first prompt, then the feedback on the last turn; every agent acts every turn."""
        seat = self._seat(agent)
        if state.turn == 0:
            rows = self.rows(state.item)
            if self.prompt == "compact":
                return text.compact_prompt(rows, seat, show_grid=self.show_grid)
            show_limit = self.max_commands is not None
            return text.full_prompt(rows, seat, show_grid=self.show_grid, show_limit=show_limit)
        hints = self._hints(state)
        if self.prompt == "compact":
            return text.compact_feedback(hints, reward=state.reward)
        return text.full_feedback(
            hints,
            turn=state.turn + 1,
            horizon=self.horizon,
            reward=state.reward,
            advice=text.share_advice(seat) if self.variant == "comlrl" else (),
        )

    def step(
        self, state: StrBuildState, actions: Mapping[str, str], rng: np.random.Generator
    ) -> Outcome[StrBuildState]:
        """Build this turn's world from an empty one and score it; nothing is random."""
        rows = self.rows(state.item)
        parsed = [
            parse(
                actions[agent],
                size=(len(rows[0]), len(rows)),
                allowed=(*palette(number), AIR),
                limit=self.limit,
                short=self.prompt == "compact",
            )
            for number, agent in enumerate(self.agents)
        ]
        after = self._state(
            state.item,
            turn=state.turn + 1,
            blocks=build([commands for commands, _ in parsed]),
            rejected=sum(rejected for _, rejected in parsed),
        )
        return Outcome(
            state=after, reward=after.reward + self.reward_shift, done=after.reward > SOLVED
        )

    def metrics(self, state: StrBuildState) -> Mapping[str, float]:
        """Metrics of the last turn: `score`, the raw reward; `iou`, `coverage` and `adjacency`
        (share of pairs with equal textures), in [0, 1]; `extra`, the number of blocks outside the
        target; `rejected`, the number of rejected lines."""
        result = survey(state.blocks, self.rows(state.item), len(self.agents))
        return {
            "score": state.reward,
            "iou": result.iou,
            "coverage": result.covered / result.total,
            "extra": float(result.extra),
            "adjacency": result.adjacency,
            "rejected": float(state.rejected),
        }

    def global_info(self, state: StrBuildState) -> str:
        """The central critic's extra text m_t, as the paper writes it (E.3)."""
        return turn_and_reward(state.turn, self.horizon, state.reward, HIGHEST)

    def rows(self, item: StringItem) -> tuple[str, ...]:
        """The target as '#' and '.', top row first."""
        return draw(item.text, self.font)

    def target(self, item: StringItem) -> tuple[Cell, ...]:
        """The '#' cells, bottom up."""
        return target_cells(self.rows(item))

    def command(self, cell: Cell, block: str) -> str:
        """One command in the format that the prompt requests."""
        if self.prompt == "compact":
            return f"{cell_name(cell)} {block}"
        x, y = cell
        return f"/setblock {x} {y} 0 {block}"

    def reference_actions(self, item: StringItem) -> dict[str, str]:
        """Returns actions that build a checkerboard over the target. The checkerboard earns the raw
        reward 2 if the command limit allows each agent's share. In comlrl, each share must also
        have at least two cells; for the letter X alone, one agent's share is empty.
        """
        lines: dict[str, list[str]] = {agent: [] for agent in self.agents}
        for cell, (owner, block) in checkerboard(self.target(item), len(self.agents)).items():
            lines[self.agents[owner]].append(self.command(cell, block))
        return {agent: "\n".join(commands) for agent, commands in lines.items()}

    def random_actions(
        self, item: StringItem, agent: str, rng: np.random.Generator, count: int
    ) -> str:
        """A legal but uncoordinated action: `count` random target cells (fewer if the target or the
        limit is smaller) in the order of the grid's rows, each with a random solid block of the
        agent's palette."""
        target = self.target(item)
        solid = palette(self.agents.index(agent))
        indices = rng.permutation(len(target))[: max(0, min(count, self.limit))]
        chosen = sorted((target[k] for k in indices), key=lambda cell: (-cell[1], cell[0]))
        return "\n".join(self.command(cell, solid[int(rng.integers(2))]) for cell in chosen)

    def legal_action(self, state: StrBuildState, agent: str, rng: np.random.Generator) -> str:
        """A random number of `random_actions`, on which embedded models are warm-started."""
        return self.random_actions(state.item, agent, rng, int(rng.integers(1, self.limit + 1)))

    def render(self, state: StrBuildState) -> str:
        """Shows three grids side by side: the target, the owner of each block (1, 2, ...), and the
        first letter of each block's texture (wood, stone, concrete, obsidian)."""
        return text.picture(self.rows(state.item), state.blocks)

    def picture(self, state: StrBuildState) -> Picture:
        """Shows the target and the build side by side: textures, owners, missing and extra
        blocks."""
        return picture(self.rows(state.item), state.blocks, self.agents)

    def _state(
        self, item: StringItem, *, turn: int, blocks: tuple[Block, ...], rejected: int
    ) -> StrBuildState:
        result = survey(blocks, self.rows(item), len(self.agents))
        reward = raw_reward(result, self.variant)
        return StrBuildState(item=item, turn=turn, blocks=blocks, reward=reward, rejected=rejected)

    def _seat(self, agent: str) -> text.PlayerFields:
        number = self.agents.index(agent)
        return text.PlayerFields(
            number=number, name=agent, agents=len(self.agents), limit=self.limit
        )

    def _hints(self, state: StrBuildState) -> tuple[text.Hint, ...]:
        target = self.target(state.item)
        if self.variant == "comlrl":
            return (("target", target),)
        return text.position_hints(state.blocks, target)
