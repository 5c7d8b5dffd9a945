import re
from pathlib import Path

import numpy as np
import pytest
from dpomdp_files import RELAY, SMALL

import colearn.tasks
from colearn.errors import ConfigError
from colearn.exact.reader import parse_dpomdp, read_dpomdp

PROBLEMS = Path(colearn.tasks.__file__).parent / "dpomdp" / "problems"
THEIRS = Path(__file__).parents[3] / "shared" / "data" / "dpomdp" / "dectiger.dpomdp"


def with_line(number, text):
    """SMALL with one line replaced; an empty text keeps the line empty."""
    lines = SMALL.splitlines()
    lines[number - 1] = text
    return "\n".join(lines) + "\n"


def start_of(text):
    return parse_dpomdp(with_line(5, text), "small").start.tolist()


def test_names_and_counts_are_read_from_the_header():
    model = parse_dpomdp(SMALL, "small")
    assert model.agents == ("agent_1", "agent_2")
    assert model.states == ("dry", "wet")
    assert model.actions == (("stay", "go"), ("stay", "go"))
    assert model.observations == (("sun", "rain"), ("0", "1"))
    assert model.discount == 0.9


def test_later_entries_overwrite_earlier_ones():
    transition = parse_dpomdp(SMALL, "small").transition
    assert transition[:3].tolist() == [[[1, 0], [0, 1]]] * 3
    assert transition[3].tolist() == [[0.5, 0.5], [0.5, 0.5]]


def test_single_elements_and_uniform_rows_make_the_observations():
    observation = parse_dpomdp(SMALL, "small").observation
    assert observation[2].tolist() == [[0.25, 0.25, 0.25, 0.25], [0, 0, 0.5, 0.5]]


def test_rewards_that_are_not_set_are_zero():
    reward = parse_dpomdp(SMALL, "small").reward
    assert reward.shape == (4, 2, 2, 4)
    assert reward[3, 0].tolist() == [[3] * 4] * 2
    assert reward.sum() == 3 * 8


def test_rewards_without_next_state_and_observation_are_a_view():
    assert parse_dpomdp(SMALL, "small").reward.strides[2:] == (0, 0)


def test_a_reward_of_one_next_state_leaves_the_observations_a_view():
    reward = parse_dpomdp(SMALL + "R: 0 : wet : dry : * : 5\n", "small").reward
    assert reward.strides[2] > 0 and reward.strides[3] == 0
    assert reward[0, 1].tolist() == [[5] * 4, [0] * 4]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("start: 0.25 0.75", [0.25, 0.75]),
        ("start:\n0.25\n0.75", [0.25, 0.75]),
        ("start: uniform", [0.5, 0.5]),
        ("start:\nuniform", [0.5, 0.5]),
        ("start: wet", [0, 1]),
        ("start: 0", [1, 0]),
        ("start include: wet", [0, 1]),
        ("start include: 0 wet", [0.5, 0.5]),
        ("start exclude : wet", [1, 0]),
    ],
)
def test_every_form_of_start_is_read(text, expected):
    assert start_of(text) == expected


def test_a_start_of_numbers_within_the_tolerance_sums_to_one():
    assert sum(start_of("start: 0.3333333 0.6666666")) == 1


def test_named_agents_keep_their_names():
    model = parse_dpomdp(RELAY, "relay")
    assert model.agents == ("north", "mid", "south")
    assert model.action_shape == (2, 3, 1)
    assert model.observations == (("0", "1"), ("none", "parcel"), ("0",))


def test_excluded_states_by_name_and_index_are_no_start():
    assert parse_dpomdp(RELAY, "relay").start.tolist() == [0.5, 0.5, 0, 0]


def test_partial_wildcards_and_rows_over_lines_set_transitions():
    transition = parse_dpomdp(RELAY, "relay").transition
    away, mixed = [0, 1, 0, 0], [0, 0.25, 0.5, 0.25]
    assert transition[:, 0].tolist() == [[1, 0, 0, 0]] * 3 + [away] * 3
    assert transition[[1, 4], 1].tolist() == [mixed] * 2
    assert transition[[0, 2, 3, 5], 1].tolist() == [[0, 1, 0, 0]] * 4


