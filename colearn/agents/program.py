"""Program players: a scripted bot, a game-tree search, an equilibrium policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from colearn.contract import Acts, Ask, BatchedTable, Player, Spoken, Table, View
from colearn.seeding import derive_rng
from colearn.types import Action


@dataclass(frozen=True, slots=True, eq=False)
class _ProgramTable(BatchedTable):
    program: Acts

    def speak(self, asks: Sequence[Ask], *, greedy: bool = False) -> list[list[Spoken]]:
        return [[Spoken(Action(self._act(ask, seed))) for seed in ask.seeds] for ask in asks]

    def _act(self, ask: Ask, seed: int) -> str:
        return self.program.act(
            View(
                task=ask.task,
                state=ask.state,
                seat=ask.seat,
                text=ask.observation.text,
                rng=derive_rng(seed, "program"),
            )
        )


@dataclass(frozen=True, slots=True)
class Program(Player):
    """A player that runs code; its actions have no tokens and are never trained."""

    program: Acts
    _table: _ProgramTable = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_table", _ProgramTable(self.program))

    @property
    def table(self) -> Table:
        return self._table

    @property
    def draws_candidates(self) -> bool:
        return False
