"""Replays an environment from its seed and actions.

PettingZoo's environments change in place. A replay creates the environment again from (seed,
actions), or continues a kept game that is one step behind.
"""

from __future__ import annotations

import importlib
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

from colearn.contract.testing.fingerprint import fingerprint
from colearn.errors import ConfigError, TaskError, required
from colearn.registry.own_code import own_function
from colearn.text.real_number import real_number

from ..live_games import LiveGames
from .foreign import foreign
from .masks import legal_actions, unmasked_parts

Joint = tuple[tuple[str, int], ...]
"""One step: (agent, action) for each agent that acted."""


@dataclass(frozen=True, slots=True, eq=False)
class EnvironmentSource:
    """An environment's name and constructor arguments. Compared by identity, since settings may be
    arrays or functions."""

    env: str
    """Family and name, such as classic/rps_v2; or module:Class of an environment outside
    PettingZoo."""
    settings: Mapping[str, Any] = field(default_factory=dict)
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
    """The agents whose episodes the last step truncated, if no agent acts any more, and which the
    environment still observes. Their observations are in `seen`."""
    truncated: bool = False
    """Whether the last step truncated an agent's episode and no agent acts any more."""


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


Play = tuple[int, tuple[Joint, ...]]
"""Seed and actions."""
_KEPT = 4096
_live = LiveGames[tuple[EnvironmentSource, int, tuple[Joint, ...]], Any](_close)


@lru_cache(maxsize=_KEPT)
def situation(source: EnvironmentSource, seed: int, actions: tuple[Joint, ...]) -> Situation:
    """The situation after `actions`, with the last step's rewards."""
    env = _live.take((source, seed, actions[:-1])) if actions else None
    if env is None:
        env = make(source)
        current = begin(source, env, seed)
        for count, joint in enumerate(actions):
            _check_same(source, env, (seed, actions[:count]), current)
            current = advance(source, env, joint)
    else:
        current = advance(source, env, actions[-1])
    _check_same(source, env, (seed, actions), current)
    _live.keep((source, seed, actions), env)
    return current


_reached: OrderedDict[tuple[EnvironmentSource, type, Play], Situation] = OrderedDict()
"""The latest situations of this process, with which replays are compared."""


def _check_same(source: EnvironmentSource, env: Any, play: Play, current: Situation) -> None:
    """Errors: TaskError if the same seed and actions have led to another situation before."""
    key = (source, type(env.unwrapped), play)
    before = _reached.pop(key, current)
    if before is not current and (difference := differing(before, current)) is not None:
        raise TaskError(
            f"task.env: '{source.env}' gives {difference} when an episode is replayed from its "
            "seed and actions; let all randomness follow from the `seed` of reset"
        )
    _reached[key] = before
    while len(_reached) > _KEPT:
        _reached.popitem(last=False)


def differing(one: Situation, other: Situation) -> str | None:
    """Describes the first difference between two situations; None if they are equal."""
    if one.acting != other.acting:
        return "another order of agents"
    if (one.cut, one.truncated) != (other.cut, other.truncated):
        return "other truncated agents"
    for agent in one.seen:
        if fingerprint(one.seen[agent]) != fingerprint(other.seen[agent]):
            return f"'{agent}' another observation"
        if one.legal[agent] != other.legal[agent]:
            return f"'{agent}' other legal actions"
    return None if fingerprint(one.rewards) == fingerprint(other.rewards) else "other rewards"


def begin(source: EnvironmentSource, env: Any, seed: int) -> Situation:
    """Resets an environment. Errors: TaskError that names the environment's line."""
    with foreign(source.env, env, "reset"):
        return _reset(env, seed, source.parallel)


def advance(source: EnvironmentSource, env: Any, joint: Joint) -> Situation:
    """Executes a step. Errors: TaskError that names the environment's line."""
    with foreign(source.env, env, "step"):
        return _step(env, joint, source.parallel)


def _reset(env: Any, seed: int, parallel: bool) -> Situation:
    result = env.reset(seed=seed)
    if not parallel:
        return _turn(env, {})
    if not (isinstance(result, tuple) and len(result) == 2):
        raise TaskError("task.env: reset must return (observations, infos)")
    observations, infos = result
    return _shown(env, {a: (observations[a], infos.get(a, {})) for a in env.agents}, {})


def _step(env: Any, joint: Joint, parallel: bool) -> Situation:
    by_name = {str(agent): agent for agent in env.possible_agents}
    if parallel:
        actions = {by_name[agent]: action for agent, action in joint}
        result = env.step(actions)
        if not (isinstance(result, tuple) and len(result) == 5):
            raise TaskError(
                "task.env: step must return (observations, rewards, terminations, truncations, "
                "infos)"
            )
        observations, rewards, terminated, truncated, infos = result
        if unpaid := [agent for agent in actions if agent not in rewards]:
            raise TaskError(
                f"task.env: step pays '{unpaid[0]}' nothing; return a reward for each agent that "
                "acted, also for those that act no more"
            )
        # some environments keep agents whose episode has ended in their list
        paid = {a: _paid(a, reward) for a, reward in rewards.items()}
        remaining = [a for a in env.agents if not (terminated.get(a) or truncated.get(a))]
        if not remaining:
            cut = [a for a, is_cut in truncated.items() if is_cut and not terminated.get(a)]
            # some environments observe the agents that are left alone, which are none
            shown = {a: (observations[a], infos.get(a, {})) for a in cut if a in observations}
            return _cut(env, shown, paid, truncated=bool(cut))
        return _shown(env, {a: (observations[a], infos.get(a, {})) for a in remaining}, paid)
    [(agent, action)] = joint
    if env.agent_selection != by_name[agent]:
        raise TaskError(
            f"task.env: '{env.agent_selection}' acts where '{agent}' acted before; let the order "
            "of agents follow from the `seed` of reset and the actions"
        )
    env.step(action)
    paid = {a: _paid(a, reward) for a, reward in env.rewards.items()}
    if all(env.terminations[a] or env.truncations[a] for a in env.agents):
        # an environment may have emptied its list of agents itself
        cut = [a for a, is_cut in env.truncations.items() if is_cut and not env.terminations.get(a)]
        seen = {a: (env.observe(a), env.infos[a]) for a in cut if a in env.agents}
        ended = _cut(env, seen, paid, truncated=bool(cut))
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
    env: Any,
    observed: Mapping[Any, tuple[Any, Mapping[str, Any]]],
    rewards: Mapping[Any, float],
    *,
    truncated: bool,
) -> Situation:
    """The situation after the last step. `observed`: the agents whose episodes it truncated."""
    seen, legal = dict[str, Any](), dict[str, tuple[int, ...]]()
    for agent, (observation, info) in observed.items():
        unmasked, mask = unmasked_parts(agent, observation, info)
        seen[str(agent)] = deepcopy(unmasked)
        legal[str(agent)] = legal_actions(env, agent, mask) or legal_actions(env, agent, None)
    return Situation(
        acting=(),
        seen=seen,
        legal=legal,
        rewards={str(agent): reward for agent, reward in rewards.items()},
        cut=tuple(seen),
        truncated=truncated,
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
    in place. Errors: TaskError for a mask that leaves no action or does not fit the space."""
    observation, mask = unmasked_parts(agent, observation, info)
    legal = legal_actions(env, agent, mask)
    if not legal:
        raise TaskError(
            f"task.env: the action mask leaves '{agent}' no action; let the environment end the "
            "agent's episode, or mask all actions but the one that waits"
        )
    return deepcopy(observation), legal
