"""Critics of another run: finds the critics named by `critic.from`, checks that they fit the run,
and shifts their values to the run's first returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from colearn.config import Config, ResolvedRun
from colearn.contract import AgentValues, Episodes, NetworkKey
from colearn.errors import ConfigError
from colearn.runs.record.checksums import damages

from .critic_folder import (
    CriticManifest,
    critic_folder,
    described,
    is_critic,
    read_critic,
)
from .critics import Critics
from .explained_variance import Pair, pairs

_FIELD = "critic.from"
FOREIGN = 20.0
"""Maximum ratio between the standard deviations of new and old returns, and also the maximum
distance between the means of new and old returns in standard deviations. If the ratio or the
distance exceeds this limit, the new returns are assumed to be on another scale."""


def with_given_critic(config: Config) -> Config:
    """Return the config with a local folder of saved critics as `critic.from`, and with the
    `critic.baseline` of these critics. Critics on the hub are first downloaded.

    Errors: ConfigError for a folder without a critic, or with another `critic.baseline` than the
    config's.
    """
    critic = config.critic
    if critic is None or critic.from_ is None:
        return config
    path = critic_folder(critic.from_)
    if not is_critic(path) and not any(map(is_critic, path.glob("critic-*"))):
        read_critic(path, _FIELD)
    baseline = "item" if _has_means(path) else "none"
    if critic.baseline not in (None, baseline):
        raise ConfigError(
            f"critic.baseline: is {critic.baseline}, and the critic in {critic.from_} has "
            f"{baseline}; set it to null"
        )
    changed = critic.model_copy(update={"from_": str(path), "baseline": baseline})
    return config.model_copy(update={"critic": changed})


def _has_means(path: Path) -> bool:
    """Whether critics in a folder add the mean return of each item to the predictions of their
    networks.

    Errors: ConfigError if some critics have means and others do not.
    """
    folders = [path] if is_critic(path) else list(filter(is_critic, path.glob("critic-*")))
    have_means = {bool(read_critic(folder, _FIELD).item_means) for folder in folders}
    if len(have_means) > 1:
        raise ConfigError(
            f"{_FIELD}: some critics of {path} have means by item and others none; export or fit "
            "all of them alike"
        )
    return have_means == {True}


@dataclass(frozen=True, slots=True)
class GivenCritics:
    """Value models that were trained in another run. They may be frozen at first, and their values
    are shifted to the first returns: if a critic was trained on the returns of one team, its values
    for another team with a higher or lower mean return are wrong by a constant."""

    manifests: Mapping[str, CriticManifest]
    """The manifest of every value model, by name."""
    frozen: float = 0.0
    """Fraction of the training budget during which the value models are frozen."""

    @classmethod
    def of(cls, run: ResolvedRun) -> GivenCritics | None:
        """The value models in `critic.from`; None without `critic.from`.

        Errors: ConfigError, one line, for a critic that does not fit the run.
        """
        critic = run.config.critic
        if critic is None or critic.from_ is None:
            return None
        manifests = {}
        for key in run.learners:
            if key.kind == "critic":
                folder = Path(run.path(key))
                manifests[key.model] = manifest = read_critic(folder, _FIELD)
                for damage in damages(folder):
                    raise ConfigError(f"{_FIELD}: {damage}; copy or export the critic again")
                _check_fit(run, key, manifest, str(folder), foreign=critic.foreign)
        return cls(manifests, critic.frozen)

    @property
    def item_means(self) -> dict[str, tuple[float, float]]:
        """The mean returns by item and turn of all value models (`ItemMeans.state`)."""
        return {k: sums for one in self.manifests.values() for k, sums in one.item_means.items()}

    def still(self, done: float) -> bool:
        """Whether the value models are still frozen once the fraction `done` of the budget is
        used."""
        return done < self.frozen

    def recentre(
        self, critics: Critics, episodes: Episodes, values: Mapping[int, AgentValues]
    ) -> None:
        """Shift the values of every value model by the mean of (return - value) over all of the
        model's readers. `values` are the values by tree.

        Errors: ConfigError, one line, for returns on another scale (`FOREIGN`).
        """
        by_model: dict[str, list[Pair]] = {}
        for reader, agents in critics.critic.readers(episodes[0].agents).items():
            own_values = [
                {a: v for a, v in by_agent.items() if a in agents} for by_agent in values.values()
            ]
            name = critics.value_model(reader)
            assert name is not None, "every reader of a run has a value model"
            model_pairs = by_model.setdefault(name, [])
            model_pairs += pairs(episodes, own_values, of_state=critics.critic.of_state)
        for name, model_pairs in by_model.items():
            if model_pairs:
                _check_scale(name, self.manifests[name], [pair.actual for pair in model_pairs])
                by = float(np.mean([pair.actual - pair.value for pair in model_pairs]))
                critics.learners[name].shift(by)


def _check_scale(name: str, manifest: CriticManifest, returns: Sequence[float]) -> None:
    centre, deviation = manifest.centre, manifest.deviation
    mean, spread = float(np.mean(returns)), float(np.std(returns))
    far = abs(mean - centre) > FOREIGN * max(spread, deviation)
    wide = spread > FOREIGN * deviation or 0 < spread < deviation / FOREIGN
    if far or wide:
        raise ConfigError(
            f"critic.from: {name} was trained on returns of {centre:.3g} +- {deviation:.3g}, and "
            f"those of this run are {mean:.3g} +- {spread:.3g}; give one of this scale, or fit one "
            "with: colearn critic fit"
        )


def _check_fit(
    run: ResolvedRun, key: NetworkKey, manifest: CriticManifest, folder: str, *, foreign: bool
) -> None:
    expected_of = described(run, key)
    fields = ["critic", "reads", "discount", "credit"]
    fields += [] if foreign else ["task", "agents", "readers", "horizon"]
    for name in fields:
        value, expected = getattr(manifest, name), expected_of[name]
        if value != expected:
            remedy = (
                "give one with: colearn critic fit"
                if name not in _FOREIGN
                else "give another, or set critic.foreign: true if its texts mean the same here"
            )
            raise ConfigError(
                f"{_FIELD}: {folder} was trained with {_WORDS[name]} {_text_of(value)}, and this "
                f"run has {_text_of(expected)}; {remedy}"
            )


_FOREIGN = ("task", "agents", "readers", "horizon")
_WORDS = {
    "critic": "the critic",
    "reads": "the critic's settings",
    "discount": "the discount",
    "credit": "the credit",
    "task": "the task",
    "agents": "the agents",
    "readers": "the readers",
    "horizon": "a horizon of",
}


def _text_of(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_text_of(entry)}" for name, entry in value.items())
    return "+".join(map(str, value)) if isinstance(value, tuple) else str(value)


def critic_joint_actions(run: ResolvedRun, own_actions: int) -> int:
    """Return the number of joint actions that a run's critics were trained on. `own_actions` is
    the number within the run, which does not count if the critics were frozen. The number for the
    critics in `critic.from` is added."""
    critic = run.config.critic
    given = GivenCritics.of(run)
    inherited = max((m.joint_actions for m in given.manifests.values()), default=0) if given else 0
    return inherited + (own_actions if critic is None or critic.frozen < 1.0 else 0)
