"""Every kind of file that a command reads: a whole one, its damage, and the command."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import yaml
from malformed_files import Damage, of_bytes, of_rows, of_text, of_values, of_yaml

from colearn.config import shipped_configs

SHIPPED = Path(str(shipped_configs()["quickstart"])).parent
PROBLEMS, DEEPSPEED = SHIPPED.parent / "tasks/dpomdp/problems", SHIPPED / "deepspeed"
REWARD = "statistics:fmean"
FOLDER, MODEL = b"@FOLDER@", b"@MODEL@"
"""In a file's text: the folder that it lies in, and that of a small model."""


@dataclass(frozen=True)
class Reader:
    """A command that reads a file."""

    name: str
    file: str
    whole: bytes
    damages: Callable[[], Iterator[Damage]]
    arguments: tuple[str, ...]
    beside: Mapping[str, bytes] = field(default_factory=dict)

    def write(self, folder: Path, model: str, content: bytes) -> list[str]:
        """Write the files, one of them with this content; returns the command's arguments."""
        for name, text in {**self.beside, self.file: content}.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.replace(FOLDER, bytes(folder)).replace(MODEL, model.encode()))
        return [word.replace(FOLDER.decode(), str(folder)) for word in self.arguments]


CONFIG: dict[str, Any] = {
    "task": {"name": "notes", "horizon": 1, "items": 2},
    "algorithm": {"name": "magrpo", "rollout": {"name": "parallel", "k": 2}},
    "models": {"*": {"path": MODEL.decode(), "lora": {"rank": 2}}},
    "train": {"environment_steps": 4, "episodes": 2},
    "run": {"device": "cpu"},
}
DRY = ("train", "@FOLDER@/config.yaml", "--dry-run")


def _text(value: Any) -> bytes:
    return (value if isinstance(value, str) else json.dumps(value)).encode()


def _yaml(value: Any) -> bytes:
    return yaml.safe_dump(value, allow_unicode=True, sort_keys=False).encode()


def _lines(rows: list[Any]) -> bytes:
    return b"".join(_text(row) + b"\n" for row in rows)


def _of_task(title: str, file: str, whole: bytes, damages: Any, /, **task: Any) -> Reader:
    config = {"config.yaml": _yaml({**CONFIG, "task": task})}
    return Reader(title, file, whole, damages, DRY, config)


def _rows_of_task(
    title: str, key: str, rows: list[dict[str, Any]], suffix: str = "jsonl", /, **task: Any
) -> Reader:
    """Rows as JSON lines, as one list (json), or, where all are texts, as csv."""
    if suffix == "csv":
        texts = [
            {k: v if isinstance(v, str) else json.dumps(v) for k, v in row.items()} for row in rows
        ]
        lines = [",".join(texts[0]), *(",".join(map(_quoted, row.values())) for row in texts), ""]
        whole = "\n".join(lines).encode()
    else:
        whole = _lines(rows) if suffix == "jsonl" else _text(rows)

    def damages() -> Iterator[Damage]:
        if suffix == "csv":
            return of_csv(whole)
        values = of_rows(rows) if suffix == "jsonl" else of_values(rows)
        return chain(of_bytes(whole, lines=suffix == "jsonl"), values)

    section = {**task, key: f"@FOLDER@/data.{suffix}"}
    return _of_task(f"{title} as {suffix}", f"data.{suffix}", whole, damages, **section)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def of_csv(whole: bytes) -> Iterator[Damage]:
    yield from of_bytes(whole, lines=True)
    header, _, rest = whole.partition(b"\n")
    names = header.split(b",")
    yield Damage("a column twice", b",".join([names[0], *names]) + b"\n" + rest, True)
    yield Damage("a column without a name", header + b",\n" + rest, True)
    yield Damage("a header alone", header + b"\n", True)
    yield Damage("no header", rest, False)
    yield Damage("a field more", whole + b"a," * (len(names) + 1) + b"\n", True)
    yield Damage("a quote that stays open", whole + b'"a\n', True)
    yield Damage("a letter behind a quote", whole.replace(b'"\n', b'"x\n', 1), True)
    yield Damage("a quote within a field", whole.replace(b'"\n', b'"x"\n', 1), True)
    yield Damage("quotes behind a space", whole.replace(b'\n"', b'\n "', 1), True)
    yield Damage("semicolons", whole.replace(b'","', b'";"'), len(names) > 1)
    yield Damage("a field of 20 MB", whole + b'"' + b"a" * 20_000_000 + b'"\n', True)


