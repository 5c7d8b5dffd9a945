"""Finds the files that the texts of a Python module or of a YAML file name: programs and data."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from itertools import product, takewhile
from pathlib import Path
from typing import Any

from colearn.text.yaml_text import read_yaml_file

CODE, YAML, SHELL = ".py", (".yaml", ".yml"), ".sh"
DATA = (
    *(".jsonl", ".json", ".csv", ".tsv", ".txt", ".md", ".xml", ".toml"),
    *(".jinja", ".jinja2", ".j2", ".parquet", ".arrow", ".npy", ".npz"),
)
"""Suffixes of data files."""
_NAMED = (CODE, *YAML, SHELL, *DATA)
_WORD_ENDS = re.compile(r"""[\s=;&|()'"`]+""")
_REDIRECTED = re.compile(r">+\s*\S+")
_MODE = re.compile(r"[rwaxbt+]*[wax+][rwaxbt+]*")
"""A mode of `open` that writes."""
_WRITER = re.compile(r"(write|to_|save)\w*")
"""Names of methods and functions that write a file, such as `write_text`, `to_csv`, `savetxt`."""


def named_in_code(texts: Iterable[str], folders: tuple[Path, ...]) -> Iterator[Path]:
    """Yields the files that `file_names` of a module name, each in the first of `folders` that has
    it. Configs are left out."""
    for text in texts:
        yield from (file for file in _found(text, folders) if not _is_config(file))


def file_names(tree: ast.AST) -> tuple[str, ...]:
    """Returns the texts of a module that may name a file, without those that it writes, such as a
    log of rewards."""
    named = [text for text in dict.fromkeys(_texts(tree)) if _may_name(text)]
    written = _written(tree) if named else set()
    return tuple(text for text in named if text.rpartition("/")[2] not in written)


def named_in_yaml(file: Path) -> Iterator[Path]:
    """Yields the files beside a YAML file that its texts name."""
    for text in _strings(_content(file)):
        yield from _found(text, (file.parent,))


def words_of_command(text: str) -> list[str]:
    """The words of a shell's command or script, without the files to which it writes."""
    return _WORD_ENDS.split(_REDIRECTED.sub(" ", text))


def named_in_words(words: list[str], folders: tuple[Path, ...]) -> Iterator[Path]:
    """Yields the files that words name, each in the first of `folders` that has it."""
    for word in words:
        yield from _found(word, folders)


def _content(file: Path) -> Any:
    """The data of a YAML file; None if it cannot be read, as the task that reads it will say."""
    try:
        return read_yaml_file(file)
    except (OSError, ValueError):
        return None


def _is_config(file: Path) -> bool:
    """Whether a file is a config of a run, such as the one that a module's program begins."""
    content = _content(file) if file.suffix in YAML else None
    return isinstance(content, dict) and "task" in content


def _may_name(text: str) -> bool:
    return text.endswith(_NAMED) and text.isprintable()


def _found(text: str, folders: tuple[Path, ...]) -> Iterator[Path]:
    if not _may_name(text):
        return
    for above, name in product(folders, dict.fromkeys((text, text.lstrip("/")))):
        try:
            if (above / name).is_file():
                yield above / name
                return
        except OSError:  # a name that is too long
            return


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _strings(inner)


def _texts(tree: ast.AST) -> Iterator[str]:
    """Yields each text of a module, and the paths that its texts form: `folder / "data" / "a.csv"`
    and `join(folder, "data", "a.csv")`."""
    for node in ast.walk(tree):
        if (text := text_of_node(node)) is not None:
            yield text
        elif isinstance(node, ast.BinOp | ast.Call):
            yield "/".join(_parts(node))


def _parts(node: ast.BinOp | ast.Call) -> list[str]:
    """The last parts of a path that are texts."""
    if isinstance(node, ast.Call):
        texts = takewhile(lambda text: text is not None, map(text_of_node, reversed(node.args)))
        return [text for text in texts if text is not None][::-1]
    last = text_of_node(node.right)
    if not isinstance(node.op, ast.Div) or last is None:
        return []
    return [*(_parts(node.left) if isinstance(node.left, ast.BinOp | ast.Call) else ()), last]


def text_of_node(node: ast.AST) -> str | None:
    """The value of a text."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _written(tree: ast.AST) -> set[str]:
    """The names of files in calls that write, or in the values of the variables in such calls."""
    bound: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for name in filter(None, map(name_of_node, targets)):
                bound.setdefault(name, set()).update(_texts(node.value))
    texts: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _writes(node):
            for part in ast.walk(node):
                texts |= bound.get(name_of_node(part) or "", set())
            texts |= set(_texts(node))
    return {text.rpartition("/")[2] for text in texts}


def name_of_node(node: ast.AST) -> str | None:
    """The last part of a name, such as `join` of `os.path.join`."""
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else None


def _writes(call: ast.Call) -> bool:
    name = name_of_node(call.func) or ""
    if name != "open":
        return _WRITER.fullmatch(name) is not None
    given = map(text_of_node, [*call.args, *(keyword.value for keyword in call.keywords)])
    return any(text is not None and _MODE.fullmatch(text) for text in given)
