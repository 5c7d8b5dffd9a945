"""Opens an untrusted file in a separate process with limits on time and memory.

    python _open.py SECONDS MEMORY model FOLDER  # its config.json and tokenizer.json
    python _open.py SECONDS MEMORY template      # a template, its settings: JSON on its input

SECONDS limits the processor time in seconds; MEMORY limits the address space in bytes.

This trusted code imports neither colearn, torch nor transformers, so that it starts in a tenth of a
second. The program detects files that take too much time or memory to open. It ignores damaged
files, since the code that reads these files later reports damage better. If a file takes too much,
the program prints a line on standard output and exits with code 3.
"""

from __future__ import annotations

import json
import re
import resource
import sys
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

_FOUND = 3
_MOST = {"layers": 2_000, "experts": 20_000, "parts": 500_000}
"""Maximum number of layers of a model, of experts, and of layers times experts. The largest
published values are 200, 1,000 and 25,000."""
_ENTRIES = 20_000
"""Maximum number of added tokens, end tokens or labels; Gemma 3 has 6,400 added tokens."""
_LISTS = {
    "tokenizer_config.json": (
        *("added_tokens_decoder", "extra_special_tokens", "additional_special_tokens"),
    ),
    "generation_config.json": ("eos_token_id",),
    "config.json": ("num_labels", "id2label"),
    "tokenizer.json": ("added_tokens",),
}
"""For each file, the keys of lists for which transformers takes a long time per entry."""
_LAYERS = re.compile(
    r"(^|_)(n_?layers?|num_layers|layers|layer_num|num_blocks|blocks|depths?)($|_)"
)
_EXPERTS = re.compile(r"(^|_)experts?($|_)")
_GROWTH = 64
"""Maximum ratio of tokens to characters of the test text. The same limit applies to the ratio of
decoded characters to characters of the test text."""
_TEXT = (
    "".join(map(chr, range(32, 127)))
    + " ".join(f"{sign * 32}!" for sign in ("a", "A", "0", " ", "_", "-", "\n", "é", "字", "🙂"))
    + "The quick brown fox jumps over the lazy dog, 12345 times; <s>|im_start|>user\n</s>\r\n\t"
    * 20
)
_ROOM = 20_000
"""Maximum number of characters of a tokenizer's rules that are added to the test text."""


class _TooMuch(Exception):
    """Raised when a file needs more time or memory than any legitimate file does."""


def main() -> None:
    """Open the files that the arguments name."""
    seconds, memory, kind, *rest = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    _, hard_limit = resource.getrlimit(resource.RLIMIT_AS)
    space = int(memory) if hard_limit == resource.RLIM_INFINITY else min(int(memory), hard_limit)
    resource.setrlimit(resource.RLIMIT_AS, (space, space))
    if kind == "template":
        _try(lambda: _open_template(**json.load(sys.stdin)), space)
        return
    folder = Path(rest[0])
    _try(lambda: _open_config(folder / "config.json"), space)
    for name, keys in _LISTS.items():
        _try(partial(_open_lists, folder / name, keys), space)
    _try(lambda: _open_tokenizer(folder / "tokenizer.json"), space)


def _try(opening: Callable[[], None], memory: int) -> None:
    """Open one file; a damaged file does not prevent the others from being opened."""
    try:
        opening()
    except _TooMuch as error:
        _end(str(error))
    except MemoryError:
        _end(f"needs more than {memory / 2**30:g} GB of memory")
    except Exception:  # noqa: BLE001 - damaged files raise nearly anything; their reader reports it
        pass
    except BaseException as crash:  # noqa: BLE001 - a panic of tokenizers is no Exception
        _end(f"ends its reader ({type(crash).__name__})")


def _end(reason: str) -> None:
    sys.stdout.write(reason)
    sys.exit(_FOUND)


