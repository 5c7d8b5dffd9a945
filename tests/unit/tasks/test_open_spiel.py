"""OpenSpiel's games as text: payoffs, prompts, privacy, invalid replies."""

from __future__ import annotations

import re

import numpy as np
import pytest

from colearn.contract import joint_observations
from colearn.contract.testing import check_task
from colearn.contract.types import Observation
from colearn.errors import ConfigError
from colearn.tasks.open_spiel import Game, GameState, OpenSpiel
from colearn.tasks.open_spiel.games import load, position
from colearn.tasks.open_spiel.phrasings import phrasing
from colearn.tasks.open_spiel.reply import read

PAPER = (
    "tic_tac_toe",
    "kuhn_poker",
    "mini_hanabi",
    "connect_four",
    "leduc_poker",
    "simple_hanabi",
)
OTHER = ("matrix_rps", "goofspiel(num_cards=3)", "kuhn_poker(players=3)", "liars_dice")
R1, R2, Y1, Y2 = range(4)
DISCARD = 0


def play(task, rng, item=None):
    """One random legal game: its states and outcomes."""
    state = task.reset(item or task.items("train")[0], rng)
    states, outcomes = [state], []
    while not state.over:
        said = {a: task.legal_action(state, a, rng) for a in joint_observations(task, state)}
        outcomes.append(task.step(state, said, rng))
        state = outcomes[-1].state
        states.append(state)
    return states, outcomes


def at(name, *moves):
    """The state of a game after OpenSpiel's actions."""
    return GameState(game=Game(name), moves=moves, payoffs=(0.0, 0.0), faults=("", ""))


@pytest.mark.parametrize(
    ("game", "form"),
    [
        *((game, "full") for game in PAPER),
        *((game, "compact") for game in (*PAPER[:4], *OTHER[:2])),
    ],
)
def test_every_game_passes_the_check(game, form):
    task = OpenSpiel(games=game, prompt=form)
    check_task(task, actions=task.legal_action, seeds=(0,), episodes=1)


@pytest.mark.parametrize("game", (*PAPER, *OTHER))
def test_the_sum_of_a_players_rewards_is_what_openspiel_returns(game):
    task = OpenSpiel(games=game, prompt="compact")
    for seed in range(20):
        states, outcomes = play(task, np.random.default_rng(seed))
        alone = load(game).new_initial_state()
        for move in states[-1].moves:
            alone.apply_actions(list(move)) if isinstance(move, tuple) else alone.apply_action(move)
        assert alone.is_terminal()
        for agent, expected in zip(task.agents, alone.returns(), strict=True):
            assert sum(o.local_rewards[agent] for o in outcomes) == pytest.approx(expected)
            assert task.metrics(states[-1])[f"payoff_{agent}"] == pytest.approx(expected)


SUITED = re.compile(r"(Private|Public): (\d)")


def _rank(match):
    """Leduc's two cards of a rank are worth the same, and the paper's prompts do not tell them
    apart."""
    return f"{match[1]}: {int(match[2]) // 2}"


@pytest.mark.parametrize("form", ["full", "compact"])
@pytest.mark.parametrize("game", ["kuhn_poker", "leduc_poker", "kuhn_poker(players=3)"])
def test_a_private_history_is_an_information_state_and_no_more(game, form):
    """In every position of the game: what a player has read and answered differs if and only if
    OpenSpiel's information state does. A hidden card in a prompt, or a move left out, breaks it."""
    said = phrasing(game, form)
    keys: dict[tuple, set[str]] = {}
    histories: dict[tuple, set[tuple]] = {}
    pending = [(load(game).new_initial_state(), ((),) * load(game).num_players())]
    while pending:
        state, seen = pending.pop()
        if state.is_terminal():
            continue
        player = state.current_player()
        if player >= 0:
            now = (*seen[player], said.observation(state, player))
            key = SUITED.sub(_rank, state.information_state_string(player))
            keys.setdefault((player, now), set()).add(key)
            histories.setdefault((player, key), set()).add(now)
        for action in state.legal_actions():
            after = seen
            if player >= 0:
                own = (*now, said.word(state, player, action))
                after = (*seen[:player], own, *seen[player + 1 :])
            pending.append((state.child(action), after))
    assert {len(states) for states in keys.values()} == {1}
    assert {len(states) for states in histories.values()} == {1}


