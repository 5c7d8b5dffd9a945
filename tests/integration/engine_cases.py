"""What every engine of tokens passes: a module of tests imports all of it, and says which kind of
generator `setup` builds by a fixture `kind`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import pytest
import torch
from asking import token_request
from local_learners import local_learner
from vllm_cases import byte_tokenizer, play, qwen, rows_of

from colearn.config import LoRASettings, ModelSettings
from colearn.contract import GeneratorKind, Sampling
from colearn.contract.weight_sync import Publish
from colearn.engines.checked_engine import CheckedEngine, ParityError
from colearn.engines.transformers import TransformersEngine
from colearn.errors import ConfigError
from colearn.models.base import Base
from colearn.models.network import Network
from colearn.models.weight_update import weight_update
from colearn.rollout.agents import AgentSpec, ChatFormat
from colearn.training.learners.batch import evaluate
from colearn.training.learners.learner import NetworkLearner

TOLERANCE = 1e-3
SAMPLING = {
    "hot": Sampling(temperature=1.0, max_tokens=10),
    "cut": Sampling(temperature=0.7, top_p=0.8, top_k=40, max_tokens=7),
    "cold": Sampling(temperature=0.0, max_tokens=4),
}
ADAPTERS = {"hot": "first", "cut": "second", "cold": None}


@dataclass
class Setup:
    base: Base
    voices: Mapping[str, AgentSpec]
    generator: CheckedEngine

    @property
    def learned(self) -> str:
        """The agent whose weights the tests train."""
        return "hot"

    def learner(self) -> NetworkLearner:
        network = Network(self.base, self.voices[self.learned].adapter)
        settings = ModelSettings(path="unused", learning_rate=1e-2)
        return local_learner("actor", network, settings, token_budget=4096)


@pytest.fixture(scope="module", params=["tied", "lora"])
def setup(request: pytest.FixtureRequest, kind: GeneratorKind) -> Iterator[Setup]:
    base = Base(qwen(tied=request.param != "lora"))
    if request.param == "lora":
        base.model.requires_grad_(False)
        for name, rank in (("first", 4), ("second", 8)):
            base.add_adapter(name, LoRASettings(rank=rank, alpha=8.0))
            for parameter in base.adapter_parameters(name).values():
                torch.nn.init.normal_(parameter, std=0.2)
    chat = ChatFormat(byte_tokenizer(), chat="plain")
    voices = {
        agent: AgentSpec(
            adapter=ADAPTERS[agent] if request.param == "lora" else None,
            chat=chat,
            sampling=sampling,
        )
        for agent, sampling in SAMPLING.items()
    }
    generator = kind.build(base, voices)
    assert isinstance(generator, CheckedEngine)
    generator.follow(_publish(base, voices))
    yield Setup(base, voices, generator)
    generator.close()


def _publish(base: Base, voices: Mapping[str, AgentSpec]) -> list[Publish]:
    adapters = sorted({voice.adapter for voice in voices.values()}, key=str)
    return [partial(weight_update, Network(base, adapter), 5) for adapter in adapters]


def teacher_gap(setup: Setup) -> float:
    """Largest gap between what was recorded and the teacher-forced pass over packed trees."""
    gaps = []
    for agent, row in rows_of(play(setup.generator, setup.voices, forks=2), setup.voices).items():
        network = Network(setup.base, setup.voices[agent].adapter)
        (outputs,) = evaluate(network, [row], token_budget=4096)
        assert len(row.behaviour) == row.action_tokens > 0
        gaps.append((outputs.logprobs - torch.tensor(row.behaviour)).abs().max().item())
    return max(gaps)


def train(setup: Setup, steps: int) -> None:
    learner = setup.learner()
    tree = play(setup.generator, setup.voices)[setup.learned]
    row = rows_of({setup.learned: tree}, setup.voices)[setup.learned]
    for _ in range(steps):
        learner.accumulate([row], lambda outputs, _: (-outputs.logprobs.mean(), {}))
        learner.step(0.0)


def test_recorded_logprobs_are_the_teacher_forced_ones_before_and_after_updates(
    setup: Setup,
) -> None:
    assert teacher_gap(setup) < TOLERANCE
    train(setup, 3)
    setup.generator.sync()
    assert setup.generator.gap < TOLERANCE
    assert teacher_gap(setup) < TOLERANCE
    assert {setup.generator.version(agent) for agent in setup.voices} == {5}


def test_stale_weights_are_found_by_the_check(setup: Setup) -> None:
    train(setup, 1)
    with pytest.raises(ParityError, match="nats"):
        setup.generator.check()
    assert setup.generator.gap > 10 * TOLERANCE
    with pytest.raises(ParityError, match="sync"):
        setup.generator.generate([token_request(setup.voices, "hot", (5, 6), (1,))])
    setup.generator.sync()


def test_greedy_tokens_are_those_of_the_first_generator(setup: Setup) -> None:
    first = TransformersEngine(setup.base, setup.voices)
    expected = play(first, setup.voices, greedy=True)
    trees = play(setup.generator, setup.voices, greedy=True)
    for agent, tree in expected.items():
        for ours, theirs in zip(trees[agent].nodes[1:], tree.nodes[1:], strict=True):
            mine, other = ours.actions[agent], theirs.actions[agent]
            assert (mine.tokens, mine.text, mine.finish) == (other.tokens, other.text, other.finish)
            assert mine.logprobs == pytest.approx(other.logprobs, abs=TOLERANCE)


def test_a_draw_depends_on_seed_and_history_alone(setup: Setup) -> None:
    tokens = setup.voices["hot"].chat.open("seeded").tokens
    alone = token_request(setup.voices, "hot", tokens, (7,))
    other = token_request(setup.voices, "cut", tokens, (7, 8))
    together = token_request(setup.voices, "hot", tokens, (3, 7, 2**62))
    state = torch.get_rng_state()
    ((single,),) = setup.generator.generate([alone])
    _, three = setup.generator.generate([other, together])
    assert three[1].action.tokens == single.action.tokens
    assert len({sampled.action.tokens for sampled in three}) == 3
    assert torch.equal(torch.get_rng_state(), state), "the run's own random stream moved"


def test_a_history_beyond_the_engine_is_an_error(setup: Setup) -> None:
    request = token_request(setup.voices, "hot", (5,) * 4090, (1,))
    with pytest.raises(ConfigError, match="exceed"):
        setup.generator.generate([request])


def test_end_token_length_and_stop_string_are_told_apart(kind: GeneratorKind) -> None:
    base, tokenizer = Base(qwen(seed=5)), byte_tokenizer()
    chat, ending = ChatFormat(tokenizer, chat="plain"), ChatFormat(tokenizer, chat="plain")
    free = AgentSpec(adapter=None, chat=chat, sampling=Sampling(max_tokens=40))
    opening = chat.open("go").tokens
    ((long,),) = TransformersEngine(base, {"free": free}).generate(
        [token_request({"free": free}, "free", opening, (0,), greedy=True)]
    )
    drawn = long.action.tokens
    letter = next(text for token in drawn[2:] if (text := tokenizer.decode([token])).isalpha())
    ending.end_ids = frozenset({drawn[9], base.config.vocab_size})  # which no model draws
    stopping = Sampling(max_tokens=40, stop=(letter,))
    voices = {
        "free": free,
        "stopping": AgentSpec(adapter=None, chat=chat, sampling=stopping),
        "ending": AgentSpec(adapter=None, chat=ending, sampling=free.sampling),
    }
    generator = kind.build(base, voices)
    requests = [token_request(voices, agent, opening, (0,), greedy=True) for agent in voices]
    actions = [one.action for (one,) in generator.generate(requests)]
    expected = [one.action for (one,) in TransformersEngine(base, voices).generate(requests)]
    generator.close()
    assert [action.tokens for action in actions] == [action.tokens for action in expected]
    assert [action.finish for action in actions] == [action.finish for action in expected]
    assert [action.finish for action in actions] == ["length", "stop", "end"]
    assert actions[1].text.endswith(letter) and actions[2].tokens[-1] == drawn[9]


def test_a_context_window_is_refused_before_the_engine_starts(kind: GeneratorKind) -> None:
    chat = ChatFormat(byte_tokenizer(), chat="plain")
    voice = AgentSpec(adapter=None, chat=chat, sampling=Sampling(), window=64)
    with pytest.raises(ConfigError, match=r"^agents\.ann\.window: .* run\.generator: transformers"):
        kind.build(Base(qwen()), {"ann": voice})


def test_a_request_without_seeds_has_no_answer(setup: Setup) -> None:
    none, one = (token_request(setup.voices, "hot", (5, 6, 7), seeds) for seeds in ((), (3,)))
    drawn = setup.generator.generate([none, one])
    assert [len(sampled) for sampled in drawn] == [0, 1]