def _open_config(path: Path) -> None:
    if not path.is_file():
        return
    counts = _counts(json.loads(path.read_bytes()), {"layers": (1, ""), "experts": (1, "")})
    for kind, (count, key) in counts.items():
        if count > _MOST[kind]:
            raise _TooMuch(f"has {count} {kind} ({key}); {_MOST[kind]} are the most")
    parts = counts["layers"][0] * counts["experts"][0]
    if parts > _MOST["parts"]:
        raise _TooMuch(f"has {parts} experts in all layers; {_MOST['parts']} are the most")


def _open_lists(path: Path, keys: Sequence[str]) -> None:
    data = json.loads(path.read_bytes()) if path.is_file() else {}
    for key in keys:
        value = data.get(key)
        count = value if key == "num_labels" else 0
        if isinstance(value, list | dict):
            count = len(value)
        if isinstance(count, int) and count > _ENTRIES:
            raise _TooMuch(f"has {count} entries in {key}; {_ENTRIES} are the most")


def _counts(data: Any, counts: dict[str, tuple[int, str]]) -> dict[str, tuple[int, str]]:
    """Maps each kind (layers or experts) to its largest count in the config and the key."""
    items = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in items:
        if isinstance(value, dict | list):
            _counts(value, counts)
        for kind, pattern in (("layers", _LAYERS), ("experts", _EXPERTS)):
            name = str(key)
            count = len(value) if isinstance(value, list) else value
            listed = isinstance(value, list) and kind == "layers" and name.startswith("layer")
            if isinstance(count, bool) or not isinstance(count, int | float):
                continue
            if (listed or pattern.search(name)) and count > counts[kind][0]:
                counts[kind] = int(min(count, 1e18)), name
    return counts


def _open_tokenizer(path: Path) -> None:
    if not path.is_file():
        return
    import tokenizers

    source = path.read_text(encoding="utf-8")
    tokenizer = tokenizers.Tokenizer.from_str(source)
    text = _TEXT + _own_texts(json.loads(source))
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    if len(ids) > _GROWTH * len(text):
        raise _TooMuch(f"makes {len(ids)} tokens of {len(text)} characters")
    written = tokenizer.decode(ids, skip_special_tokens=False)
    if len(written) > _GROWTH * len(text):
        raise _TooMuch(f"writes {len(written)} characters of {len(ids)} tokens")


def _own_texts(data: Any) -> str:
    """Return the strings in a tokenizer's rules. The rules are likely to change texts that contain
    these strings."""
    texts: list[str] = []
    waiting = [data.get(name) for name in ("normalizer", "pre_tokenizer", "decoder")]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node
        elif isinstance(node, str):
            texts.append(node)
    return "\n".join(texts)[:_ROOM]


def _open_template(template: str, settings: dict[str, Any]) -> None:
    """Render conversations in a Jinja environment that has those features of transformers'
    environment that affect the cost."""
    from jinja2.ext import loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(loopcontrols):
        """Jinja extension that also parses transformers' `generation` blocks."""

        tags = {"break", "continue", "generation"}  # noqa: RUF012 - as its base declares it

        def parse(self, parser: Any) -> Any:
            if parser.stream.current.value != "generation":
                return super().parse(parser)
            next(parser.stream)
            return parser.parse_statements(("name:endgeneration",), drop_needle=True)

    def fails(message: str) -> None:
        raise ValueError(message)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation]
    )
    environment.filters["tojson"] = lambda value, **_: json.dumps(value, default=str)
    environment.globals |= {"raise_exception": fails, "strftime_now": lambda form: form}
    compiled = environment.from_string(template)
    system = {"role": "system", "content": "S"}
    turns = [
        {"role": "user", "content": "U"},
        {"role": "assistant", "content": "A"},
        {"role": "user", "content": "V"},
    ]
    for messages, prompted in product(([system, *turns], turns), (True, False)):
        variables = {
            "messages": messages,
            "add_generation_prompt": prompted,
            "bos_token": "<s>",
            "eos_token": "</s>",
            "tools": None,
            "documents": None,
        }
        try:
            text = compiled.render(**variables | settings)
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001 - a template may refuse a role
            continue
        if len(text) > 1_000_000:
            raise _TooMuch(f"writes {len(text)} characters for a conversation of four")


if __name__ == "__main__":
    main()