@pytest.mark.parametrize("form", ["full", "compact"])
@pytest.mark.parametrize("own", [(Y1, Y2, R2), (R2, R1, Y2), (R2, Y2, Y1)])
def test_a_hanabi_player_reads_the_same_whatever_its_own_cards_are(own, form):
    """Before and after a turn in which nothing is said about its hand: it reveals red cards, and
    player_1 discards the first of its own and draws another."""
    other = (R1, Y1, R1)
    said = phrasing("mini_hanabi", form)
    root = position("mini_hanabi", (R1, Y2, Y1, *other))
    [hint] = [a for a in root.legal_actions() if "color R" in root.action_to_string(0, a)]
    for moves in ((), (hint, DISCARD, Y1)):
        one, two = (
            position("mini_hanabi", (*cards, *other, *moves)) for cards in ((R1, Y2, Y1), own)
        )
        assert one.current_player() == two.current_player() == 0
        assert said.observation(one, 0) == said.observation(two, 0)


def test_a_hanabi_player_reads_the_other_hand():
    said = phrasing("mini_hanabi", "compact")
    one = said.observation(position("mini_hanabi", (R1, R1, R1, Y1, Y1, Y1)), 0)
    two = said.observation(position("mini_hanabi", (R1, R1, R1, Y1, Y1, Y2)), 0)
    assert one != two


def test_a_critic_reads_both_hands():
    task = OpenSpiel(games="kuhn_poker")
    assert task.privileged_info(at("kuhn_poker", 2, 0)) == "player_0 card K player_1 card J"
    assert task.global_info(at("kuhn_poker", 2, 0)) == "turn 1"


def test_the_paper_prompts_end_with_state_and_legal_actions():
    task = OpenSpiel(games="kuhn_poker")
    text = task.observe(at("kuhn_poker", 0, 1), "player_0")
    assert text.startswith("You are an AI agent that makes optimal decisions to win in the game")
    assert text.endswith(
        "GAME STATE:\n"
        "1. Blind ante: both player_0 and player_1 place 1 chip into the pot.\n"
        "2. Deal: your card is Jack (J).\n\n"
        "LEGAL ACTIONS:\n<PASS>, <BET>."
    )


def test_the_rules_are_told_once():
    task = OpenSpiel(games="kuhn_poker")
    text = task.observe(at("kuhn_poker", 0, 1, 0, 1), "player_0")
    assert text.startswith("Information of Turn-2:") and "GAME RULES" not in text
    assert "3. player_0 chooses <PASS>.\n4. player_1 chooses <BET>." in text


def test_a_compact_prompt_says_what_is_new():
    said = phrasing("kuhn_poker", "compact")
    assert said.observation(position("kuhn_poker", (0, 1)), 0) == (
        "kuhn_poker player_0 card J say pass or bet"
    )
    assert said.observation(position("kuhn_poker", (0, 1, 0, 1)), 0) == (
        "player_1 bet say pass or bet"
    )


def test_a_compact_board_says_whose_cells_are_whose_and_what_completes_a_line():
    """X in both upper corners on the left, O in the middle: X wins at the upper right, and stops
    nothing; O, to move instead, would stop it there."""
    said = phrasing("tic_tac_toe", "compact")
    assert said.observation(position("tic_tac_toe", (0, 4, 1, 8)), 0) == (
        "tic_tac_toe player_0 own_r0c0 own_r0c1 wins_r0c2 r1c0 other_r1c1 r1c2 r2c0 r2c1 other_r2c2"
    )
    assert said.observation(position("tic_tac_toe", (0, 4, 1)), 1) == (
        "tic_tac_toe player_1 other_r0c0 other_r0c1 stops_r0c2 r1c0 own_r1c1 r1c2 r2c0 r2c1 r2c2"
    )


def test_a_line_of_ones_own_comes_before_the_others():
    """X holds 0 and 1, O holds 4 and 6: the cell 2 completes both, and is said to win for each."""
    said = phrasing("tic_tac_toe", "compact")
    for moves, player in (((0, 4, 1, 6), 0), ((0, 4, 1, 6, 8), 1)):
        assert "wins_r0c2" in said.observation(position("tic_tac_toe", moves), player)


def test_a_compact_board_stands_in_a_context_of_its_own():
    seen = OpenSpiel(games="tic_tac_toe", prompt="compact").observe(
        at("tic_tac_toe", 0), "player_1"
    )
    assert isinstance(seen, Observation) and seen.fresh
    assert isinstance(OpenSpiel(games="tic_tac_toe").observe(at("tic_tac_toe"), "player_0"), str)


