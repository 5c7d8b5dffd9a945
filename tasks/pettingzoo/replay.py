"""Replays an environment from its seed and actions.

PettingZoo's environments change in place. A replay creates the environment again from (seed,
actions), or continues a kept game that is one step behind.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

from colearn.errors import ConfigError, TaskError, required
from colearn.registry.own_code import own_function
from colearn.text.real_number import real_number

from ..live_games import LiveGames

Joint = tuple[tuple[str, int], ...]
"""One step: (agent, action) for each agent that acted."""


@dataclass(frozen=True, slots=True)
class EnvironmentSource:
    """An environment's name and constructor arguments."""

    env: str
    """Family and name, such as classic/rps_v2; or module:Class of an environment outside
    PettingZoo."""
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
    parallel: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """Observations, rewards and legal actions between two steps."""

    acting: tuple[str, ...]
    """The agents that act now; none after the end."""
    seen: Mapping[str, Any]
    """The observation of each acting agent, without the action mask."""
    legal: Mapping[str, tuple[int, ...]]
    rewards: Mapping[str, float]
    """The rewards of the last step, by agent."""
    cut: tuple[str, ...] = ()
    """The agents whose episodes the last step truncated, if no agent acts any more. Their
    observations are in `seen`."""


def creator(source: EnvironmentSource) -> Callable[..., Any]:
    """The function that makes the environment from its settings.

    Errors: MissingExtra without PettingZoo; ConfigError for an unknown name or form.
    """
    pettingzoo = required("pettingzoo", "games")
    if ":" in source.env:
        return own_function(source.env, "task.env")
    family, _, name = source.env.replace(".", "/").rpartition("/")
    family = family or "classic"
    if hasattr(pettingzoo, "make"):
        return _registered(pettingzoo, source, f"{family}/{name}")
    module = _module(source, f"pettingzoo.{family.replace('/', '.')}.{name}")
    form = "parallel_env" if source.parallel else "env"
    if not hasattr(module, "env"):
        raise _unknown(source)
    if not hasattr(module, form):
        raise _lacks(source)
    factory: Callable[..., Any] = getattr(module, form)
    return factory


def _registered(pettingzoo: Any, source: EnvironmentSource, name: str) -> Callable[..., Any]:
    """Returns the function that makes a registered environment; PettingZoo has a registry since
    version 1.27."""
    key = re.sub(r"_v(?=\d+$)", "-v", name)
    forms = {"aec": pettingzoo.aec_registry, "parallel": pettingzoo.parallel_registry}
    form = "parallel" if source.parallel else "aec"
    if key in forms[form]:
        entry = forms[form][key].entry_point
        if isinstance(entry, str):
            try:
                importlib.import_module(entry.partition(":")[0])
            except ModuleNotFoundError as error:
                raise _needs(source, error) from None
        return partial(pettingzoo.make, form, key)
    if any(key in registry for registry in forms.values()):
        raise _lacks(source)
    raise _unknown(source)


def _module(source: EnvironmentSource, target: str) -> Any:
    """Returns the module from which PettingZoo before version 1.27 makes an environment."""
    try:
        return importlib.import_module(target)
    except ModuleNotFoundError as error:
        if error.name is not None and target.startswith(error.name):
            raise _unknown(source) from None
        raise _needs(source, error) from None


def _unknown(source: EnvironmentSource) -> ConfigError:
    return ConfigError(
        f"task.env: no environment '{source.env}'; write family/name (classic/rps_v2), or "
        "module:Class for an environment of your own"
    )


def _lacks(source: EnvironmentSource) -> ConfigError:
    form = "parallel" if source.parallel else "AEC"
    return ConfigError(f"task.parallel: '{source.env}' has no {form} form; set it the other way")


def _needs(source: EnvironmentSource, error: ModuleNotFoundError) -> ConfigError:
    return ConfigError(f"task.env: '{source.env}' needs the package '{error.name}'; install it")


def make(source: EnvironmentSource) -> Any:
    """A new environment that has not been reset.

    Errors: as for `creator`; ConfigError if it has not the form that the task plays.
    """
    env = creator(source)(**deepcopy(dict(source.settings)))
    form = "ParallelEnv" if source.parallel else "AECEnv"
    if not isinstance(env, getattr(required("pettingzoo", "games"), form)):
        other = "false" if source.parallel else "true"
        raise ConfigError(
            f"task.env: '{source.env}' made a {type(env).__name__}, which is not PettingZoo's "
            f"{form}; name a class or function that makes one, or set task.parallel to {other}"
        )
    return env


def _close(env: Any) -> None:
    env.close()


_live = LiveGames[tuple[EnvironmentSource, int, tuple[Joint, ...]], Any](_close)


@lru_cache(maxsize=4096)
def situation(source: EnvironmentSource, seed: int, actions: tuple[Joint, ...]) -> Situation:
    """The situation after `actions`, with the last step's rewards."""
    env = _live.take((source, seed, actions[:-1])) if actions else None
    if env is None:
        env = make(source)
        current = _reset(env, seed, source.parallel)
        for joint in actions:
            current = _step(env, joint, source.parallel)
    else:
        current = _step(env, actions[-1], source.parallel)
    _live.keep((source, seed, actions), env)
    return current


