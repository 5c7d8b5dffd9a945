import dataclasses
from math import nan
from types import SimpleNamespace

import pytest
import torch
from trees import chain, tree
from updates import new_critics

from colearn.contract.rows import Mark
from colearn.contract.types import Action, Node, Observation, Tree
from colearn.methods.critic.centralized import TEAM, Centralized
from colearn.methods.critic.decentralized import Decentralized
from colearn.methods.critic.stream import text_stream
from colearn.methods.critic.tokenwise import Tokenwise
from colearn.methods.values.loaded import LoadedCritic

TURN = chain([1.0], global_info="turn 1 of 1")
ROOT, END = TURN.nodes


def test_one_reader_gives_the_value_of_the_whole_team():
    assert Centralized().readers(("alice", "bob")) == {TEAM: ("alice", "bob")}


def test_each_agent_has_a_reader_named_after_it():
    assert Decentralized().readers(("alice", "bob")) == {"alice": ("alice",), "bob": ("bob",)}


def test_the_joint_stream_has_every_observation_then_the_global_information():
    assert Centralized().seen(ROOT, TEAM) == (
        ("alice", "alice sees 0"),
        ("bob", "bob sees 0"),
        ("global", "turn 1 of 1"),
    )
    assert Centralized().done(END, TEAM) == (
        ("alice", "alice makes 1"),
        ("bob", "bob makes 1"),
    )


def test_what_all_agents_see_alike_stands_there_once():
    same = Observation("the grid", (1, 2))
    node = dataclasses.replace(ROOT, observations={"alice": same, "bob": same}, global_info="")
    assert Centralized().seen(node, TEAM) == (("all", "the grid"),)


def test_a_lone_acting_agent_keeps_its_own_name():
    turns = tree([(0, 1.0)], acting={0: ("bob",)})
    assert Centralized().seen(turns.nodes[0], TEAM) == (("bob", "bob sees 0"),)
    assert Centralized().done(turns.nodes[1], TEAM) == (("bob", "bob makes 1"),)


def test_the_global_information_is_an_option_of_both_critics():
    assert [role for role, _ in Centralized(global_info=False).seen(ROOT, TEAM)] == ["alice", "bob"]
    assert Decentralized().seen(ROOT, "bob")[-1] == ("global", "turn 1 of 1")
    assert Decentralized(global_info=False).seen(ROOT, "bob") == (("bob", "bob sees 0"),)


HIDDEN = chain([1.0], global_info="turn 1 of 1", privileged_info="the tiger is left").nodes[0]


def test_what_no_agent_sees_is_told_to_a_central_critic_last():
    assert Centralized().seen(HIDDEN, TEAM)[-2:] == (
        ("global", "turn 1 of 1"),
        ("hidden", "the tiger is left"),
    )
    told = Centralized(privileged_info=False).seen(HIDDEN, TEAM)
    assert [role for role, _ in told] == ["alice", "bob", "global"]


def test_a_decentral_critic_is_told_m_t_and_not_what_no_agent_sees():
    own = (("bob", "bob sees 0"), ("global", "turn 1 of 1"))
    assert Decentralized().seen(HIDDEN, "bob") == own
    asked = Decentralized(privileged_info=True).seen(HIDDEN, "bob")
    assert asked == (*own, ("hidden", "the tiger is left"))


def test_a_decentral_reader_never_reads_another_agents_text():
    critic = Decentralized()
    text = [text for _, text in (*critic.seen(ROOT, "alice"), *critic.done(END, "alice"))]
    assert text == ["alice sees 0", "turn 1 of 1", "alice makes 1"]


def test_a_decentral_reader_reads_nothing_at_turns_of_others():
    turns = tree([(0, 1.0)], acting={0: ("bob",)}, global_info="m")
    assert Decentralized().seen(turns.nodes[0], "alice") == ()
    assert Decentralized().done(turns.nodes[1], "alice") == ()


def test_nothing_is_seen_after_the_end():
    assert Centralized().seen(END, TEAM) == ()
    assert Decentralized().seen(END, "alice") == ()
    assert Centralized().done(ROOT, TEAM) == ()


def test_a_critic_of_tokens_reads_what_its_agent_reads_and_says_and_no_more():
    critic = Tokenwise()
    assert critic.readers(("alice", "bob")) == {"alice": ("alice",), "bob": ("bob",)}
    said = [a.tokens for a in (ROOT.observations["alice"], END.actions["alice"])]
    assert critic.row(TURN, "alice", list, limit=99).tokens == sum(said, ())
    turns = tree([(0, 1.0)], acting={0: ("bob",)})
    assert critic.row(turns, "alice", list, limit=99).tokens == ()


@pytest.mark.parametrize(
    ("critic", "reader"),
    [
        (Centralized(), TEAM),
        (Centralized(value="q"), TEAM),
        (Decentralized(), "alice"),
        (Tokenwise(), "alice"),
    ],
)
def test_numbers_at_marks_are_values_of_agents_and_come_back(critic, reader):
    turns = chain([0.0, 1.0], acting={0: ("alice",), 1: ("bob",)})
    row = critic.row(turns, reader, lambda text: [7, 8, 9], limit=99)
    numbers = tuple(float(number) for number in range(len(row.marks)))
    values = critic.values(turns, reader, row, numbers)
    assert set(values) == set(critic.readers(turns.agents)[reader])
    assert numbers and critic.numbers(turns, reader, row, values) == numbers