WORDS = {"<PASS>": 0, "<BET>": 1}


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("<answer><BET></answer>", (1, "")),
        ("<think>A bluff?</think> <answer> <PASS> </answer>\n", (0, "")),
        ("<answer><FOLD></answer>", (None, "illegal")),
        ("<answer><BET></answer> That is my choice.", (None, "malformed")),
        ("<answer><PASS></answer> or <answer><BET></answer>", (None, "malformed")),
        ("<BET>", (None, "malformed")),
        ("<answer><BET>", (None, "malformed")),
    ],
)
def test_a_tagged_reply_is_read_or_refused(reply, expected):
    assert read(reply, WORDS, tagged=True) == expected


def test_a_compact_reply_is_the_word_alone():
    assert read(" bet\n", {"pass": 0, "bet": 1}, tagged=False) == (1, "")
    assert read("I bet", {"pass": 0, "bet": 1}, tagged=False) == (None, "illegal")


@pytest.mark.parametrize(
    ("game", "moves", "agent", "forfeit"),
    [
        ("tic_tac_toe", (4, 0), "player_0", 1.0),
        ("kuhn_poker", (0, 1), "player_0", 1.0),
        ("kuhn_poker", (0, 1, 1), "player_1", 1.0),
        ("leduc_poker", (0, 5, 2, 2), "player_0", 3.0),
    ],
    ids=["the worst payoff", "the ante", "its own chips only", "ante and raise"],
)
def test_an_invalid_reply_forfeits_and_ends_the_game(game, moves, agent, forfeit):
    task = OpenSpiel(games=game, prompt="compact")
    outcome = task.step(at(game, *moves), {agent: "I pass on this"}, np.random.default_rng(0))
    [other] = set(task.agents) - {agent}
    assert outcome.done and task.observe(outcome.state, other) is None
    assert outcome.local_rewards == {agent: -forfeit - 10.0, other: 0.0}
    assert outcome.reward == 0.0
    assert task.metrics(outcome.state)["illegal"] == 1.0


def test_an_invalid_reply_in_hanabi_costs_the_team_its_points():
    task = OpenSpiel(games="mini_hanabi", prompt="compact")
    rng = np.random.default_rng(0)
    dealt = GameState(
        game=Game("mini_hanabi"),
        moves=(R1, Y1, R2, Y2, R1, Y1),
        payoffs=(0.0, 0.0),
        faults=("", ""),
    )
    played = task.step(dealt, {"player_0": "play_0"}, rng)
    assert (played.reward, played.local_rewards) == (1.0, {"player_0": 1.0, "player_1": 1.0})
    lost = task.step(played.state, {"player_1": "play_9"}, rng)
    assert (lost.reward, lost.local_rewards) == (-1.0, {"player_0": -1.0, "player_1": -11.0})
    assert task.metrics(lost.state)["payoff_player_0"] == 0.0


def test_the_span_scales_the_payoffs_and_nothing_else():
    """The paper: Tic-Tac-Toe by 2, Kuhn poker and mini Hanabi as they are, to a maximum of 4 from
    the worst payoff to the best."""
    games = ("tic_tac_toe", "kuhn_poker", "mini_hanabi")
    task = OpenSpiel(games=games, payoff_span=4.0, valid_reward=0.05, prompt="compact")
    assert [task._scales[name] for name in games] == [2.0, 1.0, 1.0]
    won = task.step(at("tic_tac_toe", 0, 3, 1, 4), {"player_0": "r0c2"}, np.random.default_rng(0))
    assert won.local_rewards == {"player_0": 2.05, "player_1": -2.0}
    assert task.metrics(won.state)["payoff_player_0"] == 1.0


def test_cooperative_games_pay_the_team_competitive_ones_the_players():
    assert OpenSpiel(games="mini_hanabi").pays == {"team", "local"}
    assert OpenSpiel(games="kuhn_poker").pays == {"local"}
    assert OpenSpiel().pays == {"local"}


def test_several_games_are_one_item_each():
    """Shuffled passes over the items then keep them balanced."""
    task = OpenSpiel(games=("kuhn_poker", "tic_tac_toe"), test_games="leduc_poker")
    assert [item.name for item in task.items("train")] == ["kuhn_poker", "tic_tac_toe"]
    assert [item.name for item in task.items("test")] == ["leduc_poker"]


def test_all_move_at_once_where_the_game_has_it_so():
    task = OpenSpiel(games="matrix_rps", prompt="compact")
    state = task.reset(task.items("train")[0], np.random.default_rng(0))
    said = {"player_0": "Rock", "player_1": "Scissors"}
    assert joint_observations(task, state).keys() == said.keys()
    outcome = task.step(state, said, np.random.default_rng(0))
    assert outcome.done and outcome.local_rewards == {"player_0": 1.0, "player_1": -1.0}


