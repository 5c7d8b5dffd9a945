"""A teacher behind a vLLM server: it scores as the same model in this process does, and what it
cannot score is refused."""

from __future__ import annotations

import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from fake_vllm_server import FakeVLLMServer
from taught import taught
from tiny import register, save_model
from transformers import AutoModelForCausalLM, AutoTokenizer
from vllm_cases import byte_tokenizer, qwen

from colearn.config import load_config, resolve
from colearn.contract.rows import ActionTokens, Piece, Row
from colearn.engines.served_teacher import ServedTeacher, branches
from colearn.engines.server_process import ServerProcess, free_port
from colearn.errors import ConfigError, ServerLost
from colearn.models.base import Base
from colearn.models.network import Network
from colearn.runs.record import open_run, read_run
from colearn.training.learners.batch import evaluate
from colearn.training.loop import Experiment

FIELD = "models.ada.teacher"

TREE = Row(
    tokens=tuple(range(5, 25)),
    pieces=(
        Piece(0, 4, -1, 0, 0),
        Piece(4, 7, 0, 4, 0),  # an action
        Piece(7, 10, 0, 4, 0),  # another answer to the same prompt
        Piece(10, 12, 1, 7, 0),
        Piece(12, 16, 3, 9, 0),  # continues the first action
        Piece(16, 16, 2, 7, 0),  # an observation without tokens
        Piece(16, 20, 3, 9, 0),
    ),
    spans=(
        ActionTokens(node=1, start=4, end=7, before=3),
        ActionTokens(node=2, start=7, end=10, before=3),
        ActionTokens(node=3, start=12, end=16, before=11),
        ActionTokens(node=4, start=16, end=20, before=11),
    ),
)


