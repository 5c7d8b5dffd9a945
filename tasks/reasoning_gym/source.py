"""Creates reasoning-gym's data sets, once per process."""

from __future__ import annotations

import json
from functools import lru_cache
from importlib import import_module
from typing import Any

from colearn.errors import ConfigError, nearest, reason_of, required


@lru_cache(maxsize=16)
def data_set(name: str, settings: str, size: int, seed: int) -> Any:
    """The data set called `name`; `settings` is JSON.

    Errors: MissingExtra without reasoning-gym; ConfigError for a name or a setting that the package
    does not have.
    """
    gym = required("reasoning_gym", "gyms", package="reasoning-gym")
    known = import_module("reasoning_gym.factory").DATASETS
    if name not in known:
        raise ConfigError(f"task.data: no data set '{name}'; {nearest(name, known)}")
    try:
        return gym.create_dataset(name, size=size, seed=seed, **json.loads(settings))
    except (TypeError, ValueError, AssertionError) as error:
        reason = reason_of(error) if str(error) else "out of range"
        raise ConfigError(f"task.settings: {reason}; see '{name}'") from None
