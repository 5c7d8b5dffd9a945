"""Harvest: a grower and a carter sell crops; the weather, which the carter reads, moves the pay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from colearn.contract import DecPOMDP, Headline
from colearn.contract.types import Outcome

from ..checks import check_number, check_split, check_whole
from .orders import Choice, Season, draw_seasons

GROWER, CARTER = "grower", "carter"
SUN, HAIL = "sun", "hail"
READY = "ready"

_OPENING = "you are the {agent} . each week answer with one of two words . now answer ready"
_PROMPTS = {
    GROWER: "week {week} : plant {first} or {second}",
    CARTER: "week {week} : drive to the {first} or {second} . the weather is {weather}",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """The season so far."""

    season: Season
    week: int = 0
    """The current week; 0: the opening."""
    weather: str | None = None
    """None during the opening."""
    sold: int = 0
    """Weeks in which both agents chose the right word."""


@dataclass(kw_only=True, eq=False)
class Harvest(DecPOMDP[Season, Played]):
    """A grower and a carter sell one load per week, and are paid at the end of the season.

    Week 0 is an opening: both agents answer `ready`, and any answer is accepted. Then the weather
    of the season is drawn: sun or hail, each with probability 1/2. In every later week, each agent
    reads two words and answers with one of them. The grower chooses a crop; the carter chooses a
    place, and also reads the weather. Four of the eight crops sell, and four of the eight places
    buy; no text says which, so the team learns it from its pay. Every choice has one right word. A
    load is sold if both agents choose the right word; any other answer counts as wrong.

    The only reward is paid after the last week: the share of weeks in which the load was sold, plus
    `luck` with sun and minus `luck` with hail. The weather does not depend on the actions, and its
    mean is 0, so the optimal return is 1 for every `luck`. Random choices sell a quarter of the
    loads. With `luck: 0` the texts are the same and the weather pays nothing.

    The grower never reads the weather. A critic that reads only the grower's history cannot predict
    the luck; a critic that reads both histories can. The weather is drawn after the opening, so
    rollouts that branch only at the root differ in it.

    Training and test seasons offer different pairs of words. The headline metric is `sold`, the
    return without the luck.

    Errors: ConfigError from the constructor and from `items`, one line that names the setting.
    """

    weeks: int = 5
    """Number of weeks after the opening."""
    luck: float = 1.0
    """What the weather adds to the pay or takes from it."""
    train: int = 64
    """Seasons of the training split."""
    test: int = 32
    """Seasons of the test split."""
    seed: int = 0
    """Seed of the seasons."""

    agents = (GROWER, CARTER)
    headline = Headline("sold")
    optimum = 1.0

    def __post_init__(self) -> None:
        check_whole("weeks", self.weeks, 1, 50)
        check_number("luck", self.luck, 0.0, 1000.0)
        check_whole("train", self.train, 1, 10**6)
        check_whole("test", self.test, 1, 10**6)
        check_whole("seed", self.seed, 0)
        self.horizon = self.weeks + 1
        self.reward_range = (-float(self.luck), 1.0 + self.luck)

    def items(self, split: str) -> Sequence[Season]:
        """The seasons of 'train' or of 'test'."""
        check_split(split)
        size = self.train if split == "train" else self.test
        return _seasons(split, self.weeks, size, self.seed)

    def reset(self, item: Season, rng: np.random.Generator) -> Played:
        """The opening."""
        return Played(season=item)

    def observe(self, state: Played, agent: str) -> str | None:
        """The opening, or the week's two words; None after the last week."""
        if state.week == 0:
            return _OPENING.format(agent=agent)
        if state.week > self.weeks:
            return None
        first, second = _choice(state, agent).offered
        return _PROMPTS[agent].format(
            week=state.week, first=first, second=second, weather=state.weather
        )

    def step(
        self, state: Played, actions: Mapping[str, str], rng: np.random.Generator
    ) -> Outcome[Played]:
        """Draw the weather after the opening; later, compare both answers with the right words."""
        after = replace(state, week=state.week + 1)
        if state.week == 0:
            after = replace(after, weather=(HAIL, SUN)[int(rng.integers(2))])
            return Outcome(state=after, reward=0.0)
        right = all(actions[name].strip() == _choice(state, name).right for name in self.agents)
        after = replace(after, sold=state.sold + right)
        if after.week <= self.weeks:
            return Outcome(state=after, reward=0.0)
        return Outcome(state=after, reward=self._share(after) + self._luck(after), done=True)

    def metrics(self, state: Played) -> Mapping[str, float]:
        """`sold`, the share of weeks in which the load was sold; `luck`, what the weather paid."""
        return {"sold": self._share(state), "luck": self._luck(state)}

    def legal_action(self, state: Played, agent: str, rng: np.random.Generator) -> str:
        """One of the two words on offer."""
        if state.week == 0:
            return READY
        return _choice(state, agent).offered[int(rng.integers(2))]

    def render(self, state: Played) -> str:
        """The weather and the loads that were sold."""
        return f"weather {state.weather}, {state.sold} of {self.weeks} loads sold"

    def _share(self, state: Played) -> float:
        return state.sold / self.weeks

    def _luck(self, state: Played) -> float:
        if state.weather is None:
            return 0.0
        return float(self.luck) if state.weather == SUN else -float(self.luck)


def _choice(state: Played, agent: str) -> Choice:
    week = state.season[state.week - 1]
    return week.crop if agent == GROWER else week.place


@lru_cache(maxsize=16)
def _seasons(split: str, weeks: int, size: int, seed: int) -> tuple[Season, ...]:
    return draw_seasons(split, weeks=weeks, size=size, seed=seed)
