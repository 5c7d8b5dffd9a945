"""Returns of random legal play, which `colearn check` prints."""

from __future__ import annotations

from typing import Any

import pytest

from colearn.contract import DecPOMDP
from colearn.contract.types import Outcome
from colearn.training.evaluation.random_play import random_play_lines, random_returns


class Sums(DecPOMDP[int, int]):
    """Two turns; an action of 'b' earns 1, all others 0. Both agents act, and only 'b' is legal for
    the first one."""

    agents = ("x", "y")
    horizon = 2
    legal: Any = "b"

    def items(self, split: str) -> list[int]:
        return [0, 1, 2]

    def reset(self, item: int, rng: Any) -> int:
        return 0

    def observe(self, state: int, agent: str) -> str | None:
        return "say a or b"

    def legal_action(self, state: int, agent: str, rng: Any) -> str | None:
        return self.legal if agent == "x" else str(rng.choice(["a", "b"]))

    def step(self, state: int, actions: Any, rng: Any) -> Outcome[int]:
        each = {agent: float(action == "b") for agent, action in actions.items()}
        return self.outcome(state + 1, each)

    def outcome(self, state: int, each: dict[str, float]) -> Outcome[int]:
        return Outcome(state=state, reward=sum(each.values()), done=state == 2)

    def metrics(self, state: int) -> dict[str, float | None]:
        return {}


class Pays(Sums):
    """Pays each agent for itself, the first turn's action of x at the end."""

    pays = frozenset({"local"})
    pays_later = True

    def outcome(self, state: int, each: dict[str, float]) -> Outcome[int]:
        if state == 1:
            return Outcome(state=state, reward=0.0, local_rewards={"y": each["y"]})
        earned = {(0, "x"): 1.0}
        return Outcome(state=state, reward=0.0, local_rewards=each, earned=earned, done=True)


def test_random_play_sums_the_teams_rewards_over_both_turns() -> None:
    """Agent x earns 2 in every episode, y between 0 and 2."""
    returns = random_returns(Sums())
    assert returns is not None and len(returns) == 20 and set(returns) == {2.0, 3.0, 4.0}
    mean = sum(returns) / 20
    assert random_play_lines(Sums()) == [
        f"random play: return {mean:.3f} on average, 2.000 to 4.000, in 20 episodes of random "
        "legal actions"
    ]


def test_of_players_it_is_their_mean_payoff_with_what_is_earned_late() -> None:
    returns = random_returns(Pays())
    assert returns is not None and set(returns) == {1.0, 1.5, 2.0}


def test_an_agent_without_a_legal_action_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sums, "legal", None)
    assert random_returns(Sums()) is None
    [line] = random_play_lines(Sums())
    assert line.endswith("because the task has no legal_action")


class Costs(Sums):
    """Each turn costs 1: an episode of two turns earns -2."""

    invalid_penalty = 1.0

    def outcome(self, state: int, each: dict[str, float]) -> Outcome[int]:
        return Outcome(state=state, reward=-1.0, done=state == 2)


def test_an_invalid_reply_that_costs_less_than_random_play_is_told() -> None:
    _, line = random_play_lines(Costs())
    assert line == (
        "an invalid reply ends the episode with -1, more than random play earns (-2.000): raise "
        "task.invalid_penalty"
    )


def test_a_penalty_as_high_as_what_random_play_costs_is_not_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Costs, "invalid_penalty", 2.0)
    assert len(random_play_lines(Costs())) == 1


def test_long_episodes_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("colearn.training.evaluation.random_play._TURNS", 5)
    returns = random_returns(Sums())
    assert returns is not None and len(returns) == 3


class Programs(Sums):
    """A joint action is passed to a program before the step."""

    def send(self, state: Any, actions: Any) -> Any:
        return ("sent", state)

    def step(self, state: Any, actions: Any, rng: Any) -> Outcome[int]:
        mark, before = state
        assert mark == "sent"
        return super().step(before, actions, rng)


def test_a_task_of_programs_is_played_as_in_a_rollout() -> None:
    returns = random_returns(Programs())
    assert returns is not None and set(returns) == {2.0, 3.0, 4.0}