@pytest.fixture(autouse=True)
def _notes(monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch, notes="tiny:Notes")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A student and its teacher, which has other weights."""
    folder = tmp_path_factory.mktemp("models")
    return save_model(folder / "student"), save_model(folder / "teacher", seed=1)


@pytest.fixture
def server(folders: tuple[str, str]) -> Iterator[FakeVLLMServer]:
    server = FakeVLLMServer(Path(folders[1]))
    yield server
    server.close()


@pytest.fixture
def teacher(server: FakeVLLMServer, folders: tuple[str, str]) -> Iterator[ServedTeacher]:
    tokenizer = AutoTokenizer.from_pretrained(folders[0])
    teacher = ServedTeacher(server.url, tokenizer, field=FIELD)
    yield teacher
    teacher.close()


def test_the_branches_of_a_tree_hold_each_action_token_once():
    last, first = sorted(branches(TREE), key=lambda branch: max(branch.places), reverse=True)[:2]
    assert last.tokens == (5, 6, 7, 8, 9, 10, 11, 15, 16, 21, 22, 23, 24)
    assert {index: last.tokens[place] for index, place in last.places.items()} == {
        index: TREE.tokens[index] for index in (4, 5, 6, 16, 17, 18, 19)
    }
    assert first.tokens == (5, 6, 7, 8, 9, 10, 11, 15, 16, 17, 18, 19, 20)
    assert [branch.tokens for branch in branches(TREE)][2] == (5, 6, 7, 8, 12, 13, 14)


def test_a_served_teacher_scores_a_tree_as_its_model_does_in_this_process(
    teacher: ServedTeacher, folders: tuple[str, str]
):
    network = Network(Base(AutoModelForCausalLM.from_pretrained(folders[1])))
    (here,) = evaluate(network, [TREE], token_budget=64)
    (served,) = teacher.evaluate([TREE])
    assert served.logprobs.dtype == torch.float32
    assert served.logprobs.tolist() == pytest.approx(here.logprobs.tolist(), abs=1e-5)


def test_a_run_learns_the_same_from_a_teacher_in_this_process_and_from_a_server(
    server: FakeVLLMServer,
    folders: tuple[str, str],
    tmp_path: Path,
):
    told = []
    for name, teacher in (("here", folders[1]), ("served", server.url)):
        Experiment(load_config(taught(folders[0], teacher)), tmp_path / name).run()
        told.append([line.metrics for line in read_run(open_run(tmp_path / name)).updates])
    here, served = told
    assert here[0]["ada/teacher_kl"] > 0.1
    for metric in ("ada/teacher_kl", "ben/teacher_kl", "ada/grad_norm"):
        assert [m[metric] for m in served] == pytest.approx([m[metric] for m in here], rel=1e-4)


@pytest.mark.vllm
def test_a_real_vllm_server_scores_a_tree_as_its_model_does_in_this_process(tmp_path: Path):
    pytest.importorskip("vllm", reason="needs the vllm extra, in an environment of its own")
    model, tokenizer = qwen(), byte_tokenizer()
    model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    url = f"http://127.0.0.1:{free_port()}"
    words = ["-m", "vllm.entrypoints.openai.api_server", "--model", str(tmp_path / "model")]
    words += ["--port", url.rpartition(":")[2], "--dtype", "float32", "--enforce-eager"]
    words += ["--max-model-len", "256", "--kv-cache-memory-bytes", str(2**27)]
    process = ServerProcess(
        [sys.executable, *words],
        environment={"VLLM_CPU_OMP_THREADS_BIND": "nobind", "VLLM_NO_USAGE_STATS": "1"},
        log=tmp_path / "server.log",
    )
    try:
        until_healthy(url, process)
        served = ServedTeacher(url, tokenizer, field=FIELD)
        (here,) = evaluate(Network(Base(model)), [TREE], token_budget=64)
        (there,) = served.evaluate([TREE])
        served.close()
    finally:
        process.close()
    assert there.logprobs.tolist() == pytest.approx(here.logprobs.tolist(), abs=1e-3)


def until_healthy(url: str, process: ServerProcess) -> None:
    while True:
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=5):
                return
        except OSError:
            if not process.running:
                raise process.failed() from None
            time.sleep(0.5)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"sampling": {"max_tokens": 4, "temperature": 0.7}}, "sampling.temperature"),
        ({"sampling": {"max_tokens": 4, "anneal": {"start": 2.0}}}, "sampling.anneal"),
        ({"window": 8}, "window"),
    ],
)
def test_answers_that_a_server_cannot_score_are_refused(change: dict[str, Any], line: str):
    refused = taught("embedded", "http://127.0.0.1:1") | {"agents": {"*": change}}
    with pytest.raises(
        ConfigError, match=rf"^agents\.\w+\.{line}: models\.ada\.teacher is a server"
    ):
        resolve(load_config(refused))


def test_a_server_that_is_not_there_is_one_line(folders: tuple[str, str]):
    tokenizer = AutoTokenizer.from_pretrained(folders[0])
    with pytest.raises(ConfigError, match=rf"^{FIELD}: no vLLM server at http://127\.0\.0\.1:1 "):
        ServedTeacher("http://127.0.0.1:1", tokenizer, field=FIELD)


def test_a_server_of_another_tokenizer_is_refused(server: FakeVLLMServer, tmp_path: Path):
    other = AutoTokenizer.from_pretrained(save_model(tmp_path / "other", merges=True))
    with pytest.raises(ConfigError, match=rf"^{FIELD}: .* has another tokenizer"):
        ServedTeacher(server.url, other, field=FIELD)


def test_a_history_that_is_too_long_for_the_server_names_the_option(teacher: ServedTeacher):
    long = Row(
        tokens=(7,) * 4096,
        pieces=(Piece(0, 4095, -1, 0, 0), Piece(4095, 4096, 0, 4095, 0)),
        spans=(ActionTokens(node=1, start=4095, end=4096, before=4094),),
    )
    with pytest.raises(ConfigError, match=rf"^{FIELD}: .* 4096 tokens, .* --max-model-len 4097"):
        teacher.evaluate([long])


def _without_scores(answer: Any) -> Any:
    return {"choices": [{"prompt_logprobs": [None] * 13}]}


def _of_other_tokens(answer: Any) -> Any:
    for entry in answer["choices"][0]["prompt_logprobs"][1:]:
        entry["0"] = entry.popitem()[1]
    return answer


def _missing(answer: Any) -> Any:
    for entry in answer["choices"][0]["prompt_logprobs"][1:]:
        next(iter(entry.values()))["logprob"] = -9999.0
    return answer


def _short(answer: Any) -> Any:
    answer["choices"][0]["prompt_logprobs"].pop()
    return answer


@pytest.mark.parametrize(
    ("fault", "line"),
    [
        (_without_scores, "without the log-probability"),
        (_of_other_tokens, "without the log-probability"),
        (_missing, "without the log-probability"),
        (_short, "scored 12 tokens of a history of 13"),
        (lambda answer: {}, "none of vLLM"),
    ],
)
def test_an_answer_without_the_scores_of_the_asked_tokens_ends_the_update(
    teacher: ServedTeacher,
    server: FakeVLLMServer,
    monkeypatch: pytest.MonkeyPatch,
    fault: Callable[[Any], Any],
    line: str,
):
    honest = server.on_v1_completions
    monkeypatch.setattr(server, "on_v1_completions", lambda body: (200, fault(honest(body)[1])))
    row = Row(
        tokens=tuple(range(5, 18)),
        pieces=(Piece(0, 4, -1, 0, 0), Piece(4, 13, 0, 4, 0)),
        spans=(ActionTokens(node=1, start=4, end=13, before=3),),
    )
    with pytest.raises(ServerLost, match=rf"^{FIELD}: the server at .*{line}.*--resume$"):
        teacher.evaluate([row])
