"""A team: the models of a run, the players that they play, and the methods that act on all of
them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from colearn.config import ResolvedRun
from colearn.contract import FrozenCopy, Learner, NetworkKey, Player, TokenEngine
from colearn.contract.host import Together, one_by_one
from colearn.models.load import Tokenizers
from colearn.models.network import Network
from colearn.models.sources import Sources
from colearn.rollout.agents import Language


@dataclass(slots=True, kw_only=True)
class Team:
    """The models of a run and its players, wherever the models are.

    Learners, copies and engines may be proxies of models in other processes. A learner therefore
    receives rows and objectives as plain values, and returns plain values.
    """

    run: ResolvedRun
    """The resolved config: task, parts, cast."""
    tokenizers: Tokenizers
    networks: Mapping[NetworkKey, Network]
    """Actors and critics in this process, or copies of these networks; exact evaluation uses the
    actors."""
    learners: Mapping[NetworkKey, Learner]
    """Learners of every trained network, actors and critics."""
    copies: Mapping[NetworkKey, FrozenCopy]
    """References and past selves."""
    players: Mapping[str, Player]
    """Every player that can be assigned to a seat, by name, including past selves."""
    folders: Mapping[str, str] = field(default_factory=dict)
    """Folder or hub name of each base model, by the path in the config."""
    sources: Sources = field(default_factory=dict)
    """Digests of the files that the config names."""
    together: Together = one_by_one
    """Runs one call per model."""
    resources: ExitStack = field(default_factory=ExitStack)
    """Closed with the team."""

    @property
    def engines(self) -> list[TokenEngine]:
        """The distinct engines, in the order of their first players."""
        speakers = [player for player in self.players.values() if isinstance(player, Language)]
        return list({id(player.engine): player.engine for player in speakers}.values())

    def first_player(self, engine: TokenEngine) -> str:
        """Name of the first player whose actions the engine generates."""
        players = self.players.items()
        return next(n for n, p in players if isinstance(p, Language) and p.engine is engine)

    def publish(self) -> None:
        """Load the learners' current weights into every engine."""
        for engine in self.engines:
            with engine.busy("transfer"):
                engine.sync()

    def rest(self) -> None:
        """Notify every engine that the models are about to be updated."""
        for engine in self.engines:
            engine.rest()

    def fetch(self) -> None:
        """Load the learners' weights into those `networks` that are copies; called before an exact
        evaluation."""
        for learner in self.learners.values():
            learner.fetch()

    def keep_past(self, slot: int) -> None:
        """Copy the current models into a slot of the cast's pool of past selves."""
        for key, copy in self.copies.items():
            if key.slot == slot:
                copy.copy_weights()

    def save(self, folder: Path, *, writes: bool) -> None:
        """Save the learners, and the copies that change during a run, each in its own folder. Every
        process must call this method.

        writes: whether this process is the one that writes the copies. Errors: OSError if a file
        cannot be written.
        """
        if writes:
            for key, copy in self._changing_copies.items():
                copy.save(folder / str(key))
        for key, learner in self.learners.items():
            learner.save(folder / str(key))

    def load(self, folder: Path) -> None:
        """The inverse of `save`; engines receive the weights from `publish`. Errors:
        CheckpointError for a folder that is unreadable or from another run."""
        for key, learner in self.learners.items():
            learner.load(folder / str(key))
        for key, copy in self._changing_copies.items():
            copy.load(folder / str(key))

    def close(self) -> None:
        """Free resources outside Python's garbage collector: of players, then of engines, then
        of the models' processes."""
        with ExitStack() as stack:
            stack.callback(self.resources.close)
            for engine in self.engines:
                stack.callback(engine.close)
            for player in self.players.values():
                stack.callback(player.close)

    @property
    def _changing_copies(self) -> dict[NetworkKey, FrozenCopy]:
        """Past selves and, if references are updated, also references. A fixed reference is loaded
        from its model's path, not restored from a checkpoint."""
        copies = self.copies.items()
        kinds = ("past", "reference") if self.run.moving else ("past",)
        return {key: copy for key, copy in copies if key.kind in kinds}
