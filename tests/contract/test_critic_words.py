"""A critic made for a task can read all that the task writes, m_t and marks included."""

from __future__ import annotations

from dataclasses import replace

import pytest

from colearn.contract import joint_observations
from colearn.contract.seeding import derive_rng
from colearn.contract.types import Action, Node, Observation, Tree
from colearn.errors import ConfigError
from colearn.methods.critic.centralized import TEAM, Centralized
from colearn.methods.critic.decentralized import Decentralized
from colearn.methods.critic.stream import text_stream
from colearn.models import embedded
from colearn.registry import task_class
from tests.helpers.complete_tasks import COMPLETE_TASKS


def episode(task, item, number, said):
    """A chain as the collector grows it; agents say what `said` gives."""
    rng = derive_rng("words", number)
    state, actions, nodes, done = task.reset(item, rng), {}, [], False
    for turn in range(task.horizon + 1):
        over = done or turn == task.horizon
        seen = {} if over else dict(joint_observations(task, state))
        nodes.append(
            Node(
                index=turn,
                parent=turn - 1 if turn else None,
                path=(0,) * turn,
                state=state,
                observations={a: Observation(getattr(o, "text", o), (0,)) for a, o in seen.items()},
                actions={a: Action(text, (0,)) for a, text in actions.items()},
                done=done,
                global_info=task.global_info(state),
                privileged_info=task.privileged_info(state),
            )
        )
        if over:
            break
        actions = {agent: said(state, agent, rng) for agent in seen}
        outcome = task.step(state, actions, rng)
        state, done = outcome.state, outcome.done
    return Tree(item=item, episode=number, agents=tuple(task.agents), nodes=tuple(nodes))


def clumsy(task, tokenizer):
    """Legal actions and, now and then, words of the vocabulary run together, as an untrained model
    says them."""
    special = set(tokenizer.all_special_ids)
    words = [i for i in range(len(tokenizer)) if i not in special]

    def said(state, agent, rng):
        if rng.random() < 0.8:
            return task.legal_action(state, agent, rng) or ""
        return tokenizer.decode(rng.choice(words, size=4).tolist())

    return said


RUNS_PROGRAMS = ("code_loop", "coder_tester")
"""Every step of theirs starts sandboxes."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name in RUNS_PROGRAMS or number % 3 else [])
        for number, name in enumerate(COMPLETE_TASKS)
    ],
)
def test_no_unknown_word_enters_a_critics_stream(name, monkeypatch):
    # a few of the 256 episodes that a real vocabulary is made from
    short = replace(embedded.RECIPES["embedded-tiny"], episodes=8)
    monkeypatch.setitem(embedded.RECIPES, "embedded-tiny", short)
    task = task_class(name)()
    try:
        _, tokenizer = embedded.embedded_parts(task, "embedded-tiny", "critic.path")
    except ConfigError:
        pytest.skip("the task offers no legal actions, so no embedded model is made for it")

    def tokenize(text):
        return tokenizer(text, add_special_tokens=False)["input_ids"]

    said, told, read = clumsy(task, tokenizer), set(), 0
    items = [*task.items("train")[:2], *task.items("test")[:1]]
    for number, item in enumerate(items):
        tree = episode(task, item, number, said)
        told |= {text for node in tree.nodes for text in (node.global_info, node.privileged_info)}
        for critic in (Centralized(), Decentralized(), Centralized(value="q")):
            for reader in critic.readers(tree.agents):
                stream = text_stream(tree, critic, reader, tokenize)
                ids = [token for part in (*stream.seen, *stream.done) for token in part]
                read += bool(ids)  # who never came to move has read nothing
                assert tokenizer.unk_token_id not in ids
    assert read >= len(items)
    assert TEAM in Centralized().readers(task.agents)
    assert all(tokenizer.decode(tokenize(text)) == text for text in told)


def test_the_words_of_a_hidden_state_are_whole_tokens():
    task = task_class("dpomdp")(problem="lock")
    _, tokenizer = embedded.embedded_parts(task, "embedded-tiny", "critic.path")
    tree = episode(task, task.items("train")[0], 0, task.legal_action)
    [said] = {node.privileged_info for node in tree.nodes if node.turn == 1}
    state, name = said.split()
    assert "-" in name, "a state's name, such as rl-t0-n0"
    assert [piece.strip() for piece in tokenizer.tokenize(said)] == [state, name]
    assert len(tokenizer.tokenize("\n[hidden 1]\n")) == 1
