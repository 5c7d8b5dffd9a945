"""OpenSpiel's games as text: one task with one or several games, and a payoff per player."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from colearn.contract import Decision, DecPOMDP, EnumeratedGame, Headline
from colearn.contract.picture import Picture
from colearn.contract.types import Observation, Outcome
from colearn.errors import ConfigError

from ..checks import check_split
from .exact import Policy, all_decisions, equilibrium_distance
from .games import Game, Move, after_chance, cooperative, joined, load, movers, position
from .phrasings import Form, draw, phrasing, revealed
from .reply import Fault, read
from .settings import check_settings, chosen_games

TRAINED = ("tic_tac_toe", "kuhn_poker", "mini_hanabi")
"""The paper's training games (MARSHAL, section 3.3)."""
_VALID: Fault = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GameState:
    """A position, stored as the moves that led to it, and the payoffs so far."""

    game: Game
    moves: tuple[Move, ...] = ()
    """OpenSpiel's actions since the start, including those of chance."""
    payoffs: tuple[float, ...]
    """The game's own payoffs so far by player, unscaled, including forfeits for invalid replies."""
    faults: tuple[Fault, ...]
    """The fault of each player; '' for a player whose replies were all valid."""
    turns: int = 0
    """Joint actions so far."""

    @property
    def over(self) -> bool:
        """Whether the game has ended or a reply was not valid."""
        return any(self.faults) or bool(position(self.game.name, self.moves).is_terminal())