def test_a_joint_index_is_row_major():
    transition = parse_dpomdp(RELAY, "relay").transition
    assert transition[:, 3].tolist() == [[0, 0, 0, 1]] * 5 + [[0.25] * 4]


def test_wildcards_in_joint_observations_set_each_of_them():
    observation = parse_dpomdp(RELAY, "relay").observation
    assert observation[:, 0].tolist() == [[0.25] * 4] * 6
    assert observation[:, 2].tolist() == [[1, 0, 0, 0]] * 6
    assert observation[2, 3].tolist() == [0, 0, 0, 1]


def test_costs_are_negated_in_every_form_of_reward():
    reward = parse_dpomdp(RELAY, "relay").reward
    assert reward[0].tolist() == np.full((4, 4, 4), -1.0).tolist()
    assert reward[2, 1, 1].tolist() == [-1, -1, -1, -20]
    assert reward[2, 3, 3].tolist() == [-1, -2, -3, -4]
    assert reward[2, 2].tolist() == [[-9] * 4, [-9] * 4, [-8] * 4, [0, 0, 0, 1]]
    assert reward[5].tolist() == np.full((4, 4, 4), -7.0).tolist()


def test_the_expected_reward_agrees_with_a_sum_by_hand():
    # keep shout in at-mid stays there; observations are equally likely, one of four costs 20.
    assert parse_dpomdp(RELAY, "relay").expected_reward[2, 1] == -(20 + 3) / 4


def test_windows_line_ends_and_a_byte_order_mark_change_nothing():
    text = "\ufeff" + RELAY.replace("\n", "\r\n")
    reward = parse_dpomdp(text, "relay").reward
    assert np.array_equal(reward, parse_dpomdp(RELAY, "relay").reward)


def test_a_matrix_of_numbers_and_a_row_are_read_by_rows():
    text = SMALL + "T: 0 : 0.25 0.75\n1 0\nT: 1 : wet : 0.125 0.875\n"
    transition = parse_dpomdp(text, "small").transition
    assert transition[0].tolist() == [[0.25, 0.75], [1, 0]]
    assert transition[1].tolist() == [[1, 0], [0.125, 0.875]]


def test_dec_tiger_holds_the_published_numbers():
    model = read_dpomdp(PROBLEMS / "dec_tiger.dpomdp")
    by_hand = [[-2, -2], [-101, 9], [9, -101], [-101, 9], [-50, 20]]
    by_hand += [[-100, -100], [9, -101], [-100, -100], [20, -50]]
    assert model.reward[:, :, 0, 0].tolist() == by_hand
    assert model.observation[0].tolist() == [
        [0.7225, 0.1275, 0.1275, 0.0225],
        [0.0225, 0.1275, 0.1275, 0.7225],
    ]
    assert np.all(model.transition[1:] == 0.5)
    assert np.all(model.observation[1:] == 0.25)


@pytest.mark.skipif(not THEIRS.exists(), reason="needs ../shared")
@pytest.mark.parametrize("array", ["start", "transition", "observation", "reward"])
def test_dec_tiger_equals_the_madp_file(array):
    ours, theirs = read_dpomdp(PROBLEMS / "dec_tiger.dpomdp"), read_dpomdp(THEIRS)
    assert np.array_equal(getattr(ours, array), getattr(theirs, array))


