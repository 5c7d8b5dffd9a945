"""How a game of TextArena is made, shown and gone on from; and who is paid what."""

from __future__ import annotations

import random

import numpy as np
import pytest

from colearn.contract import joint_observations
from colearn.errors import DataNotHere, TaskError
from colearn.tasks.textarena import TextArena
from colearn.tasks.textarena import replay as replays

arena = pytest.importorskip("textarena")
from textarena.envs.registration import ENV_REGISTRY, EnvSpec  # noqa: E402
from textarena.envs.TicTacToe.env import TicTacToeEnv  # noqa: E402

BIDS = ("[bid: 1, 3]", "[bid: 2, 3]", "[call]")


def begun(task, seed=0):
    return task.reset(task.items("train")[0], np.random.default_rng(seed))


def said(task, state, *texts):
    """The last outcome after the players in turn have said these texts."""
    for text in texts:
        [agent] = joint_observations(task, state)
        outcome = task.step(state, {agent: text}, None)
        state = outcome.state
    return outcome


@pytest.fixture
def registered(monkeypatch):
    """Registers a form of tic-tac-toe for one test."""

    def add(form, *wrappers):
        spec = EnvSpec(id="Own-v0", entry_point=form, default_wrappers=list(wrappers))
        monkeypatch.setitem(ENV_REGISTRY, "Own-v0", spec)
        replays.position.cache_clear()
        replays._live._by_play.clear()
        return TextArena("Own-v0")

    yield add
    replays.position.cache_clear()


def test_a_setting_may_be_a_list():
    task = TextArena("Nim-v0", settings={"piles": [1, 2]}, words=("[0 1]",))
    state = begun(task)
    assert "pile 0: 1\n  pile 1: 2" in task.observe(state, "player_0")
    lost = said(task, state, "[1 2]", "[0 1]")
    assert lost.local_rewards == {"player_0": -1.0, "player_1": 1.0}


class Spends(TicTacToeEnv):
    """Uses up the list that it is made with."""

    def __init__(self, names=None):
        super().__init__()
        self.first = (names or ["nobody"]).pop()

    def reset(self, num_players, seed=None):
        super().reset(num_players, seed)
        self.state.add_observation(f"{self.first} begins", arena.ObservationType.GAME_MESSAGE)


def test_a_game_that_uses_up_a_setting_is_made_from_all_of_it_again(registered):
    registered(Spends)
    task = TextArena("Own-v0", settings={"names": ["ann"]})
    for seed in (0, 1):
        assert "ann begins" in task.observe(begun(task, seed), "player_0")


class Lacks(TicTacToeEnv):
    """Reads data that were not downloaded, as NLTK tells of it."""

    def __init__(self):
        raise LookupError("\nResource 'words' not found.\n  >>> nltk.download('words')\n  ...")


def test_a_game_without_its_data_is_one_line_with_the_remedy(registered):
    line = (
        "^task.env: 'Own-v0' reads NLTK's 'words', which is not on this machine; run: python -m "
        "nltk.downloader words$"
    )
    with pytest.raises(DataNotHere, match=line):
        registered(Lacks)


class Draws(Spends):
    """Draws from the global generators when it is made."""

    def __init__(self):
        super().__init__([f"{random.random()} {np.random.random()}"])


def test_what_a_game_draws_when_it_is_made_follows_from_its_seed(registered):
    task = registered(Draws)
    shown = []
    for seed in (5, 5, 6):
        replays.position.cache_clear()
        replays._live._by_play.clear()
        random.seed(len(shown))
        shown.append(replays.position(task.source, seed, ()).shown[0])
    assert shown[0] == shown[1] != shown[2]


class DrawsFromTheSystem(TicTacToeEnv):
    """Shows, after a move, what it has drawn from the system's generator."""

    def step(self, action):
        self.state.add_observation(
            str(random.SystemRandom().random()), arena.ObservationType.GAME_MESSAGE
        )
        return super().step(action)


def test_a_game_that_does_not_follow_from_its_seed_is_refused_at_the_first_replay(registered):
    task = registered(DrawsFromTheSystem)
    state = begun(task)
    said(task, state, "[4]")
    replays.position.cache_clear()
    replays._live._by_play.clear()
    with pytest.raises(TaskError, match=r"^task\.env: '.*' goes on differently .*seed and actions"):
        said(task, state, "[4]")


class Strips(arena.ActionWrapper):
    def action(self, action):
        return action.strip("()")


class Brackets(arena.ActionWrapper):
    def action(self, action):
        return f"[{action}]"


def test_the_outer_form_of_an_action_is_applied_first(registered):
    task = registered(TicTacToeEnv, Brackets, Strips)
    after = said(task, begun(task), "(4)").state
    assert "placed their symbol (O) in cell 4" in task.observe(after, "player_1")


def test_a_player_reads_what_the_others_said_and_not_what_it_said_itself():
    task = TextArena("IteratedPrisonersDilemma-v0")
    state = said(task, begun(task), "I am Ann.", "I am Ben.").state
    shown = task.observe(state, "player_0")
    assert "[Player 1] I am Ben." in shown and "I am Ann." not in shown


