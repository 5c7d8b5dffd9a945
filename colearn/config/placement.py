"""Applies `placement`: devices of models and critic, and updates at the same time."""

from __future__ import annotations

from typing import Any

from colearn.errors import ConfigError, nearest

from .settings import Config, CriticSettings, HostChoice

_CRITIC = "critic"
_ONE_CRITIC = "critic-"


def place(config: Config) -> Config:
    """The config with the devices of `placement` in `models` and `critic`.

    If they name several devices, the local host updates models in threads unless it is configured.
    Errors: ConfigError for an unknown name, or a device that is set in two places.
    """
    if not config.placement:
        return config
    models, critic = dict(config.models), config.critic
    for name, device in config.placement.items():
        if name in models:
            models[name] = _placed(models[name], device, f"models.{name}", name)
        elif name == _CRITIC or name.startswith(_ONE_CRITIC):
            if critic is None or critic.path is None:
                raise ConfigError(
                    f"placement.{name}: there is no critic model; leave it out, or set critic.path"
                )
            if name == _CRITIC:
                critic = _placed(critic, device, "critic", "critic")
            else:
                critic = _one_placed(critic, device, name.removeprefix(_ONE_CRITIC))
        else:
            raise ConfigError(
                f"placement.{name}: no such model; {nearest(name, [*models, _CRITIC])}"
            )
    run, host = config.run, config.run.host
    if len(set(config.placement.values())) > 1 and host == HostChoice():
        run = run.model_copy(
            update={"host": HostChoice.model_validate({"name": host.name, "threads": True})}
        )
    return config.model_copy(
        update={"models": models, "critic": critic, "run": run, "placement": {}}
    )


def _one_placed(critic: CriticSettings, device: str, value_model: str) -> CriticSettings:
    before = critic.devices.get(value_model, device)
    if before != device:
        raise ConfigError(
            f"placement.critic-{value_model}: is {device}, and critic.devices.{value_model} is "
            f"{before}; leave one out"
        )
    return critic.model_copy(update={"devices": {**critic.devices, value_model: device}})


def _placed(settings: Any, device: str, section: str, name: str) -> Any:
    if settings.device not in (None, device):
        raise ConfigError(
            f"placement.{name}: is {device}, and {section}.device is {settings.device}; "
            "leave one out"
        )
    return settings.model_copy(update={"device": device})