async def play(item: Any, endpoints: Any) -> float:
    """A gateway's program: one request."""
    from tests.helpers.gateway_programs import ask, user

    await ask(endpoints["ada"], [user("hello")])
    return 1.0


ANSWERS = [{"question": f"What is {n} + 1?", "answer": str(n + 1)} for n in range(6)]
SEARCHED = [{"question": f"Where is {n}?", "answers": ["Lima"], "titles": ["Lima"]} for n in "abc"]
SUMS = [{"problem": f"{n} + 1", "answer": str(n + 1)} for n in range(6)]
FUNCTIONS = [
    {
        "name": f"add_{n}",
        "question": f"Add {n} to a number.",
        "entry_point": f"add_{n}",
        "asserts": f"assert add_{n}(1) == {n + 1}",
        "preamble": "import math",
        "solutions": [f"def add_{n}(x):\n    return x + {n}"],
    }
    for n in range(6)
]
PROGRAMS = [
    {"name": f"add_{n}", "question": f"Print {n}.", "inputs": ["1"], "outputs": [str(n)]}
    for n in range(6)
]
HUMAN = [
    {
        "task_id": f"x/{n}",
        "prompt": f'def add_{n}(a):\n    """Return a + {n}."""\n',
        "entry_point": f"add_{n}",
        "test": f"def check(candidate):\n    assert candidate(1) == {n + 1}\n",
        "aux": "def aux(a):\n    return a\n",
        "main": f"def add_{n}(a):\n    return aux(a) + {n}\n",
    }
    for n in range(6)
]
POSTS = [{"prompt": f"A long text of {n} words that nobody wants to read."} for n in range(20)]
HOUSES = [
    {
        "task_id": "hut",
        "inventory": {"C": "white_concrete", "A": "air"},
        "target_spec": {
            "type": "y_layers",
            "size": [2, 1, 2],
            "layers": [{"y": 0, "rows": ["CC", "CA"]}],
        },
        "count": {"C": 3, "A": 1},
        "variant": "x",
    }
]
GRAPH = {
    "items": "questions.jsonl",
    "tools": [],
    "nodes": [
        {"name": "query", "role": "rewriter", "prompt": "Search words for: {question}"},
        {"name": "answer", "role": "answerer", "prompt": "{query} Answer: {question}"},
        {
            "name": "again",
            "when": {"field": "answer", "contains": "unknown"},
            "next": "query",
            "at_most": 2,
        },
    ],
    "rewards": [{"score": "f1", "field": "answer", "gold": "answers", "weight": 1.0}],
}
QUESTIONS = [{"question": f"Who is {n}?", "answers": [f"{n}"]} for n in "abcdef"]
DIALOGUES = [
    {
        "agent": "ada",
        "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": "ash"},
        ],
    }
] * 2
SUITE = {
    "name": "mine",
    "title": "Mine",
    "size": "tiny",
    "sizes": {"tiny": {"sudoku": "tiny/stronger_mas_sudoku"}},
    "rows": {"mas": "MAS", "at_grpo": "AT-GRPO"},
    "columns": {"sudoku": {"title": "Sudoku", "metrics": [{"metric": "solved", "title": "S"}]}},
    "workers": 2,
}
AGENT = {
    "format": 1,
    "agent": "ada",
    "task": "notes",
    "task_settings": {},
    "algorithm": "magrpo",
    "system": "be brief",
    "chat": "auto",
    "window": 64,
    "sampling": {"max_tokens": 4, "temperature": 1.0},
    "dtype": "float32",
    "weights": "merged",
}


