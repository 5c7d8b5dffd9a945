"""YAML parser for configs and workflows; duplicate keys are errors."""

from __future__ import annotations

from typing import Any

import yaml


class _Loader(yaml.SafeLoader):
    """Of two equal keys in a section the first would be lost."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                problem = f"the key '{key.value}' stands twice in its section"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
            seen.add(key.value)
        return node


def parse_yaml(text: bytes | str) -> Any:
    """Errors: ValueError in a few words, on one line."""
    try:
        return yaml.load(text if isinstance(text, str) else text.decode("utf-8"), _Loader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"not YAML ({' '.join(str(error).split())})") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