MALFORMED = {
    "empty": ("", 1, "agents: the file is empty"),
    "comments only": ("# nothing\n", 1, "agents: the file is empty"),
    "text before the first entry": ("hello\n" + SMALL, 1, "'hello' belongs to no entry"),
    "unknown entry": (with_line(12, "Z: * :"), 12, "Z: unknown entry; known:"),
    "misspelt entry": (with_line(4, "state: dry wet"), 4, "did you mean 'states'?"),
    "misspelt start": (with_line(5, "start inclde: wet"), 5, "did you mean 'start include'?"),
    "entry twice": (with_line(2, "agents: 2"), 2, "agents: given twice, first at line 1"),
    "entries out of order": (
        SMALL.replace("discount: 0.9\nvalues: reward\n", "values: reward\ndiscount: 0.9\n"),
        2,
        "values: comes before 'discount'",
    ),
    "missing entry": (with_line(3, ""), 4, "states: 'values' is missing before it"),
    "table before the header's end": (with_line(2, "T: * : identity"), 2, "T: 'discount' is miss"),
    "header only in part": ("agents: 2\ndiscount: 1\n", 2, "values: is missing"),
    "entry without a value": (with_line(4, "states:"), 4, "states: is empty"),
    "stray colon": (with_line(4, "states: dry : wet"), 4, "states: a ':' is out of place"),
    "no agents": (with_line(1, "agents: 0"), 1, "agents: 0 agents; give a count of 1 or more"),
    "too many agents": (with_line(1, "agents: 33"), 1, "33 agents are too many"),
    "discount above 1": (with_line(2, "discount: 1.5"), 2, "discount: must be one number from 0"),
    "discount in words": (with_line(2, "discount: high"), 2, "discount: 'high' is not a number"),
    "values of no kind": (with_line(3, "values: money"), 3, "'money' is out of place"),
    "state twice": (with_line(4, "states: dry dry"), 4, "the state 'dry' is named twice"),
    "agent twice": (with_line(1, "agents: a a"), 1, "the agent 'a' is named twice"),
    "action twice": (with_line(8, "go go"), 8, "the action 'go' is named twice"),
    "number as a name": (with_line(4, "states: dry 2"), 4, "'2' is not a valid name for one state"),
    "star as a name": (with_line(7, "* go"), 7, "'*' is not a valid name for one action"),
    "an agent without actions": (with_line(8, ""), 6, "actions: 1 lines for 2 agents"),
    "actions of one agent too many": (with_line(8, "stay go\n3"), 9, "3 lines for 2 agents"),
    "start of three numbers": (with_line(5, "start: 0.5 0.5 0"), 5, "3 numbers for 2 states"),
    "start off 1": (with_line(5, "start: 0.5 0.6"), 5, "start: the probabilities sum to 1.1"),
    "start below 0": (with_line(5, "start:\n-0.5 1.5"), 6, "start: '-0.5' is not a probability"),
    "start nowhere": (with_line(5, "start: dri"), 5, "unknown state 'dri'; did you mean 'dry'?"),
    "start from no state": (with_line(5, "start exclude: dry wet"), 5, "no state is left"),
    "start listed twice": (with_line(5, "start include: wet 1"), 5, "'1' is listed twice"),
    "unknown state": (with_line(18, "R: go go : dri : * : * : 3"), 18, "R: unknown state 'dri'"),
    "unknown action": (with_line(14, "T: go goo : uniform"), 14, "T: unknown action 'goo'"),
    "unknown observation": (
        with_line(16, "O: * : wet : fog 1 : 0.5"),
        16,
        "O: unknown observation 'fog'",
    ),
    "another agent's observation": (
        with_line(16, "O: * : wet : rain sun : 0.5"),
        16,
        "O: unknown observation 'sun'",
    ),
    "state out of range": (
        with_line(15, "O: * : 2 : uniform"),
        15,
        "no state 2; count from 0 to 1",
    ),
    "action out of range": (with_line(14, "T: 2 0 : uniform"), 14, "no action 2; count from"),
    "joint action out of range": (with_line(14, "T: 4 : uniform"), 14, "no joint action 4; count"),
    "too few actions": (with_line(14, "T: go : uniform"), 14, "1 actions for 2 agents"),
    "too many actions": (with_line(14, "T: go go go : uniform"), 14, "3 actions for 2 agents"),
    "two states": (with_line(15, "O: * : dry wet : uniform"), 15, "2 states between two colons"),
    "too many parts": (
        with_line(14, "T: go go : dry : wet : 1 : 1"),
        14,
        "T: 5 parts between colons",
    ),
    "too few parts": (with_line(18, "R: go go : 3"), 18, "R: 2 parts between colons"),
    "table without anything": (with_line(14, "T:"), 14, "T: 1 parts between colons"),
    "row too short": (with_line(15, "O: * : dry : 0.5 0.5"), 15, "2 numbers, expected 4"),
    "matrix too long": (
        with_line(14, "T: go go :\n1 0\n0 1\n0"),
        14,
        "5 numbers, expected a matrix of 2 rows of 2",
    ),
    "no number": (with_line(18, "R: go go : dry : * : * : lots"), 18, "R: 'lots' is not a number"),
    "nan": (with_line(18, "R: go go : dry : * : * : NaN"), 18, "'NaN' must be a finite number"),
    "infinite": (with_line(18, "R: go go : dry : * : * : -inf"), 18, "'-inf' must be a finite"),
    "beyond a float": (with_line(18, "R: go go : dry : * : * : 1e999"), 18, "'1e999' must be a"),
    "negative probability": (
        with_line(14, "T: go go :\n1 0\n-0.5 1.5"),
        16,
        "T: '-0.5' is not a probability",
    ),
    "identity of no square": (with_line(15, "O: * : identity"), 15, "needs a square matrix"),
    "row off 1": (
        with_line(14, "T: go stay :\n1 0\n0.5 0.4"),
        16,
        "T: the row of joint action 'go stay' and state 'wet' sums to 0.9; it must sum to 1",
    ),
    "row spoilt later": (
        SMALL + "O: stay go : wet : sun 0 : 0.5\n",
        19,
        "O: the row of joint action 'stay go' and next state 'wet' sums to 1.5",
    ),
    "row never set": (
        with_line(15, ""),
        18,
        "O: the row of joint action 'stay stay' and next state 'dry' was never set; add it",
    ),
    "too many states": (with_line(4, "states: 999999999999"), 4, "states are too many; the limit"),
    "too many actions for the memory": (with_line(7, "999999999"), 7, "actions are too many"),
    "too large a table": (
        with_line(4, "states: 5000"),
        9,
        "observations: states x states x joint actions x joint observations are 400000000",
    ),
}