def readers() -> list[Reader]:
    """All of them, but for those of a run's folder."""
    problem = (PROBLEMS / "two_step.dpomdp").read_bytes()
    houses, agent = _text(HOUSES), _text(AGENT)
    zero = (DEEPSPEED / "zero2.json").read_bytes()
    questions = _lines(QUESTIONS)
    items = {"questions.jsonl": questions}
    graph = {"graph.yaml": _yaml(GRAPH)}
    to_learn = {"config.yaml": _yaml(CONFIG)}
    taught = ("sft", "@FOLDER@/config.yaml", "--data", "@FOLDER@/data.jsonl", "--out", "@FOLDER@")
    shard = {
        **CONFIG,
        "run": {"device": "cpu", "learner": {"name": "deepspeed", "config": "@FOLDER@/zero.json"}},
    }
    passages = _lines([{"title": "Lima", "text": "Lima is the capital of Peru."}] * 3)
    return [
        *_configs(),
        *(
            _rows_of_task(
                "dataset", "path", ANSWERS, kind, name="dataset", prompt="question", reward=REWARD
            )
            for kind in ("jsonl", "json", "csv")
        ),
        _parquet(),
        _rows_of_task("search", "data", SEARCHED, name="search_loop", corpus="@FOLDER@"),
        _rows_of_task("math", "data", SUMS, "csv", name="math_duo"),
        _rows_of_task("functions", "data", FUNCTIONS, name="coder_tester"),
        _rows_of_task("programs", "data", PROGRAMS, name="coder_tester"),
        _rows_of_task("humaneval", "data", HUMAN, "json", name="coop_humaneval"),
        _rows_of_task("texts", "data", POSTS, name="tldr", field="prompt"),
        _of_task(
            "corpus",
            "corpus/a.jsonl",
            passages,
            lambda: of_bytes(passages, lines=True),
            name="search_loop",
            corpus="@FOLDER@/corpus",
        ),
        _of_task(
            "dpomdp",
            "mine.dpomdp",
            problem,
            lambda: chain(of_bytes(problem), of_text(problem.decode())),
            name="dpomdp",
            file="@FOLDER@/mine.dpomdp",
            horizon=2,
        ),
        _of_task(
            "houses",
            "houses.json",
            houses,
            lambda: chain(of_bytes(houses), of_values(HOUSES)),
            name="house_build",
            houses_file="@FOLDER@/houses.json",
        ),
        Reader(
            "graph",
            "graph.yaml",
            _yaml(GRAPH),
            lambda: chain(of_bytes(_yaml(GRAPH)), of_yaml(GRAPH)),
            DRY,
            {"config.yaml": _yaml({**CONFIG, "task": "@FOLDER@/graph.yaml"}), **items},
        ),
        Reader(
            "a graph's items",
            "questions.jsonl",
            questions,
            lambda: chain(of_bytes(questions, lines=True), of_rows(QUESTIONS)),
            DRY,
            {"config.yaml": _yaml({**CONFIG, "task": "@FOLDER@/graph.yaml"}), **graph},
        ),
        Reader(
            "dialogues",
            "data.jsonl",
            _lines(DIALOGUES),
            lambda: chain(of_bytes(_lines(DIALOGUES), lines=True), of_rows(DIALOGUES)),
            taught,
            to_learn,
        ),
        Reader(
            "deepspeed",
            "zero.json",
            zero,
            lambda: chain(of_bytes(zero), of_values(json.loads(zero))),
            DRY,
            {"config.yaml": _yaml(shard)},
        ),
        _of_task(
            "gateway items",
            "items.jsonl",
            questions,
            lambda: chain(of_bytes(questions, lines=True), of_rows(QUESTIONS)),
            name="gateway",
            agents=["ada"],
            items="@FOLDER@/items.jsonl",
            play="file_readers:play",
        ),
        Reader(
            "agent",
            "agent.json",
            agent,
            lambda: chain(of_bytes(agent), of_values(AGENT)),
            ("serve", "@FOLDER@", "--device", "nosuch"),
        ),
    ]


def _configs() -> list[Reader]:
    whole, suite = _yaml(CONFIG), _yaml(SUITE)
    return [
        Reader(
            "config", "config.yaml", whole, lambda: chain(of_bytes(whole), of_yaml(CONFIG)), DRY
        ),
        Reader(
            "suite",
            "suite.yaml",
            suite,
            lambda: chain(of_bytes(suite), of_yaml(SUITE)),
            ("compare", "@FOLDER@/suite.yaml", "--dry-run"),
        ),
    ]


def _parquet() -> Reader:
    import pyarrow
    import pyarrow.parquet

    file = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(ANSWERS), file)
    whole = file.getvalue()
    return _of_task(
        "dataset as parquet",
        "data.parquet",
        whole,
        lambda: of_bytes(whole, binary=True),
        name="dataset",
        path="@FOLDER@/data.parquet",
        prompt="question",
        reward=REWARD,
    )
