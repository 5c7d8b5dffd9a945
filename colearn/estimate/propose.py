"""Proposes a placement of a run's models on the devices of a described machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from colearn.config import Config

from .memory import NetworkMemory
from .run import Estimate, estimate


@dataclass(frozen=True, slots=True)
class Proposal:
    """A placement, and the estimate of the run with it."""

    placement: Mapping[str, str]
    estimate: Estimate
    checkpointing: bool = False
    """Whether it also sets `checkpointing` for every trained model."""

    @property
    def fits(self) -> bool:
        return not self.estimate.too_small


def propose(estimated: Estimate, *, processes: int = 1) -> Proposal | None:
    """Spread models over the devices of the estimate's machine, the largest first, each on the
    device with the fewest bytes so far; models that share a base stay together. If that does not
    fit, activations are checkpointed, too.

    None if the machine has one device, the config names devices, a model was not counted, or a
    launcher gives each of several processes a device.
    Errors: as for `estimate`.
    """
    machine, run = estimated.machine, estimated.run
    named = any(run.settings(key).device is not None for key in run.networks)
    if machine is None or machine.count == 1 or processes > 1:
        return None
    if named or estimated.phases is None:
        return None
    units = _units(run.config, estimated.networks)
    used = [0] * machine.count
    placement: dict[str, str] = {}
    for names, size in sorted(units, key=lambda unit: -unit[1]):
        device = used.index(min(used))
        used[device] += size
        placement |= dict.fromkeys(names, f"cuda:{device}")
    placed = run.config.model_copy(update={"placement": placement})
    rehearsed = estimated.rehearsed
    proposal = Proposal(placement, estimate(placed, machine=machine, rehearsed=rehearsed))
    if proposal.fits or not run.learns:
        return proposal
    again = estimate(_checkpointed(placed), machine=machine, rehearsed=rehearsed)
    return Proposal(placement, again, checkpointing=True)


def _checkpointed(config: Config) -> Config:
    on = {"checkpointing": True}
    models = {
        name: model.model_copy(update=on) if model.trained else model
        for name, model in config.models.items()
    }
    critic = config.critic if config.critic is None else config.critic.model_copy(update=on)
    return config.model_copy(update={"models": models, "critic": critic})


def _units(config: Config, networks: Sequence[NetworkMemory]) -> list[tuple[tuple[str, ...], int]]:
    """Names that a placement keeps together, with their persistent bytes."""
    names_of: dict[tuple[str, ...], list[str]] = {}
    unit_of: dict[str, tuple[str, ...]] = {}
    settings = dict(config.models)
    for name, model in settings.items():
        shares = model.lora is not None or not model.trained
        unit = (model.path, model.dtype) if shares else ("", name)
        names_of.setdefault(unit, []).append(name)
        unit_of[name] = unit
    critic = config.critic
    if critic is not None and critic.path is not None:
        shared = (critic.path, critic.dtype)
        unit = shared if critic.lora is not None and shared in names_of else ("", "critic")
        names_of.setdefault(unit, []).append("critic")
        unit_of["critic"] = unit
    sizes = dict.fromkeys(names_of, 0)
    for network in networks:
        name = "critic" if network.key.kind == "critic" else network.key.model
        sizes[unit_of[name]] += network.weights + network.gradients + network.adam
    return [(tuple(names), sizes[unit]) for unit, names in names_of.items()]
