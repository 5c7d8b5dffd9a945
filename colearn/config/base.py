"""`base`: default paths of pretrained models; one setting replaces all of them.

base: Qwen/Qwen3-1.7B                            # of every model and critic without a path
base: {small: Qwen/Qwen3-0.6B, large: Qwen/Qwen3-1.7B}      # of `path: base.small` and so on
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from colearn.errors import ConfigError, nearest

_PREFIX = "base."


def with_base(data: Mapping[str, Any]) -> dict[str, Any]:
    """A config's plain data with `base` substituted for paths that are missing or `base.NAME`.

    A single path replaces every `base.NAME`. Errors: ConfigError for an unknown name.
    """
    base, resolved = data.get("base"), dict(data)
    if not isinstance(base, str | Mapping):
        return resolved
    models, critic = data.get("models"), data.get("critic")
    if isinstance(models, Mapping):
        resolved["models"] = {
            name: _with_path(model, base, f"models.{name}") for name, model in models.items()
        }
    if isinstance(critic, Mapping) and critic.get("share") is None:
        resolved["critic"] = _with_path(critic, base, "critic")
    return resolved


def _with_path(section: Any, base: str | Mapping[str, Any], where: str) -> Any:
    if not isinstance(section, Mapping):
        return section
    path = section.get("path")
    if path is None:
        return {**section, "path": base} if isinstance(base, str) else section
    if not (isinstance(path, str) and path.startswith(_PREFIX)):
        return section
    if isinstance(base, str):
        return {**section, "path": base}
    name = path.removeprefix(_PREFIX)
    if name not in base:
        raise ConfigError(f"{where}.path: base has no '{name}'; {nearest(name, list(base))}")
    return {**section, "path": base[name]}