def _reset(env: Any, seed: int, parallel: bool) -> Situation:
    result = env.reset(seed=seed)
    if not parallel:
        return _turn(env, {})
    observations, infos = result
    return _shown(env, {a: (observations[a], infos.get(a, {})) for a in env.agents}, {})


def _step(env: Any, joint: Joint, parallel: bool) -> Situation:
    by_name = {str(agent): agent for agent in env.possible_agents}
    if parallel:
        actions = {by_name[agent]: action for agent, action in joint}
        observations, rewards, terminated, truncated, infos = env.step(actions)
        # some environments keep agents whose episode has ended in their list
        paid = {a: _paid(a, reward) for a, reward in rewards.items()}
        remaining = [a for a in env.agents if not (terminated.get(a) or truncated.get(a))]
        if not remaining:
            cut = [a for a in observations if truncated.get(a) and not terminated.get(a)]
            return _cut(env, {a: (observations[a], infos.get(a, {})) for a in cut}, paid)
        return _shown(env, {a: (observations[a], infos.get(a, {})) for a in remaining}, paid)
    [(agent, action)] = joint
    assert env.agent_selection == by_name[agent], "a replay follows the order of the first play"
    env.step(action)
    paid = {a: _paid(a, reward) for a, reward in env.rewards.items()}
    if all(env.terminations[a] or env.truncations[a] for a in env.agents):
        cut = [a for a in env.agents if not env.terminations[a]]
        seen = {a: (env.observe(a), env.infos[a]) for a in cut}
        ended = _cut(env, seen, paid)
        while env.agents:
            env.step(None)
        return ended
    while env.agents and _dead(env):  # PettingZoo requires an empty step from each terminated agent
        env.step(None)
    return _turn(env, paid)


def _paid(agent: Any, reward: Any) -> float:
    """Errors: TaskError for a reward that is no number."""
    try:
        return real_number(reward)
    except TypeError as error:
        raise TaskError(
            f"task.env: '{agent}' was paid {error}; the environment must pay numbers"
        ) from None


def _turn(env: Any, rewards: Mapping[str, float]) -> Situation:
    """The situation of an environment in which one agent acts at a time."""
    if not env.agents:
        return _shown(env, {}, rewards)
    agent = env.agent_selection
    return _shown(env, {agent: (env.observe(agent), env.infos[agent])}, rewards)


def _dead(env: Any) -> bool:
    out = env.terminations[env.agent_selection] or env.truncations[env.agent_selection]
    return bool(out)


def _cut(
    env: Any, observed: Mapping[Any, tuple[Any, Mapping[str, Any]]], rewards: Mapping[Any, float]
) -> Situation:
    """The situation after the last step, which truncated the episodes of the agents in
    `observed`."""
    seen, legal = dict[str, Any](), dict[str, tuple[int, ...]]()
    for agent, (observation, info) in observed.items():
        unmasked, mask = _unmasked(observation, info)
        seen[str(agent)] = deepcopy(unmasked)
        legal[str(agent)] = _legal(env, agent, mask) or _legal(env, agent, None)
    return Situation(
        acting=(),
        seen=seen,
        legal=legal,
        rewards={str(agent): reward for agent, reward in rewards.items()},
        cut=tuple(seen),
    )


def _shown(
    env: Any, observed: Mapping[Any, tuple[Any, Mapping[str, Any]]], rewards: Mapping[Any, float]
) -> Situation:
    split = {
        str(agent): _masked(env, agent, observation, info)
        for agent, (observation, info) in observed.items()
    }
    return Situation(
        acting=tuple(split),
        seen={agent: observation for agent, (observation, _) in split.items()},
        legal={agent: legal for agent, (_, legal) in split.items()},
        rewards={str(agent): reward for agent, reward in rewards.items()},
    )


def _masked(
    env: Any, agent: Any, observation: Any, info: Mapping[str, Any]
) -> tuple[Any, tuple[int, ...]]:
    """Returns a copy of the observation without its action mask, and the legal actions, which are
    read from the mask in `observation` or `info`. A copy, because environments change their arrays
    in place. Errors: TaskError for a mask that leaves no action."""
    observation, mask = _unmasked(observation, info)
    legal = _legal(env, agent, mask)
    if not legal:
        raise TaskError(
            f"task.env: the action mask leaves '{agent}' no action; let the environment end the "
            "agent's episode, or mask all actions but the one that waits"
        )
    return deepcopy(observation), legal


def _legal(env: Any, agent: Any, mask: Any) -> tuple[int, ...]:
    space = env.action_space(agent)
    return tuple(
        int(space.start) + place for place in range(int(space.n)) if mask is None or mask[place]
    )


def _unmasked(observation: Any, info: Mapping[str, Any]) -> tuple[Any, Any]:
    """The observation without its action mask, and the mask; None if there is no mask."""
    mask = info.get("action_mask")
    if not isinstance(observation, Mapping):
        return observation, mask
    mask = observation.get("action_mask", mask)
    unmasked = {name: part for name, part in observation.items() if name != "action_mask"}
    return (unmasked["observation"] if unmasked.keys() == {"observation"} else unmasked), mask