def test_uniform_play_is_as_far_from_equilibrium_as_openspiel_says():
    task = OpenSpiel(games="kuhn_poker", prompt="compact")
    uniform = {a: {d.key: (0.5, 0.5) for d in task.decisions(a)} for a in task.agents}
    assert task.judge(uniform)["nash_conv"] == pytest.approx(11 / 12)


def test_kuhns_equilibrium_has_no_distance_and_the_known_value():
    """alpha = 1/3: the Jack bets with 1/3, the King always (Kuhn 1950); worth -1/18."""
    third = 1 / 3
    bets = {"0": third, "1": 0.0, "2": 1.0, "0pb": 0.0, "1pb": 2 / 3, "2pb": 1.0}
    answers = {"0p": third, "1p": 0.0, "2p": 1.0, "0b": 0.0, "1b": third, "2b": 1.0}
    task = OpenSpiel(games="kuhn_poker")
    metrics = task.judge(
        {
            "player_0": {key: (1 - bet, bet) for key, bet in bets.items()},
            "player_1": {key: (1 - bet, bet) for key, bet in answers.items()},
        }
    )
    assert metrics["nash_conv"] == pytest.approx(0.0, abs=1e-12)
    assert metrics["value_player_0"] == pytest.approx(-1 / 18)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"games": "tick_tack_toe"}, "task.games: no game 'tick_tack_toe'; did you mean"),
        ({"games": ()}, "task.games: must name one game or several"),
        ({"games": ("kuhn_poker", "kuhn_poker")}, "task.games: names a game twice"),
        (
            {"games": ("kuhn_poker", "kuhn_poker(players=3)")},
            r"task.games: games for \[2, 3\] players in one task",
        ),
        ({"games": "kuhn_poker(seats=3)"}, "task.games: 'kuhn_poker.seats=3.': "),
        ({"payoff_span": 0.0}, "task.payoff_span: must be a number above 0"),
        ({"valid_reward": -1.0}, "task.valid_reward: must be a number of 0 or more"),
    ],
)
def test_a_bad_setting_is_one_line_with_its_name(settings, message):
    with pytest.raises(ConfigError, match=message) as error:
        OpenSpiel(**settings)
    assert "\n" not in str(error.value)


def test_several_games_are_not_written_out():
    with pytest.raises(ConfigError, match=r"evaluation\.exact: needs one game"):
        OpenSpiel().decisions("player_0")


def test_the_picture_of_a_board_has_a_stone_for_each_move():
    task = OpenSpiel(games="tic_tac_toe")
    [panel] = task.picture(at("tic_tac_toe", 4, 0, 8)).panels
    assert {spot: cell.kind for spot, cell in panel.cells.items()} == {
        (1, 1): "X",
        (0, 0): "O",
        (2, 2): "X",
    }


def test_the_picture_of_hanabi_shows_both_hands_to_those_who_watch():
    task = OpenSpiel(games="mini_hanabi")
    panels = task.picture(at("mini_hanabi", R1, Y1, R2, Y2, R1, Y1)).panels
    assert [len(panel.cells) for panel in panels] == [0, 3, 3]
    assert panels[2].cells[(0, 0)].kind == "Y"


def test_a_game_is_as_long_as_openspiel_says():
    task = OpenSpiel(games=PAPER[:3], test_games="connect_four")
    assert [task.horizon_of(game) for game in task.items("train")] == [9, 3, 25]
    assert [task.horizon_of(game) for game in task.items("test")] == [task.horizon] == [42]


@pytest.mark.parametrize(
    ("name", "deck"), [("hanabi", 50), ("hanabi(colors=2)", 20), ("hanabi(ranks=2)", 20)]
)
def test_hanabis_rules_state_the_parameters_that_a_config_leaves_out(name, deck):
    task = OpenSpiel(games=name)
    state = task.reset(task.items("train")[0], np.random.default_rng(0))
    theirs = task.render(state)  # OpenSpiel's words for the start
    lives, hints, left = (
        int(theirs.partition(word)[2].split()[0])
        for word in ("Life tokens:", "Info tokens:", "Deck size:")
    )
    rules = task.observe(state, "player_0")
    text = rules if isinstance(rules, str) else rules.text
    assert f"There are {hints} information tokens and {lives} life tokens" in text
    held = (deck - left) // 2
    assert f"Each player holds {held} cards" in text and f"for a total of {deck} cards" in text
    task.picture(state)
