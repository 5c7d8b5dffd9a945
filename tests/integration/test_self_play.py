"""Self-play end to end: the exact measure of a policy, opponents, an update of every algorithm."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import pytest

from colearn.config import Config, load_config
from colearn.contract import NetworkKey
from colearn.entry.cli import main
from colearn.errors import ConfigError
from colearn.rollout.agents.cast.seats import Against
from colearn.rollout.grow import grow
from colearn.rollout.shapes import Chain
from colearn.training.evaluation.evaluate import exact_evaluator
from colearn.training.evaluation.exact import COLD
from colearn.training.evaluation.queried import QueriedEvaluator
from colearn.training.load_team import load_team
from colearn.training.loop import Experiment
from colearn.training.update.build_updater import build_updater

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from matches import tally

SELF_PLAY = ("marshal", "spiral_rae", "mt_grpo", "trajectory_grpo")


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLEARN_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def settings(algorithm="marshal", *, exact=False, credit="payoff", **more):
    return {
        "task": {"name": "open_spiel", "games": "kuhn_poker", "prompt": "compact"},
        "algorithm": {"name": algorithm, "credit": {"name": credit}},
        "models": {"player": {"path": "embedded-tiny", "learning_rate": 1e-2}},
        "agents": {"*": {"model": "player", "sampling": {"max_tokens": 3}}},
        "evaluation": {"exact": exact},
        "run": {"device": "cpu"},
        **more,
    }


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run with a moving baseline and exact measures: its config, its folder and itself."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    config = Config.model_validate(
        settings("spiral_rae", exact=True, train={"episodes": 4, "environment_steps": 20})
    )
    experiment = Experiment(config, folder)
    experiment.run()
    return config, folder, experiment


def team_of(*arguments, **more):
    return load_team(Config.model_validate(settings(*arguments, **more)))


def games(parts, number, **settings):
    items = list(parts.run.task.items("train")) * number
    trees, _ = grow(parts.run.task, items, parts.players, Chain(), seed=0, **settings)
    return trees


def test_the_measured_policy_is_the_one_that_plays():
    """Every legal action that was sampled has the probability that the evaluator reads."""
    parts = team_of(exact=True)
    exact = exact_evaluator(parts)
    assert isinstance(exact, QueriedEvaluator)
    asked = {}
    for agent in parts.run.task.agents:
        decisions = parts.run.task.decisions(agent)
        for decision, raw in zip(decisions, exact._probabilities(agent), strict=True):
            for reply, chance in zip(decision.replies, raw[0], strict=True):
                asked[agent, decision.history, decision.observation, reply] = chance
    checked = 0
    for tree in games(parts, 20):
        past = dict.fromkeys(tree.agents, ())
        for before, after in zip(tree.nodes, tree.nodes[1:], strict=False):
            [(agent, action)] = after.actions.items()
            text = before.observations[agent].text
            chance = asked.get((agent, past[agent], text, action.text))
            if chance is not None and action.finish == "end":
                assert math.exp(sum(action.logprobs)) == pytest.approx(chance, rel=1e-4)
                checked += 1
            past[agent] = (*past[agent], (text, action.text))
    assert checked > 30


def test_the_warm_started_model_plays_almost_uniformly():
    """Uniform play is 11/12 from equilibrium."""
    metrics = exact_evaluator(team_of(exact=True)).metrics()
    assert metrics["exact_rejected"] < 0.1
    assert 0.6 < metrics["nash_conv"] < 1.2
    assert metrics["exploitability"] == pytest.approx(metrics["nash_conv"] / 2)


def test_the_measures_of_a_cold_and_a_greedy_policy_stand_beside_the_sampled_ones():
    warm = settings(exact=True)
    cold = warm | {"agents": {"*": {"model": "player", "sampling": {"temperature": COLD}}}}
    metrics = exact_evaluator(load_team(Config.model_validate(warm))).metrics()
    colder = exact_evaluator(load_team(Config.model_validate(cold))).metrics()
    assert metrics["nash_conv_cold"] == pytest.approx(colder["nash_conv"])
    assert abs(metrics["nash_conv_cold"] - metrics["nash_conv"]) > 0.05
    # pure strategies and six deals of equal chance
    assert metrics["nash_conv_greedy"] * 6 == pytest.approx(round(metrics["nash_conv_greedy"] * 6))


def test_the_evaluate_command_prints_the_exact_measures_of_the_run(finished, monkeypatch, capsys):
    _, folder, _ = finished
    lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    last = [line["metrics"] for line in lines if line["kind"] == "evaluation"][-1]
    monkeypatch.setattr(sys, "argv", ["colearn", "evaluate", str(folder)])
    with pytest.raises(SystemExit) as stop:
        main()
    assert not stop.value.code
    told = json.loads(capsys.readouterr().out)
    for name in ("nash_conv", "nash_conv_cold", "nash_conv_greedy", "exact_rejected"):
        assert told[name] == last[name]


def test_a_play_says_that_it_is_sampled_where_exact_values_are_asked_for(
    tmp_path, monkeypatch, capsys
):
    path = tmp_path / "config.yaml"
    path.write_text(json.dumps(settings(exact=True)))
    agents = ["--agent", "player_0=http://127.0.0.1:9", "--agent", "player_1=http://127.0.0.1:9"]
    monkeypatch.setattr(sys, "argv", ["colearn", "play", str(path), *agents, "--retries", "0"])
    with pytest.raises(SystemExit):
        main()
    assert "evaluation.exact: a server gives texts, not probabilities" in capsys.readouterr().err


@pytest.mark.parametrize("name", SELF_PLAY)
def test_every_algorithm_of_self_play_moves_the_model(name):
    parts = team_of(name)
    before = {
        k: v.clone() for k, v in parts.learners[NetworkKey("actor", "player")].weights().items()
    }
    metrics = build_updater(parts).update(games(parts, 8), 0)
    assert all(math.isfinite(value) for value in metrics.values())
    after = parts.learners[NetworkKey("actor", "player")].weights()
    assert any(not before[key].equal(after[key]) for key in before)


def test_a_critic_of_both_hands_learns_from_payoffs():
    critic = {"path": "embedded-tiny", "learning_rate": 1e-2, "readers": {"*": "both"}}
    config = settings("collm_dc", critic=critic)
    config["algorithm"]["critic"] = {"privileged_info": True}
    parts = load_team(Config.model_validate(config))
    metrics = build_updater(parts).update(games(parts, 8), 0)
    assert all(math.isfinite(value) for value in metrics.values())
    root = games(parts, 1)[0].nodes[0]
    told = parts.run.parts.critic.seen(root, "player_0")
    role, text = told[-1]
    assert role == "hidden" and text.count("card") == 2


def test_one_value_for_players_of_opposite_payoffs_is_refused():
    critic = {"path": "embedded-tiny"}
    with pytest.raises(ConfigError, match=r"^algorithm.critic: Centralized has one value for all"):
        team_of("collm_cc", critic=critic)


def test_an_opponent_takes_each_seat_in_turn_and_is_not_trained():
    parts = team_of(
        players={"rival": {"program": {"name": "equilibrium"}}}, cast={"name": "against"}
    )
    trees = games(parts, 6, cast=Against())
    for seat in parts.run.task.agents:
        assert tally(trees, seat, seat).games == 3
    for tree in trees:
        for node in tree.nodes:
            for agent, action in node.actions.items():
                assert bool(action.tokens) == (tree.player(agent) != "rival")
    metrics = build_updater(parts).update(trees, 0)
    assert all(math.isfinite(value) for value in metrics.values())


def test_a_moving_baseline_is_in_the_checkpoint(finished):
    config, folder, first = finished
    kept = first.team.run.parts.advantage.state()
    again = Experiment(config, folder, resume=True)
    assert len(kept) == 2 and any(kept.values())
    assert again.team.run.parts.advantage.state() == kept


def league_run(folder, iterations, *, resume=False):
    config = Config.model_validate(
        settings(
            train={"episodes": 4, "environment_steps": 1000},
            cast={"name": "league", "pool": 2, "every": 1, "self_play": 0.25},
            run={"device": "cpu", "checkpoint_every": 1},
        )
    )
    run = Experiment(config, folder, resume=resume)

    def stop(progress, metrics):
        if progress.iteration == iterations and "evaluation/return" not in metrics:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run.run(stop)
    return run


def past_weights(run, slot):
    return weights_of(run.team.copies[NetworkKey("past", "player", slot)].network)


def weights_of(network):
    return [weight.detach().clone() for weight in network.trained().values()]


def test_a_league_seats_past_selves_that_are_not_trained(tmp_path):
    run = league_run(tmp_path / "run", 1)
    now = weights_of(run.team.networks[NetworkKey("actor", "player")])
    past = {key.slot: weights_of(copy.network) for key, copy in run.team.copies.items()}
    assert all(a.equal(b) for a, b in zip(now, past[0], strict=True)), "slot 0 is the policy of now"
    assert not all(a.equal(b) for a, b in zip(now, past[1], strict=True))
    assert run.team.run.cast.members == (0,)

    trees = games(run.team, 40, cast=run.team.run.cast)
    against = [tree for tree in trees if tree.cast]
    assert {name for tree in against for name in tree.cast.values()} == {"player_0@0", "player_1@0"}
    assert 20 <= len(against) <= 38
    run.updater.update(trees, 2)
    assert all(a.equal(b) for a, b in zip(past[0], past_weights(run, 0), strict=True))
    changed = weights_of(run.team.networks[NetworkKey("actor", "player")])
    assert not all(a.equal(b) for a, b in zip(now, changed, strict=True))


def test_a_resumed_league_has_the_same_past_selves_and_win_rates(tmp_path):
    whole = league_run(tmp_path / "whole", 2)
    league_run(tmp_path / "part", 1)
    part = league_run(tmp_path / "part", 2, resume=True)
    assert part.team.run.cast.state() == whole.team.run.cast.state()
    assert whole.team.run.cast.state()["taken"] == 2.0
    for slot in (0, 1):
        one, other = (
            weights_of(run.team.copies[NetworkKey("past", "player", slot)].network)
            for run in (part, whole)
        )
        assert all(a.equal(b) for a, b in zip(one, other, strict=True))


@pytest.mark.slow
def test_self_play_comes_nearer_to_equilibrium_in_kuhn_poker(tmp_path):
    """The shipped config with a sixth of its games: NashConv halves at least."""
    config = load_config("learning/kuhn", ["train.environment_steps=30000", "train.episodes=128"])
    record = Experiment(config, tmp_path / "run").run()
    assert record.last["nash_conv"] < 0.5 * record.first["nash_conv"]
