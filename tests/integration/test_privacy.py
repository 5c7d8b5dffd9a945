"""Taint: another agent's text changes nothing that an agent computes, to the last bit.

What an agent attends to is its own history alone, in any batch. But the sums of a matrix product
are ordered by its shape (on a CPU: three rows or fewer, or keys that are no multiple of the vector
width), and in a batch that agents share the shape follows from all of them: once another agent
ends its action, fewer rows are left. So bit for bit equality over an episode needs batches of
one's own: separate models have them, a shared base with `run.generator: {batch_agents: false}`,
which gives each agent a generator.
"""

from __future__ import annotations

from contextlib import contextmanager

import pytest
import torch
from asking import token_request
from tiny import Notes, cast, register, save_model

from colearn.config import Config
from colearn.engines.transformers import TransformersEngine
from colearn.rollout.grow import grow
from colearn.rollout.shapes import Chain, KaryTree
from colearn.training.load_team import load_team
from tests.helpers.scripted_voice import language_players

CLUES = (("the elder", "oak and ash"), ("fir", "birch and cedar"), ("larch and oak", "ash"))
SAME_LENGTH = tuple((ada, "x" * len(ben)) for ada, ben in CLUES)
LONGER = tuple((ada, f"{ben} and a much longer story of trees" * 3) for ada, ben in CLUES)
SHORTER = tuple((ada, "o") for ada, _ in CLUES)
SEPARATE = {"shared": False}
TWO_ADAPTERS = {"lora": {"ada": "one", "ben": "two"}}
ONE_ADAPTER = {"lora": {"ada": "one", "ben": None}}


def episode(settings, clues, *, apart, shape=None, kind="qwen3"):
    """Ada's raw logits of every call, and both agents' actions, over whole episodes."""
    team = cast(kind=kind, max_tokens=12, **settings)
    players = dict(team.players)
    if apart:
        for agent, voice in team.voices.items():
            generator = TransformersEngine(team.bases[agent], {agent: voice})
            players |= language_players(generator, {agent: voice})
    logits = record(team.bases["ada"], players["ada"].engine)
    task = Notes(clues=clues)
    trees, _ = grow(task, task.items("train"), players, shape or Chain(), seed=3)
    nodes = [node for tree in trees for node in tree.nodes[1:]]
    return logits, [n.actions["ada"] for n in nodes], [n.actions["ben"] for n in nodes]


def record(base, generator):
    """What comes out of the base's head while this generator runs."""
    logits, running = [], []
    prepared = generator._prepared

    @contextmanager
    def noted():
        with prepared():
            running.append(True)
            yield
            running.clear()

    def hook(module, inputs, output):
        if running:
            logits.append(output.detach().clone())

    generator._prepared = noted
    base.causal.get_output_embeddings().register_forward_hook(hook)
    return logits


@pytest.mark.parametrize(
    ("team", "taint"),
    [(SEPARATE, LONGER), (TWO_ADAPTERS, SAME_LENGTH), (ONE_ADAPTER, SHORTER)],
    ids=["separate models, longer", "two adapters, same length", "one adapter, shorter"],
)
def test_another_agents_text_leaves_all_logits_of_an_episode_bit_identical(team, taint):
    logits, actions, others = episode(team, CLUES, apart=True)
    tainted, again, changed = episode(team, taint, apart=True)
    assert [a.tokens for a in others] != [a.tokens for a in changed]
    assert actions == again
    assert len(logits) == len(tainted) > 3
    assert all(torch.equal(one, other) for one, other in zip(logits, tainted, strict=True))


def test_another_agents_text_leaves_all_logits_of_a_tree_bit_identical():
    tree = {"apart": True, "shape": KaryTree(2), "kind": "gemma3"}
    logits, actions, _ = episode(TWO_ADAPTERS, CLUES, **tree)
    tainted, again, _ = episode(TWO_ADAPTERS, LONGER, **tree)
    assert actions == again
    assert all(torch.equal(one, other) for one, other in zip(logits, tainted, strict=True))


def test_separate_models_need_no_separate_batches():
    logits, actions, _ = episode(SEPARATE, CLUES, apart=False)
    tainted, again, _ = episode(SEPARATE, LONGER, apart=False)
    assert actions == again
    assert all(torch.equal(one, other) for one, other in zip(logits, tainted, strict=True))


@pytest.mark.parametrize(
    ("team", "taint"), [({}, SHORTER), (TWO_ADAPTERS, LONGER)], ids=["one model", "two adapters"]
)
def test_in_one_batch_another_agents_text_moves_logprobs_by_rounding_alone(team, taint):
    """1e-5 in float32: a token of another history in sight would move them by whole nats."""
    _, actions, _ = episode(team, CLUES, apart=False)
    _, again, _ = episode(team, taint, apart=False)
    for one, other in zip(actions, again, strict=True):
        assert one.tokens == other.tokens
        assert torch.allclose(
            torch.tensor(one.logprobs), torch.tensor(other.logprobs), atol=1e-5, rtol=0
        )


def first_logits(team, text):
    """Ada's logits after one prefill together with Ben, four rows each."""
    logits = []
    head = team.bases["ada"].causal.get_output_embeddings()
    hook = head.register_forward_hook(lambda module, inputs, output: logits.append(output.clone()))
    chat = team.voices["ada"].chat
    requests = [
        token_request(team.voices, agent, chat.open(clue).tokens, (0,))
        for agent, clue in [("ada", "oak"), ("ben", text)] * 4
    ]
    team.generators[id(team.bases["ada"])].generate(requests)
    hook.remove()
    return logits[0][::2]


def test_in_one_batch_the_first_logits_are_bit_identical_for_texts_of_one_length():
    team = cast(**TWO_ADAPTERS)
    assert torch.equal(first_logits(team, "fir and ash"), first_logits(team, "xxx xxx xxx"))


def test_apart_and_together_draw_the_same_actions():
    _, apart, _ = episode(TWO_ADAPTERS, CLUES, apart=True)
    _, together, _ = episode(TWO_ADAPTERS, CLUES, apart=False)
    assert [a.tokens for a in apart] == [a.tokens for a in together]


def test_another_agents_text_leaves_the_ids_of_a_history_alone():
    task = Notes(clues=CLUES)
    team = cast(shared=False)
    trees, _ = grow(task, task.items("train"), team.players, Chain(), seed=3)
    other = Notes(clues=LONGER)
    tainted, _ = grow(other, other.items("train"), team.players, Chain(), seed=3)
    for one, two in zip(trees, tainted, strict=True):
        last = one.nodes[-1].index
        assert one.history(last, "ada") == two.history(last, "ada")
        assert one.history(last, "ben") != two.history(last, "ben")


@pytest.mark.parametrize(("together", "generators"), [(True, 1), (False, 2)])
def test_the_config_gives_every_agent_a_generator_of_its_own(
    tmp_path, monkeypatch, together, generators
):
    register(monkeypatch, notes="tiny:Notes")
    config = Config.model_validate(
        {
            "task": {"name": "notes"},
            "algorithm": {"name": "mareinforce"},
            "models": {"one": {"path": save_model(tmp_path)}},
            "agents": {"*": {"model": "one"}},
            "run": {"device": "cpu", "generator": {"batch_agents": together}},
        }
    )
    assert len(load_team(config).engines) == generators
