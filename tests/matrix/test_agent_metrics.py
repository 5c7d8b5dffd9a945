"""What each agent earns is logged under every credit, for tasks of every kind of pay."""

from __future__ import annotations

from pathlib import Path

import pytest
from random_play import random_play, task_of

from colearn.contract import Credit
from colearn.methods.credit.concise import Concise
from colearn.methods.credit.mixed import Mixed
from colearn.methods.credit.payoff import Payoff
from colearn.methods.credit.shared_reward import SharedReward
from colearn.runs.record.metric_names import of_agent
from colearn.training.evaluation.played import mean_outcomes

CREDITS: tuple[Credit, ...] = (SharedReward(), Mixed(alpha=0.5), Payoff(), Concise())


@pytest.mark.parametrize("name", ["dpomdp", "open_spiel", "debate", "workflow"])
def test_an_agents_own_payoff_and_its_objective_are_logged_under_every_credit(
    name: str, tmp_path: Path
) -> None:
    task = task_of(name, tmp_path)
    trees = random_play(task)
    pays = task.pays
    earned = {
        agent: sum(
            node.local_rewards.get(agent, 0.0)
            + sum(late for (_, who), late in node.earned.items() if who == agent)
            for tree in trees
            for node in tree.nodes
        )
        / len(trees)
        for agent in task.agents
    }
    for credit in CREDITS:
        if not credit.reads & pays:
            continue
        logged = mean_outcomes(trees, pays, credit)
        own = {key: value for key, value in logged.items() if key.startswith("return/")}
        expected = earned if "local" in pays else {}
        assert own == pytest.approx({f"return/{agent}": mean for agent, mean in expected.items()})
        for agent in task.agents:
            assert of_agent(logged, "objective", agent) is not None
    task.close()