def test_a_value_of_several_agents_has_the_mean_of_their_targets():
    """The least squares over agents. An agent whose reward is not scored is left out."""
    critic, turns = Centralized(), chain([0.0, 1.0])
    row = critic.row(turns, TEAM, whole, limit=99)
    targets = {"alice": (0.1, nan, None), "bob": (0.3, 4.0, None)}
    assert critic.numbers(turns, TEAM, row, targets) == (0.2, 4.0)
    third = 1.1  # three times it, divided by three, is another number
    same = dict.fromkeys(("alice", "bob", "carol"), (third, nan, None))
    three = dataclasses.replace(turns, agents=tuple(same))
    assert critic.numbers(three, TEAM, row, same) == pytest.approx((third, nan), nan_ok=True, abs=0)


def test_the_target_of_a_central_value_leaves_the_payoff_of_an_opponent_out():
    """In a game of zero sum, the mean over both players would be 0."""
    critics = new_critics(Centralized(), {TEAM: None})
    (rows,) = critics.rows([chain([0.0, 1.0])], lambda _, agent: agent == "bob").values()
    (row,) = rows[0]
    targets = {"alice": (-1.0, -1.0, None), "bob": (1.0, 1.0, None)}
    assert Centralized().numbers(chain([0.0, 1.0]), TEAM, row, targets) == (1.0, 1.0)


def test_a_central_value_is_every_agents_whoever_acts():
    turns = chain([0.0, 1.0], acting={0: ("alice",), 1: ("bob",)})
    row = Centralized().row(turns, TEAM, whole, limit=99)
    values = Centralized().values(turns, TEAM, row, [3.0, 4.0])
    assert values == {"alice": (3.0, 4.0, None), "bob": (3.0, 4.0, None)}


def test_values_before_tokens_lie_inside_their_action():
    row = Tokenwise().row(TURN, "alice", list, limit=99)
    inside = len(END.actions["alice"].tokens) - 1
    own = Tokenwise().values(TURN, "alice", row, [float(n) for n in range(1 + inside)])["alice"]
    assert own.by_node == (0.0, None) and own.inside == (
        (),
        tuple(float(n + 1) for n in range(inside)),
    )


def test_a_token_critic_reads_after_an_observation_and_before_each_later_token_of_an_action():
    seen, acted = Observation("", (1, 2)), Action("", (7, 8, 9))
    nodes = (
        Node(index=0, parent=None, path=(), state=None, observations={"alice": seen}),
        Node(index=1, parent=0, path=(0,), state=None, observations={}, actions={"alice": acted}),
    )
    turns = Tree(item="", episode=0, agents=("alice",), nodes=nodes)
    row = Tokenwise().row(turns, "alice", list, limit=99)
    assert row.tokens == (1, 2, 7, 8, 9)
    assert row.marks == (Mark(0, 1), Mark(1, 2, inside=0), Mark(1, 3, inside=1))


def whole(text):
    """A tokenizer to which a text is one word."""
    return [text]


def test_every_piece_of_a_stream_says_whose_it_is_and_of_which_turn():
    turns = chain([0.0, 1.0], agents=("alice",), global_info="m")
    stream = text_stream(turns, Decentralized(), "alice", whole)
    assert stream.seen == (
        ("\n[alice 0]\nalice sees 0", "\n[global 0]\nm"),
        ("\n[alice 1]\nalice sees 1", "\n[global 1]\nm"),
        (),
    )
    # an action belongs to the turn in which it was taken
    assert stream.done == ((), ("\n[alice 0]\nalice makes 1",), ("\n[alice 1]\nalice makes 2",))


def test_a_value_is_read_wherever_one_of_the_readers_agents_is_about_to_act_or_has_acted():
    turns = chain([0.0, 1.0], acting={0: ("alice",), 1: ("bob",)})

    def reads(critic, reader):
        return text_stream(turns, critic, reader, whole).reads

    assert reads(Decentralized(), "bob") == (False, True, False)
    assert reads(Decentralized(value="q"), "bob") == (False, False, True)
    assert reads(Centralized(), TEAM) == (True, True, False)
    assert reads(Centralized(value="q"), TEAM) == (False, True, True)


class Outspoken(Decentralized):
    """Has something to say of every node."""

    def seen(self, node, reader):
        return ((reader, "still here"),)

    def done(self, node, reader):
        return ((reader, "moved"),)


def test_a_stream_holds_nothing_before_the_first_action_and_nothing_after_the_end():
    stream = text_stream(chain([1.0]), Outspoken(), "bob", whole)
    assert stream.seen == (("\n[bob 0]\nstill here",), ())
    assert stream.done == ((), ("\n[bob 0]\nmoved",))


def test_an_agent_without_values_is_scored_none_at_every_turn():
    """Of two agents with a value model each, bob neither sees nor does anything."""
    agents, values = ("alice", "bob"), SimpleNamespace(values=torch.tensor([5.0]))
    learner = SimpleNamespace(evaluate=lambda rows: [values for _ in rows])
    critics = new_critics(Decentralized(), dict.fromkeys(agents, learner))
    readers = critics.critic.readers(agents)
    manifest = SimpleNamespace(agents=agents, readers=readers, item_means={})
    critic = LoadedCritic(manifest=manifest, network=None, critics=critics)
    turn = {"observations": {"alice": "red?"}, "actions": {"alice": "yes"}}
    assert critic.score({"turns": [turn]}) == {"alice": [5.0], "bob": [None]}
