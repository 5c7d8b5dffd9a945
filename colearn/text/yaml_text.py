"""Strict YAML parser: duplicate keys, endless aliases and unreadable values are errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from colearn.errors import reason_of

from .printable import is_unicode

_DEPTH = 100
"""Maximum nesting of sections and lists."""
_NODES = 200_000
"""Maximum number of values after all aliases are expanded."""
_BYTES = 2_000_000
"""Maximum size of a file in bytes. A config has a few KB, and reading takes seconds per MB."""
_LINE = 80
"""Maximum number of characters of a line shown in an error."""


_OCTAL = re.compile(r"[-+]?0[0-9_]+$")


class _Loader(yaml.SafeLoader):
    """Rejects repeated keys in a section, since YAML would keep only the last value."""

    def fetch_flow_collection_start(self, TokenClass: Any) -> None:
        super().fetch_flow_collection_start(TokenClass)
        if self.flow_level > _DEPTH:  # the scanner's time is quadratic in the level
            problem = f"more than {_DEPTH} brackets inside each other"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=self.get_mark())

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        keys = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in keys:
                raise _problem(f"the key '{key.value}' appears twice in its section", key)
            keys.add(key.value)
        return node

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        self._refuse_old_numbers(node)
        return int(super().construct_yaml_int(node))

    def construct_yaml_float(self, node: yaml.ScalarNode) -> float:
        self._refuse_old_numbers(node)
        return float(super().construct_yaml_float(node))

    def _refuse_old_numbers(self, node: yaml.ScalarNode) -> None:
        """Rejects numbers such as 010 and 1:30, which YAML 1.1 reads as 8 and 90."""
        if ":" in node.value or _OCTAL.match(node.value):
            raise _problem(
                f"{node.value} is an octal or sexagesimal number in YAML 1.1; write a plain "
                "number, or quotes around a text",
                node,
            )

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (ValueError, TypeError, AttributeError, KeyError, ArithmeticError):
            # a date such as 2024-13-45, a number such as 0b_, a tag that its value does not fit
            kind = node.tag.rpartition(":")[2]
            raise _problem(f"this value cannot be read as a {kind}", node) from None


for _kind in ("int", "float"):
    _Loader.add_constructor(
        f"tag:yaml.org,2002:{_kind}", getattr(_Loader, f"construct_yaml_{_kind}")
    )


def read_yaml_file(path: Path) -> Any:
    """Errors: OSError if the file cannot be read; ValueError as for `parse_yaml`, or if the file is
    too large to be a config."""
    with path.open("rb") as file:
        text = file.read(_BYTES + 1)
    if len(text) > _BYTES:
        size = path.stat().st_size / 1e6
        raise ValueError(
            f"too large to be a config ({size:.0f} MB, at most {_BYTES // 1_000_000} MB)"
        )
    return parse_yaml(text)


def parse_yaml(text: bytes | str) -> Any:
    """Errors: ValueError with a one-line message that, where known, quotes the invalid line and its
    number."""
    try:
        source = text if isinstance(text, str) else text.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"not YAML ({error})") from None
    try:
        loader = _Loader(source)
        node = loader.get_single_node()
        if node is None:
            return None
        _expanded(node, {}, 0)
        return loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        raise ValueError(f"not YAML ({_located(error, source)})") from None
    except yaml.YAMLError as error:
        raise ValueError(f"not YAML ({reason_of(error)})") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _problem(text: str, node: yaml.Node) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=text, problem_mark=node.start_mark)


def _located(error: yaml.MarkedYAMLError, source: str) -> str:
    """Return the problem, with the number and the text of the line in which the problem occurs."""
    mark = error.problem_mark or error.context_mark
    problem = " ".join((error.problem or error.context or "cannot be read").split())
    if mark is None:
        return problem
    lines = source.splitlines()
    line = lines[mark.line].strip() if mark.line < len(lines) else ""
    excerpt = line if len(line) <= _LINE else f"{line[:_LINE]} ..."
    at = f"line {mark.line + 1}" if excerpt else f"line {mark.line + 1}, at its end"
    return f"{at}: {problem}{f': {excerpt}' if excerpt else ''}"


def _expanded(node: yaml.Node, counts: dict[int, int | None], depth: int) -> int:
    """Number of values below a node, with aliases expanded.

    Errors: MarkedYAMLError for an alias that contains itself, for half of a surrogate pair, or if a
    limit is exceeded.
    """
    if id(node) in counts:
        count = counts[id(node)]
        if count is None:
            raise _problem("an alias stands for a section that contains it", node)
        return count
    if depth > _DEPTH:
        raise _problem(f"more than {_DEPTH} sections or lists inside each other", node)
    if isinstance(node, yaml.ScalarNode) and not is_unicode(node.value):
        raise _problem("half of a surrogate pair is no text; write the character itself", node)
    counts[id(node)] = None
    count = 1 + sum(_expanded(child, counts, depth + 1) for child in _children(node))
    if count > _NODES:
        raise _problem(f"aliases stand for more than {_NODES:,} values", node)
    counts[id(node)] = count
    return count


def _children(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield key
            yield value
    elif isinstance(node, yaml.SequenceNode):
        yield from node.value