def test_an_action_that_the_game_announces_as_its_own_is_the_acting_players(registered):
    class Announces(TicTacToeEnv):
        def step(self, action):
            self.state.add_observation(action, arena.ObservationType.PLAYER_ACTION)
            return super().step(action)

    task = registered(Announces)
    after = said(task, begun(task), "[4]").state
    shown = task.observe(after, "player_1")
    assert shown.count("[Player 0] [4]") == 2 and "[GAME] [4]" not in shown
    shown = task.observe(said(task, after, "[5]").state, "player_0")
    assert "[4]\n" not in shown and shown.count("[Player 1] [5]") == 2


def test_a_player_does_not_read_its_own_move_as_the_games_words():
    task = TextArena("TowerOfHanoi-v0", players=1)
    after = said(task, begun(task), "[A C]").state
    assert task.observe(after, "player_0").startswith("[GAME] You moved disk 1 from A to C.")


def test_a_player_is_called_by_the_name_that_the_game_gives_it(registered):
    class Named(TicTacToeEnv):
        def reset(self, num_players, seed=None):
            super().reset(num_players, seed)
            # a new mapping: the one that is there is shared by all games
            self.state.role_mapping = self.state.role_mapping | {0: "Ann", 1: "Ben"}

    task = registered(Named)
    after = said(task, begun(task), "[4]").state
    assert task.observe(after, "player_1").startswith("[GAME] You are Player 1")
    assert "[Ann] [4]" in task.observe(after, "player_1")


def test_an_episode_is_played_in_one_game(monkeypatch):
    made = []

    class Counted(replays._Game):
        def __init__(self, *source):
            made.append(source)
            super().__init__(*source)

    task = TextArena("TicTacToe-v0")
    replays.position.cache_clear()
    replays._live._by_play.clear()
    monkeypatch.setattr(replays, "_Game", Counted)
    assert said(task, begun(task), "[0]", "[4]", "[1]", "[5]", "[2]").done
    assert len(made) == 1


class Shares(TicTacToeEnv):
    """Pays both players."""

    def close(self):
        return {0: 1.0, 1: 0.5}, {0: {"invalid_move": False}, 1: {"invalid_move": True}}


def test_players_are_paid_alone_or_as_a_team_the_mean(registered):
    task = registered(Shares)
    outcome = said(task, begun(task), "[0]", "[4]", "[1]", "[5]", "[2]")
    assert (outcome.reward, outcome.local_rewards) == (0.0, {"player_0": 1.0, "player_1": 0.5})
    assert task.pays == {"local"} and task.metrics(outcome.state)["invalid"] == 1.0
    team = TextArena("Own-v0", team=True)
    outcome = said(team, begun(team), "[0]", "[4]", "[1]", "[5]", "[2]")
    assert (outcome.done, outcome.reward, outcome.local_rewards) == (True, 0.75, {})
    assert team.pays == {"team"}


def test_words_are_drawn_from_all_that_are_given():
    task = TextArena("LiarsDice-v0", players=3, words=BIDS)
    state, rng = begun(task), np.random.default_rng(0)
    drawn = {task.legal_action(state, "player_0", rng) for _ in range(60)}
    assert drawn == set(BIDS)


def test_of_the_actions_that_a_game_lists_those_of_its_last_message_are_legal():
    task = TextArena("TicTacToe-v0")
    after = said(task, begun(task), "[4]").state
    rng = np.random.default_rng(0)
    drawn = {task.legal_action(after, "player_1", rng) for _ in range(200)}
    assert drawn == {f"[{cell}]" for cell in range(9) if cell != 4}


def test_without_words_and_a_list_no_action_is_known():
    task = TextArena("GuessTheNumber-v0", players=1)
    assert task.legal_action(begun(task), "player_0", np.random.default_rng(0)) is None


class FailsOnNumbers(TicTacToeEnv):
    """As several games of TextArena: an unexpected text is an exception."""

    def step(self, action):
        int(action.strip("[]"))
        return super().step(action)


def test_a_text_at_which_a_game_raises_ends_an_episode_that_is_not_scored(registered, capsys):
    task = registered(FailsOnNumbers)
    outcome = said(task, begun(task), "[0]", "[the middle]")
    assert outcome.done
    assert outcome.local_rewards == {"player_0": None, "player_1": None}
    shown = task.metrics(outcome.state)
    assert shown["failed"] == 1.0 and shown["payoff_player_0"] is None
    told = capsys.readouterr().err
    assert told.startswith("note: task.env: 'Own-v0' failed on an action: ValueError: invalid lit")
    assert joint_observations(task, outcome.state) == {}


def test_a_game_of_textarena_that_pays_a_message_does_not_end_the_run():
    """Its reward for an invalid action is the text of the reason, in TextArena 0.7.4."""
    task = TextArena("Countdown-v0", players=1)
    outcome = said(task, begun(task), "no action at all", "none again")
    assert outcome.done
