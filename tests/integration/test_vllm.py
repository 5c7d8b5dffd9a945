"""vLLM is the second generator: the same log-probabilities, tokens and errors as the first."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from vllm_cases import byte_tokenizer, play, qwen, rows_of

from colearn.agents import ChatFormat
from colearn.config import LoRASettings, ModelSettings, load_config
from colearn.contract import Request, Sampling
from colearn.errors import ConfigError, MissingExtra
from colearn.generate.transformers import TransformersGenerator, Voice
from colearn.generate.vllm import ParityError, VLLMGenerator
from colearn.learn.local import LocalLearner
from colearn.learn.score import evaluate
from colearn.models.base import Base
from colearn.models.network import Network

pytestmark = pytest.mark.vllm
pytest.importorskip("vllm", reason="needs the vllm extra, in an environment of its own")

TOLERANCE = 1e-3
SAMPLING = {
    "hot": Sampling(temperature=1.0, max_tokens=24),
    "cut": Sampling(temperature=0.7, top_p=0.8, top_k=40, max_tokens=15),
    "cold": Sampling(temperature=0.0, max_tokens=9),
}
ADAPTERS = {"hot": "first", "cut": "second", "cold": None}


@dataclass
class Setup:
    base: Base
    voices: Mapping[str, Voice]
    generator: VLLMGenerator

    @property
    def learned(self) -> str:
        """The agent whose weights the tests train."""
        return "hot"

    def learner(self) -> LocalLearner:
        network = Network(self.base, self.voices[self.learned].adapter)
        settings = ModelSettings(path="unused", learning_rate=1e-2)
        return LocalLearner("actor", network, settings, token_budget=4096)


@pytest.fixture(scope="module", params=["full", "tied", "lora"])
def setup(request: pytest.FixtureRequest) -> Iterator[Setup]:
    base = Base(qwen(tied=request.param == "tied"))
    if request.param == "lora":
        base.model.requires_grad_(False)
        for name, rank in (("first", 4), ("second", 8)):
            base.add_adapter(name, LoRASettings(rank=rank, alpha=8.0))
            for parameter in base.adapter_parameters(name).values():
                torch.nn.init.normal_(parameter, std=0.2)
    chat = ChatFormat(byte_tokenizer(), chat="plain")
    voices = {
        agent: Voice(
            adapter=ADAPTERS[agent] if request.param == "lora" else None,
            chat=chat,
            sampling=sampling,
        )
        for agent, sampling in SAMPLING.items()
    }
    generator = VLLMGenerator(base, voices)
    yield Setup(base, voices, generator)
    generator.close()


def teacher_gap(setup: Setup) -> float:
    """Largest gap between what was recorded and the teacher-forced pass over packed trees."""
    gaps = []
    for agent, row in rows_of(play(setup.generator, setup.voices, forks=3), setup.voices).items():
        network = Network(setup.base, setup.voices[agent].adapter)
        ((outputs,),) = evaluate(network, [[row]], token_budget=4096)
        assert len(row.behaviour) == row.action_tokens > 0
        gaps.append((outputs.logprobs - torch.tensor(row.behaviour)).abs().max().item())
    return max(gaps)


def train(setup: Setup, steps: int) -> None:
    learner = setup.learner()
    tree = play(setup.generator, setup.voices)[setup.learned]
    row = rows_of({setup.learned: tree}, setup.voices)[setup.learned]
    for _ in range(steps):
        prepared = learner.prepare([[row]])
        learner.accumulate(prepared, lambda outputs, _: (-outputs.logprobs.mean(), {}))
        learner.step(0.0)


def test_recorded_logprobs_are_the_teacher_forced_ones(setup: Setup) -> None:
    assert teacher_gap(setup) < TOLERANCE


def test_they_are_after_three_updates_and_a_sync(setup: Setup) -> None:
    train(setup, 3)
    setup.generator.sync()
    assert setup.generator.gap < TOLERANCE
    assert teacher_gap(setup) < TOLERANCE


def test_stale_weights_are_found_by_the_check(setup: Setup) -> None:
    train(setup, 1)
    with pytest.raises(ParityError, match="nats"):
        setup.generator.check()
    assert setup.generator.gap > 10 * TOLERANCE
    with pytest.raises(ParityError, match="sync"):
        teacher_gap(setup)
    setup.generator.sync()
    assert teacher_gap(setup) < TOLERANCE


def test_greedy_tokens_are_those_of_the_first_generator(setup: Setup) -> None:
    first = TransformersGenerator(setup.base, setup.voices)
    expected = play(first, setup.voices, greedy=True)
    found = play(setup.generator, setup.voices, greedy=True)
    for agent, tree in expected.items():
        for ours, theirs in zip(found[agent].nodes[1:], tree.nodes[1:], strict=True):
            mine, other = ours.actions[agent], theirs.actions[agent]
            assert (mine.tokens, mine.text, mine.finish) == (other.tokens, other.text, other.finish)
            assert mine.logprobs == pytest.approx(other.logprobs, abs=TOLERANCE)


def test_a_draw_depends_on_seed_and_history_alone(setup: Setup) -> None:
    tokens = setup.voices["hot"].chat.open("seeded").tokens
    alone = Request(agent="hot", session=None, tokens=tokens, seeds=(7,))
    other = Request(agent="cut", session=None, tokens=tokens, seeds=(7, 8))
    together = Request(agent="hot", session=None, tokens=tokens, seeds=(3, 7, 2**62))
    state = torch.get_rng_state()
    ((single,),) = setup.generator.generate([alone])
    _, three = setup.generator.generate([other, together])
    assert three[1].action.tokens == single.action.tokens
    assert len({sampled.action.tokens for sampled in three}) == 3
    assert torch.equal(torch.get_rng_state(), state), "the run's own random stream moved"


def test_a_second_turn_prefills_only_new_blocks(setup: Setup) -> None:
    generator, chat, block = setup.generator, setup.voices["hot"].chat, 32
    setup.generator.engine.llm.reset_prefix_cache()
    before = generator.prefilled_tokens
    opening = chat.open("A long history. " * 20).tokens
    request = Request(agent="hot", session=None, tokens=opening, seeds=(1, 2, 3, 4))
    (found,) = generator.generate([request])
    forked = generator.prefilled_tokens - before
    assert len(opening) <= forked <= len(opening) + 3 * block, "forks share the prefill"
    more = chat.continuation("and then?", found[0].action).tokens
    before = generator.prefilled_tokens
    again = Request(agent="hot", session=found[0].session, tokens=more, seeds=(5,))
    ((sampled,),) = generator.generate([again])
    new = len(found[0].action.tokens) + len(more)
    assert generator.prefilled_tokens - before <= new + block
    assert sampled.session.length == found[0].session.length + len(more) + len(
        sampled.action.tokens
    )


def test_end_token_length_and_stop_string_are_told_apart() -> None:
    base, tokenizer = Base(qwen(seed=5)), byte_tokenizer()
    chat, ending = ChatFormat(tokenizer, chat="plain"), ChatFormat(tokenizer, chat="plain")
    free = Voice(adapter=None, chat=chat, sampling=Sampling(max_tokens=40))
    opening = chat.open("go").tokens
    ((long,),) = TransformersGenerator(base, {"free": free}).generate(
        [Request(agent="free", session=None, tokens=opening, seeds=(0,))], greedy=True
    )
    drawn = long.action.tokens
    letter = next(text for token in drawn[2:] if (text := tokenizer.decode([token])).isalpha())
    ending.end_ids = frozenset({drawn[9]})
    stopping = Sampling(max_tokens=40, stop=(letter,))
    voices = {
        "free": free,
        "stopping": Voice(adapter=None, chat=chat, sampling=stopping),
        "ending": Voice(adapter=None, chat=ending, sampling=free.sampling),
    }
    generator = VLLMGenerator(base, voices)
    requests = [Request(agent=agent, session=None, tokens=opening, seeds=(0,)) for agent in voices]
    found = [one.action for (one,) in generator.generate(requests, greedy=True)]
    expected = [
        one.action for (one,) in TransformersGenerator(base, voices).generate(requests, greedy=True)
    ]
    generator.close()
    assert [action.tokens for action in found] == [action.tokens for action in expected]
    assert [action.finish for action in found] == [action.finish for action in expected]
    assert [action.finish for action in found] == ["length", "stop", "end"]
    assert found[1].text.endswith(letter) and found[2].tokens[-1] == drawn[9]


@pytest.mark.parametrize(
    ("window", "sampling", "key"),
    [
        (64, Sampling(), "agents.ann.window"),
        (None, Sampling(temperature=0.001), "agents.ann.sampling.temperature"),
    ],
)
def test_what_vllm_cannot_honour_is_one_line(
    window: int | None, sampling: Sampling, key: str
) -> None:
    chat = ChatFormat(byte_tokenizer(), chat="plain")
    voice = Voice(adapter=None, chat=chat, sampling=sampling, window=window)
    with pytest.raises(ConfigError, match="transformers") as error:
        VLLMGenerator(Base(qwen()), {"ann": voice})
    assert str(error.value).startswith(key) and "\n" not in str(error.value)


def test_a_history_beyond_the_engine_is_an_error(setup: Setup) -> None:
    request = Request(agent="hot", session=None, tokens=(5,) * 4090, seeds=(1,))
    with pytest.raises(ConfigError, match="exceed"):
        setup.generator.generate([request])


def test_without_vllm_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    chat = ChatFormat(byte_tokenizer(), chat="plain")
    voice = Voice(adapter=None, chat=chat, sampling=Sampling())
    with pytest.raises(MissingExtra, match="vllm"):
        VLLMGenerator(Base(qwen()), {"ann": voice})


@pytest.mark.parametrize("lora", [False, True])
def test_two_iterations_train_on_fresh_weights(lora: bool, tmp_path: Any) -> None:
    from colearn.experiment.loop import Experiment

    folder = tmp_path / "model"
    qwen().save_pretrained(folder)
    byte_tokenizer().save_pretrained(folder)
    model: dict[str, Any] = {"path": str(folder), "learning_rate": 1e-2}
    if lora:
        model["lora"] = {"rank": 4, "alpha": 16}
    config = load_config(
        {
            "task": {"name": "str_build", "prompt": "compact", "font": "small", "horizon": 2},
            "algorithm": {"name": "magrpo", "rollout": {"k": 2}},
            "models": {"*": model},
            "agents": {"*": {"chat": "plain", "sampling": {"max_tokens": 12}}},
            "train": {"episodes": 1, "environment_steps": 1000},
            "evaluation": {"episodes": 1},
            "run": {"generator": "vllm", "device": "cpu"},
        }
    )
    experiment = Experiment(config, tmp_path / "run")
    try:
        for _ in range(2):
            metrics = experiment._iteration(None, [])
            gaps = [value for key, value in metrics.items() if key.endswith("/behaviour_gap")]
            assert len(gaps) == len(experiment.config.models)
            assert max(gaps) < TOLERANCE
    finally:
        for generator in experiment.parts.generators:
            generator.close()
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["iteration"] for line in lines] == [1, 2]
