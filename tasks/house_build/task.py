"""HouseBuild: agents build a house in Minecraft from its blueprint while spiders attack.

No game server is involved: a turn is a set of `/fill` and attack commands on a block map, scored by
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

from ..checks import check_split
from ..turn_and_reward import turn_and_reward
from . import text
from .houses import House
from .picture import picture
from .reward import HIGHEST, SOLVED, lowest_reward, raw_reward, survey
from .settings import TRAIN_HOUSES, check_choices, check_numbers, choose_houses
from .shapes import block_counts, pieces, resource_limit, shares
from .world import (
    PLAYER_ATTACK,
    PLAYER_HP,
    SPIDER_HP,
    Box,
    PlacedBlock,
    TurnRules,
    build,
    living,
    parse,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HouseBuildState:
    """The world at the end of the last turn; empty before the first turn."""

    item: House
    spiders: tuple[int, ...]
    """The attack value of each of the episode's spiders."""
    turn: int
    """Turns played so far."""
    blocks: tuple[PlacedBlock, ...]
    alive: int
    """Spiders that survived the last turn."""
    damage: int
    """Health points that the surviving spiders took from the players in the last turn."""
    reward: float
    """The raw reward of the last turn, before the shift."""
    rejected: int
    """Number of lines of the last turn that were not valid commands, over all agents."""