@pytest.mark.parametrize("kind", MALFORMED)
def test_a_malformed_file_is_one_line_with_its_number_and_the_thing(kind):
    text, line, named = MALFORMED[kind]
    with pytest.raises(ConfigError) as caught:
        parse_dpomdp(text, "bad.dpomdp")
    message = str(caught.value)
    match = re.fullmatch(r"bad\.dpomdp:(\d+): (.+)", message)
    assert match is not None, message
    assert int(match[1]) == line and named in match[2], message


def test_a_missing_file_names_the_field(tmp_path):
    with pytest.raises(ConfigError, match=r"^task\.file: no file '.*none\.dpomdp'; give"):
        read_dpomdp(tmp_path / "none.dpomdp")


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(ConfigError, match=r"^model: cannot read '.*' \(Is a directory\)"):
        read_dpomdp(tmp_path, "model")


def test_bytes_that_are_no_text_are_named_with_their_line(tmp_path):
    path = tmp_path / "latin.dpomdp"
    path.write_bytes(b"agents: 2\n# caf\xe9\n")
    with pytest.raises(ConfigError, match=r"latin\.dpomdp:2: task\.file: is not UTF-8"):
        read_dpomdp(path)


def test_an_error_in_a_file_names_its_path(tmp_path):
    path = tmp_path / "bad.dpomdp"
    path.write_text(with_line(4, "states: dry dry"))
    with pytest.raises(ConfigError) as caught:
        read_dpomdp(path)
    assert str(caught.value).startswith(f"{path}:4: states: ")
