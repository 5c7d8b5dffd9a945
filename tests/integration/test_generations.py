"""What a rollout costs: generations, joint actions, and tokens run to extend a history."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from asking import token_request
from tiny import Notes, cast

from colearn.engines.transformers import TransformersEngine
from colearn.rollout.grow import grow
from colearn.rollout.shapes import Chain, Cross, KaryTree

NAMES = ("ada", "ben", "cleo")


@pytest.fixture(scope="module")
def team():
    return cast(NAMES, max_tokens=2)


def roll(team, agents, horizon, shape, items=1, **settings):
    task = Notes(agents=agents, horizon=horizon, items=items, **settings)
    players = {agent: team.players[agent] for agent in task.agents}
    return grow(task, task.items("train"), players, shape, seed=0)


@pytest.mark.parametrize(("agents", "samples", "horizon"), [(1, 4, 1), (2, 1, 4), (3, 2, 3)])
def test_a_tree_costs_the_generations_of_proposition_4_3(team, agents, samples, horizon):
    (tree,), counts = roll(team, agents, horizon, KaryTree(samples))
    joint = (
        horizon if samples == 1 else samples * (samples**horizon - 1) // (samples - 1)
    )  # K + K^2 + ... + K^H
    assert counts.generations == agents * joint
    assert counts.joint_actions == len(tree.nodes) - 1 == joint
    assert sum(1 for _ in tree.leaves()) == samples**horizon


def test_a_cross_executes_every_pairing_of_what_each_agent_draws_once(team):
    (tree,), counts = roll(team, 3, 1, Cross(2))
    assert (counts.generations, counts.joint_actions) == (3 * 2, 2**3)
    drawn = {agent: {n.actions[agent].tokens for n in tree.nodes[1:]} for agent in NAMES}
    assert all(len(tokens) <= 2 for tokens in drawn.values())


def test_sequential_play_generates_for_the_acting_agent_only(team):
    (tree,), counts = roll(team, 2, 4, KaryTree(2), sequential=True)
    assert counts.generations == counts.joint_actions == len(tree.nodes) - 1 == 2 + 4 + 8 + 16


def test_the_tokens_counted_are_those_of_the_actions(team):
    _, chain = roll(team, 2, 3, Chain(), items=2)
    trees, counts = roll(team, 2, 3, Chain(), items=2)
    total = sum(len(a.tokens) for t in trees for n in t.nodes for a in n.actions.values())
    assert counts.tokens == chain.tokens == total


def prefilled(team, run):
    generator = team.generators[id(team.bases["ada"])]
    before = generator.prefilled_tokens
    answer = run()
    return generator.prefilled_tokens - before, answer


@pytest.mark.parametrize("samples", [1, 4])
def test_a_fork_never_prefills_again(team, samples):
    """Every observation once, and the last token of every action that another turn follows."""
    cost, (trees, _) = prefilled(team, lambda: roll(team, 2, 3, KaryTree(samples), items=2))
    expected = 0
    for tree in trees:
        for node in tree.nodes:
            if not node.terminal:
                expected += sum(len(seen.tokens) for seen in node.observations.values())
                expected += len(node.actions)
    assert cost == expected


def test_a_later_turn_prefills_the_new_tokens_and_the_pending_one(team):
    generator = team.generators[id(team.bases["ada"])]
    request = token_request(team.voices, "ada", tuple(range(10, 40)), (0,))
    cost, ((first,),) = prefilled(team, lambda: generator.generate([request]))
    assert cost == 30
    request = token_request(team.voices, "ada", (50, 51, 52), (0,), continues=first.history)
    cost, _ = prefilled(team, lambda: generator.generate([request]))
    assert cost == 3 + 1


def test_histories_that_begin_alike_are_prefilled_once_and_draw_their_own(team):
    generator = team.generators[id(team.bases["ada"])]

    def asked(tokens, *seeds):
        return [token_request(team.voices, "ada", tokens, (s,)) for s in seeds]

    same, other = tuple(range(10, 40)), tuple(range(12, 42))
    requests = [*asked(same, 1), *asked(other, 2), *asked(same, 3, 4)]
    cost, together = prefilled(team, lambda: generator.generate(requests))
    assert cost == 30 + 30
    alone = [generator.generate([request]) for request in requests]
    for (sampled,), ((expected,),) in zip(together, alone, strict=True):
        assert sampled.action.tokens == expected.action.tokens
        assert sampled.action.logprobs == pytest.approx(expected.action.logprobs, abs=1e-5)
    assert len({sampled.action.tokens for (sampled,) in together}) == 4
    later = [
        token_request(team.voices, "ada", (50, 51), (9,), continues=sampled.history)
        for (sampled,) in together
    ]
    again = [generator.generate([request]) for request in later]
    for (sampled,), ((expected,),) in zip(generator.generate(later), again, strict=True):
        assert sampled.action.tokens == expected.action.tokens


def speak(generator, agent):
    requests = [
        token_request(generator.roles, agent, tuple(range(10, 20 + n)), (n, n + 1))
        for n in range(3)
    ]
    return [[s.action for s in answers] for answers in generator.generate(requests)]


def test_generators_over_different_models_speak_at_the_same_time(monkeypatch):
    """Each waits inside its first forward pass until the other is in one, too."""
    team = cast(("ada", "ben"), shared=False, max_tokens=12)
    generators = {agent: team.generators[id(team.bases[agent])] for agent in team.bases}
    for generator in generators.values():
        generator.threads = 1, 1  # of torch's: a place of its own
    alone = {agent: speak(generator, agent) for agent, generator in generators.items()}
    both = Barrier(2)
    for base in team.bases.values():
        monkeypatch.setattr(base, "hidden", meeting(base.hidden, both))
    with ThreadPoolExecutor(2) as pool:
        futures = {agent: pool.submit(speak, g, agent) for agent, g in generators.items()}
        assert {agent: future.result(600) for agent, future in futures.items()} == alone


def meeting(hidden, both):
    first = [True]

    def met(*arguments, **settings):
        if first:
            first.clear()
            both.wait(600)
        return hidden(*arguments, **settings)

    return met


def test_generators_on_one_model_take_turns(monkeypatch):
    """Which adapter is on belongs to one of them at a time."""
    team = cast(("ada", "ben"), lora={"ada": "one", "ben": "two"}, max_tokens=12)
    base = team.bases["ada"]
    generators = {a: TransformersEngine(base, {a: v}) for a, v in team.voices.items()}
    alone = {agent: speak(generator, agent) for agent, generator in generators.items()}
    with ThreadPoolExecutor(2) as pool:
        futures = {agent: pool.submit(speak, g, agent) for agent, g in generators.items()}
        assert {agent: future.result(600) for agent, future in futures.items()} == alone


def test_rows_join_while_others_decode_and_are_what_they_are_alone():
    """With two rows at most, requests wait, and take the place of those that end."""
    team = cast(("ada",), max_tokens=12)
    few = TransformersEngine(team.bases["ada"], team.voices, max_rows=2)
    many = speak(team.generators[id(team.bases["ada"])], "ada")
    for one, other in zip(speak(few, "ada"), many, strict=True):
        assert [a.tokens for a in one] == [a.tokens for a in other]


def test_a_failed_call_leaves_nothing_for_the_next(monkeypatch):
    team = cast(("ada",))
    generator = team.generators[id(team.bases["ada"])]
    expected = speak(generator, "ada")
    with monkeypatch.context() as broken, pytest.raises(ZeroDivisionError):
        broken.setattr(team.bases["ada"], "hidden", lambda *_, **__: 1 / 0)
        speak(generator, "ada")
    assert speak(generator, "ada") == expected


def test_a_history_is_still_usable_after_it_was_continued(team):
    generator = team.generators[id(team.bases["ada"])]
    opening = token_request(team.voices, "ada", tuple(range(10, 40)), (0,))
    ((first,),) = generator.generate([opening])
    following = token_request(team.voices, "ada", (50, 51, 52), (3, 4), continues=first.history)
    once = generator.generate([following])
    again = generator.generate([following])
    assert [s.action for s in once[0]] == [s.action for s in again[0]]