class HouseBuild(DecPOMDP[House, HouseBuildState]):
    """Agents build a house of several kinds of blocks together and fight off spiders.

    Every turn starts from an empty world, with all spiders alive and all players in full health,
    and only the commands of this turn count. Commands run agent by agent, and later agents
    overwrite blocks of earlier agents; then the living spiders attack. Every agent sees the same
    blueprint and may place the same blocks. If the house has c cells of a block, each of N agents
    may fill ceil(c/N) + floor(c/2N) cells with this block in a turn. A cell that is filled twice
    counts twice. A command that exceeds the remaining cells is rejected as a whole. Air is free.

    Commands, in the paper variant:

        /fill x1 y1 z1 x2 y2 z2 block       corners in any order, both included
        /setblock x y z block
        /damage @e[type=spider,limit=1] n   n health points off the first living spider, n at most 6
        /kill                               all spiders; also with a selector of spiders, whose
                                            limit=k then kills the first k living ones

    In comlrl, the commands are `/fill` and `/kill` only, and a `/kill` with any argument kills all
    spiders. `world.parse` defines which lines are rejected.

    All agents share the raw reward of a turn (F.3), which is at most 2 in paper and 1 in comlrl:

        paper   2 covered/total - 1.5 extra/total - 0.2 min(1, damage/5)
        comlrl  match                             - 0.1 min(1, damage/5)

    `total` counts the house's cells, `covered` the cells that hold the blueprint's block, and
    `extra` the blocks outside the house. `match` is the share of all cells of the box, air
    included, that match the blueprint. `damage` is the sum of the attack values of the living
    spiders. In comlrl, spiders do not lower the reward of an agent that plays alone. The task adds
    `reward_shift`, by default the negative of the maximum: rewards are then never positive, so
    finishing early is never worse than playing on. An episode is `done` when the raw reward exceeds
    1.9 (paper) or 0.9 (comlrl).

    The variants differ further in

    - the prompt: resources follow each block in paper and form a separate section in comlrl; the
      line about the spiders names `/damage` in paper and `/kill` in comlrl;
    - the feedback: paper lists the missing blocks, the blocks outside the house and the spiders'
      damage; comlrl shows only the turn and the reward.

    CoMLRL has four further kinds of feedback. CoMLRL repeats the first prompt and the agent's own
    answer at each turn; in this task, both are in the agent's history. CoMLRL draws the spiders
    once per run; this task draws them once per episode.

    The paper leaves the following choices open. The paper names a data set of houses; the default
    houses are made for this task, after figure 3b. A cell with a wrong block is neither covered nor
    extra. The number of spiders and the health points are CoMLRL's: 3 spiders, each of which takes
    1 to 3 of the players' 5 HP. The players' attack is 6, as in figure 3b. A spider has 6 HP, so
    that one hit kills it; in Minecraft, a spider has 16 HP. Resources and the command limit are
    CoMLRL's. Builds do not accumulate over turns. The shift, the threshold for stopping and m_t are
    those of StrBuild. The paper's line about the spiders names `/damage`, but its list of commands
    names only `/fill` and `/kill`; this task accepts all three commands. Spiders have no position,
    since nothing in the paper depends on a position.

    `prompt='compact'` is for small word-level models. A cell is one word: column and row as on a
    chess board seen from above, then the layer, from 1. The prompt lists the house in pieces, each
    of which one agent can build alone. Words are separated by single spaces, and rewards are
    rounded to quarters within [-2, 2]. With this prompt, agents may also answer `a1-1 block`, `a1-1
    c1-1 block` (two corners) and `kill`:

        house 3 3 3                                            (cells along x, y and z)
        a1-1 obsidian
        ...
        a1-2 c2-2 stone
        you builder_1 max 8 obsidian 3 oak_planks 1 white_concrete 3 stone 9
        spiders 1 3 1 damage 5 hp 5
        reward 0.75 missing c1-1 obsidian extra b2-1 air spiders 2          (the next turn)

    Settings: `size` ('large' or 'small') and `houses` (the number of houses, 10) choose the houses.
    Instead, `houses_file` can name a JSON file of houses (`file.read_houses`). `train_houses` (8)
    is the number of houses in the training split; the other houses are the test split, as in the
    paper. `max_commands` is the maximum number of commands per turn of all agents together, split
    evenly among the agents; the default is 600. `spiders` and `spider_attack` (minimum and maximum,
    drawn uniformly) define the spiders' threat.

    Errors: ConfigError from the constructor, one line that names the setting.
    """

    def __init__(
        self,
        *,
        variant: Literal["paper", "comlrl"] = "paper",
        horizon: int = 4,
        agents: int = 2,
        size: Literal["large", "small"] | None = None,
        houses: int | None = None,
        train_houses: int = TRAIN_HOUSES,
        houses_file: str | None = None,
        max_commands: int | None = None,
        spiders: int = 3,
        spider_attack: Sequence[int] = (1, 3),
        reward_shift: float | None = None,
        prompt: Literal["full", "compact"] = "full",
    ) -> None:
        check_choices({"variant": variant, "size": size, "prompt": prompt})
        check_numbers(
            horizon=horizon,
            agents=agents,
            max_commands=max_commands,
            spiders=spiders,
            spider_attack=spider_attack,
            reward_shift=reward_shift,
        )
        self._items = choose_houses(
            size=size, houses=houses, train_houses=train_houses, houses_file=houses_file
        )
        self.variant, self.prompt = variant, prompt
        self.horizon = horizon
        self.agents = tuple(f"builder_{number + 1}" for number in range(agents))
        self.max_commands = max_commands
        self.limit = (600 if max_commands is None else max_commands) // agents
        self.spiders = spiders
        self.spider_attack = (spider_attack[0], spider_attack[1])
        self.highest = HIGHEST[variant]
        self.reward_shift = -self.highest if reward_shift is None else float(reward_shift)
        lowest = min(
            lowest_reward(survey((), item), variant)
            for items in self._items.values()
            for item in items
        )
        self.reward_range = (lowest + self.reward_shift, self.highest + self.reward_shift)

    def items(self, split: str) -> Sequence[House]:
        """The houses of 'train' or 'test'."""
        check_split(split)
        return self._items[split]

    def reset(self, item: House, rng: np.random.Generator) -> HouseBuildState:
        """An empty world and the episode's spiders; only the spiders are random."""
        low, high = self.spider_attack
        return HouseBuildState(
            item=item,
            spiders=tuple(int(value) for value in rng.integers(low, high + 1, size=self.spiders)),
            turn=0,
            blocks=(),
            alive=self.spiders,
            damage=0,
            reward=0.0,
            rejected=0,
        )

    def observe(self, state: HouseBuildState, agent: str) -> str:
        """The first prompt, then the feedback on the last turn; every agent acts every turn."""
        seat, threat = self._seat(state.item, agent), self._threat(state)
        if state.turn == 0:
            if self.prompt == "compact":
                return text.compact_prompt(state.item, seat, threat)
            return text.full_prompt(
                state.item,
                seat,
                threat,
                resource_section=self.variant == "comlrl",
                show_limit=self.max_commands is not None,
            )
        paper = self.variant == "paper"
        hints = text.position_hints(state.blocks, state.item) if paper else ()
        if self.prompt == "compact":
            return text.compact_feedback(hints, reward=state.reward, alive=state.alive)
        return text.full_feedback(
            hints,
            turn=state.turn + 1,
            horizon=self.horizon,
            reward=state.reward,
            highest=self.highest,
            alive=state.alive,
            threat=threat,
            damage=state.damage,
        )

    def step(
        self, state: HouseBuildState, actions: Mapping[str, str], rng: np.random.Generator
    ) -> Outcome[HouseBuildState]:
        """Build this turn's world from an empty one, let the spiders attack, and score; nothing is
        random."""
        rules = self._rules(state.item)
        all_commands = [parse(actions[agent], rules) for agent in self.agents]
        blocks = build(all_commands)
        attacks = [attack for commands in all_commands for attack in commands.attacks]
        alive = living(attacks, state.spiders, SPIDER_HP)
        reward = raw_reward(
            survey(blocks, state.item),
            min(1.0, sum(alive) / PLAYER_HP),
            variant=self.variant,
            agents=len(self.agents),
        )
        after = HouseBuildState(
            item=state.item,
            spiders=state.spiders,
            turn=state.turn + 1,
            blocks=blocks,
            alive=len(alive),
            damage=sum(alive),
            reward=reward,
            rejected=sum(commands.rejected for commands in all_commands),
        )
        return Outcome(
            state=after, reward=reward + self.reward_shift, done=reward > SOLVED[self.variant]
        )

    def metrics(self, state: HouseBuildState) -> Mapping[str, float]:
        """Metrics of the last turn: `score`, the raw reward; `iou`, with kinds of blocks ignored;
        `health`, the share of health points left (HP in the paper's table 1); `coverage`, the share
        of the house's cells with the right block; `match`, the same share over all cells, air
        included; `extra`, the number of blocks outside the house; `rejected`, the number of
        rejected lines."""
        result = survey(state.blocks, state.item)
        return {
            "score": state.reward,
            "iou": result.iou,
            "health": max(0.0, 1.0 - state.damage / PLAYER_HP),
            "coverage": result.exact / result.total,
            "match": result.match,
            "extra": float(result.extra),
            "rejected": float(state.rejected),
        }

    def global_info(self, state: HouseBuildState) -> str:
        """m_t in the paper's words (E.3)."""
        return turn_and_reward(state.turn, self.horizon, state.reward, self.highest)

    def command(self, box: Box) -> str:
        """One command in the format that the prompt requests."""
        return text.short_command(box) if self.prompt == "compact" else text.long_command(box)

    def reference_actions(self, state: HouseBuildState) -> dict[str, str]:
        """Returns actions in which every agent builds the same share of each block, and the first
        agent also kills the spiders. These actions earn the maximum reward if the command limit
        allows each agent's share."""
        lines = [
            [self.command(box) for box in boxes]
            for boxes in shares(state.item, agents=len(self.agents))
        ]
        if state.spiders:
            lines[0].insert(0, self._kill())
        return {agent: "\n".join(boxes) for agent, boxes in zip(self.agents, lines, strict=True)}

    def legal_action(self, state: HouseBuildState, agent: str, rng: np.random.Generator) -> str:
        """Returns a legal but uncoordinated action for the warm start of the embedded model. The
        action places a random number of the house's pieces, in random order and within the
        resources. With probability 1/2, the action also kills spiders."""
        parts = pieces(state.item, len(self.agents))
        lines = [self._kill()] if state.spiders and rng.random() < 0.5 else []
        count = int(rng.integers(1, min(self.limit, len(parts)) + 1))
        resources = dict(self._rules(state.item).resources)
        for number in rng.permutation(len(parts)):
            box = parts[number]
            if len(lines) < count and box.volume <= resources[box.block]:
                resources[box.block] -= box.volume
                lines.append(self.command(box))
        return "\n".join(lines)

    def render(self, state: HouseBuildState) -> str:
        """Shows, for each layer, the house, the build and the owner of each block (1, 2, ...) side
        by side, and then the blocks' letters, the spiders and the players' health."""
        return "\n".join([*text.picture(state.item, state.blocks), self._harm(state)])

    def picture(self, state: HouseBuildState) -> Picture:
        """Shows the house and the build side by side, layer by layer: blocks, owners, and cells
        that are missing, extra or wrong."""
        return picture(state.item, state.blocks, self.agents, caption=self._harm(state))

    def _harm(self, state: HouseBuildState) -> str:
        health = max(0, PLAYER_HP - state.damage)
        return f"spiders {state.alive} of {self.spiders}, health {health} of {PLAYER_HP}"

    def _kill(self) -> str:
        return "kill" if self.prompt == "compact" else "/kill @e[type=spider]"

    def _rules(self, item: House) -> TurnRules:
        agents, paper = len(self.agents), self.variant == "paper"
        return TurnRules(
            size=item.size,
            resources={
                block: resource_limit(count, agents) for block, count in block_counts(item).items()
            },
            commands=self.limit,
            setblock=paper,
            damage=paper,
            any_kill=not paper,
            short=self.prompt == "compact",
        )

    def _seat(self, item: House, agent: str) -> text.BuilderFields:
        return text.BuilderFields(
            number=self.agents.index(agent),
            name=agent,
            agents=len(self.agents),
            limit=self.limit,
            resources=self._rules(item).resources,
        )

    def _threat(self, state: HouseBuildState) -> text.Threat:
        hit = f"/damage @e[type=spider,limit=1] {PLAYER_ATTACK} minecraft:player_attack"
        return text.Threat(
            attacks=state.spiders,
            command=hit if self.variant == "paper" else "/kill @e[type=spider]",
        )