class OpenSpiel(DecPOMDP[Game, GameState]):
    """Games of OpenSpiel in words; agents are `player_0`, `player_1`, ... in the game's order.

    At its first turn, a player reads the rules and its situation; at later turns, it reads only new
    information. The player answers with a legal action. Only the players to move get an
    observation; if all players move at the same time, all of them get one. Chance outcomes are
    drawn from the episode's rng. An episode is one complete game.

    Each player's payoff is in `Outcome.local_rewards`, step by step, as in OpenSpiel. If all
    players are paid the same (Hanabi), the payoff is also the team's reward. Three settings change
    the payoffs (MARSHAL, section 3.4):

    - `payoff_span`: the difference between a game's best and worst result after scaling; None
      leaves the payoffs unchanged. The paper's value of 4 doubles the payoffs of Tic-Tac-Toe and
      keeps the payoffs of Kuhn poker and mini Hanabi.
    - `valid_reward`: bonus for each valid reply, 0 by default (the paper: 0.05).
    - `invalid_penalty`: penalty for an invalid reply, 10 by default; an invalid reply ends the
      game. The player also forfeits: in poker, it loses its chips in the pot; in Hanabi, the team
      loses the points earned so far; in other games, the player gets the game's worst payoff. The
      other players receive no further payoff.

      The reward for short replies (Eq. 4) counts tokens, which a task does not see. The credit
    `concise` (`algorithm.credit`) implements this reward.

    Settings:

    - `games`: one or several names of OpenSpiel's games, `mini_hanabi` or `simple_hanabi`,
      optionally with parameters such as `kuhn_poker(players=3)`. All games must have the same
      number of players. Each pass over the items contains every game equally often. `test_games`:
      the games of the test split; by default the same as `games`.
    - `prompt`: 'full', the prompts of the paper's appendix I for its six games and OpenSpiel's own
      strings for others; a reply ends with `<answer>...</answer>`. 'compact', few words for small
      models; the reply is only the action.

    The paper leaves the following choices open: how prompts list later turns of the card games,
    that Hanabi's players read the other player's last moves, and the forfeits, which implement the
    'immediate loss' of the paper's prompts.

    Metrics by player: `payoff_player_0`, ..., the game's own payoffs, forfeits included. Metrics of
    the episode: `malformed` and `illegal`, each 1 if a reply of this kind ended the game.

    Errors: ConfigError from the constructor, one line that names the setting; MissingExtra without
    OpenSpiel.
    """

    exact_headline = Headline("nash_conv", "lower")

    def __init__(
        self,
        *,
        games: str | Sequence[str] = TRAINED,
        test_games: str | Sequence[str] | None = None,
        prompt: Form = "full",
        payoff_span: float | None = None,
        valid_reward: float = 0.0,
        invalid_penalty: float = 10.0,
    ) -> None:
        check_settings(prompt, payoff_span, valid_reward, invalid_penalty)
        train = chosen_games("games", games)
        test = train if test_games is None else chosen_games("test_games", test_games)
        loaded = {name: load(name) for name in (*train, *test)}
        players = {game.num_players() for game in loaded.values()}
        if len(players) > 1:
            raise ConfigError(
                f"task.games: games for {sorted(players)} players in one task; choose games for "
                "the same number"
            )
        self.agents = tuple(f"player_{number}" for number in range(players.pop()))
        self._lengths = {name: int(game.max_game_length()) for name, game in loaded.items()}
        self.horizon = max(self._lengths.values())
        self.prompt = prompt
        self.payoff_span = payoff_span
        self.valid_reward, self.invalid_penalty = float(valid_reward), float(invalid_penalty)
        together = all(map(cooperative, loaded.values()))
        self.pays = frozenset({"team", "local"}) if together else frozenset({"local"})
        self._items = {"train": tuple(map(Game, train)), "test": tuple(map(Game, test))}
        self._scales = {name: _scale(game, payoff_span) for name, game in loaded.items()}
        self._shared = {name: cooperative(game) for name, game in loaded.items()}

    def items(self, split: str) -> Sequence[Game]:
        """The games of 'train' or 'test'."""
        check_split(split)
        return self._items[split]

    def horizon_of(self, item: Game) -> int:
        """The game's maximum length."""
        return self._lengths[item.name]

    def reset(self, item: Game, rng: np.random.Generator) -> GameState:
        """The first position at which a player moves."""
        moves = after_chance(item.name, (), rng)
        payoffs = tuple(map(float, position(item.name, moves).returns()))
        return GameState(
            game=item, moves=moves, payoffs=payoffs, faults=(_VALID,) * len(self.agents)
        )

    def observe(self, state: GameState, agent: str) -> str | Observation | None:
        """The text that the player to move reads; None for the other players and after the end."""
        seat = self.agents.index(agent)
        at = position(state.game.name, state.moves)
        if state.over or seat not in movers(at):
            return None
        text = _shown(state.game.name, self.prompt, state.moves, seat)
        full = phrasing(state.game.name, self.prompt).whole
        return Observation(text, fresh=True) if full else text

    def step(
        self, state: GameState, actions: Mapping[str, str], rng: np.random.Generator
    ) -> Outcome[GameState]:
        """Make the move, then chance's moves, or end the game if a reply is not valid."""
        name = state.game.name
        at = position(name, state.moves)
        chosen: dict[int, int] = {}
        faults = list(state.faults)
        for seat in movers(at):
            words = _words(name, self.prompt, state.moves, seat)
            action, fault = read(actions[self.agents[seat]], words, tagged=self.prompt == "full")
            faults[seat] = fault
            if action is not None:
                chosen[seat] = action
        if any(faults):
            paid = self._forfeit(state, faults)
            after = replace(state, faults=tuple(faults))
        else:
            moves = after_chance(name, (*state.moves, joined(at, chosen)), rng)
            returns = position(name, moves).returns()
            paid = tuple(float(r) - p for r, p in zip(returns, state.payoffs, strict=True))
            after = replace(state, moves=moves)
        total = tuple(p + q for p, q in zip(state.payoffs, paid, strict=True))
        after = replace(after, payoffs=total, turns=state.turns + 1)
        scale = self._scales[name]
        rewards = [scale * p for p in paid]
        for seat in movers(at):
            rewards[seat] += -self.invalid_penalty if faults[seat] else self.valid_reward
        return Outcome(
            state=after,
            reward=scale * paid[0] if self._shared[name] else 0.0,
            done=after.over,
            local_rewards=dict(zip(self.agents, rewards, strict=True)),
        )

    def metrics(self, state: GameState) -> Mapping[str, float]:
        """Returns `payoff_PLAYER` (the game's own payoff), and `malformed` and `illegal` (0 or
        1)."""
        paid = zip(self.agents, state.payoffs, strict=True)
        return {
            **{f"payoff_{agent}": payoff for agent, payoff in paid},
            "malformed": float("malformed" in state.faults),
            "illegal": float("illegal" in state.faults),
        }

    def global_info(self, state: GameState) -> str:
        """m_t: the turn, from 1. Rewards differ by player, so the text contains none."""
        return f"turn {min(state.turns + 1, self.horizon)}"

    def privileged_info(self, state: GameState) -> str:
        """The hidden information, such as both hands."""
        return _revealed(state.game.name, state.moves)

    def legal_action(self, state: GameState, agent: str, rng: np.random.Generator) -> str:
        """A random legal action, in the agent's words, for the warm start of the embedded model."""
        seat = self.agents.index(agent)
        at = position(state.game.name, state.moves)
        words = list(phrasing(state.game.name, self.prompt).words(at, seat))
        return self.said(words[int(rng.integers(len(words)))])

    def said(self, word: str) -> str:
        """Formats a word of the phrasing as a reply."""
        return f"<answer>{word}</answer>" if self.prompt == "full" else word

    def enumerated_game(self) -> EnumeratedGame:
        """The task itself."""
        return self

    def decisions(self, agent: str) -> Sequence[Decision]:
        """Every decision of the player in the only game of 'train'.

        Errors: ConfigError if the task has several games, or one that cannot be enumerated.
        """
        return all_decisions(self._only_game(), self.prompt)[self.agents.index(agent)]

    def judge(self, policy: Policy) -> Mapping[str, float]:
        """Returns `nash_conv`, `exploitability` and `value_PLAYER`, in units of the game's payoffs.

        A player's gain is the increase of its payoff if this player alone switches to a best
        response. `nash_conv` is the sum of the players' gains, which is 0 in an equilibrium.
        `exploitability` is the mean of the players' gains. `value_PLAYER` is the player's expected
        payoff."""
        return equilibrium_distance(self._only_game(), policy, self.agents)

    def render(self, state: GameState) -> str:
        """The position in OpenSpiel's own words."""
        return str(position(state.game.name, state.moves))

    def picture(self, state: GameState) -> Picture:
        """Shows the board, or the hands and chips, of the paper's games; the picture of any other
        game has no panels."""
        return draw(state.game.name, position(state.game.name, state.moves))

    def _only_game(self) -> str:
        games = self._items["train"]
        if len(games) > 1:
            raise ConfigError(
                "evaluation.exact: needs one game, the task has several; set task.games to one"
            )
        return games[0].name

    def _forfeit(self, state: GameState, faults: Sequence[Fault]) -> tuple[float, ...]:
        at, game_text = (
            position(state.game.name, state.moves),
            phrasing(state.game.name, self.prompt),
        )
        lost = [-game_text.stake(at, seat) if fault else 0.0 for seat, fault in enumerate(faults)]
        if self._shared[state.game.name]:
            return (min(lost),) * len(lost)
        return tuple(lost)


# Many episodes of a small game share a few positions, so the text of each position is cached.


@lru_cache(maxsize=8192)
def _shown(name: str, form: Form, moves: tuple[Move, ...], seat: int) -> str:
    return phrasing(name, form).observation(position(name, moves), seat)


@lru_cache(maxsize=8192)
def _words(name: str, form: Form, moves: tuple[Move, ...], seat: int) -> Mapping[str, int]:
    return phrasing(name, form).words(position(name, moves), seat)


@lru_cache(maxsize=8192)
def _revealed(name: str, moves: tuple[Move, ...]) -> str:
    return revealed(name, position(name, moves))


def _scale(game: Any, span: float | None) -> float:
    """The factor by which the game's payoffs are multiplied."""
    if span is None:
        return 1.0
    return span / float(game.max_utility() - game.min_utility())
