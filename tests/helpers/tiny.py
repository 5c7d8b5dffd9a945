"""Tiny real models, a tiny text task, and trees that were really sampled from them.

The weights have a large spread, so that a wrong mask, a wrong position or a swapped row shows in
the log-probabilities by far more than rounding does.
"""

from __future__ import annotations

import atexit
import copy
import functools
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    AutoModelForCausalLM,
    Gemma3Config,
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from colearn.config import LoRASettings
from colearn.contract import DecPOMDP, Rollout, Sampling
from colearn.contract.rows import Row
from colearn.contract.types import Action, Outcome, Tree
from colearn.engines.transformers import TransformersEngine
from colearn.models.base import Base
from colearn.models.network import Network
from colearn.rollout.agents import AgentSpec, ChatFormat, Language
from colearn.rollout.grow import grow
from colearn.rollout.shapes import Chain
from colearn.training.learners.batch import evaluate
from colearn.training.learners.packed_rows import actor_rows

ARCHITECTURES = ("qwen3", "llama", "gemma3")
SLIDING_WINDOW = 24
"""Of the tiny Gemma 3 and Mistral: much shorter than the histories of three turns."""

CHAT = (
    "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}"
    "{% if m['role'] == 'assistant' %}<|end|>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
_SPECIAL = ("<|pad|>", "<|end|>", "<|user|>", "<|system|>", "<|assistant|>")
_MERGES = (("a", "n"), ("an", "d"), ("e", "r"), ("t", "h"), ("th", "e"))


def byte_tokenizer(
    *, merges: bool = False, template: str | None = CHAT, special: Sequence[str] = _SPECIAL
) -> PreTrainedTokenizerFast:
    """One id for each byte; `merges` adds a few longer tokens and shifts all other ids."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    pairs = list(_MERGES) if merges else []
    words = [*special, *("".join(pair) for pair in pairs), *alphabet]
    vocabulary = {word: number for number, word in enumerate(words)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=pairs))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=special[0],
        eos_token=special[1],
        additional_special_tokens=list(special[2:]),
        chat_template=template,
        clean_up_tokenization_spaces=False,
    )


SIZES = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 1024,
}
"""Shape of every model here."""


def tiny_model(
    kind: str = "qwen3",
    *,
    seed: int = 0,
    std: float = 0.2,
    vocab: int | None = None,
    end_scale: float = 4.0,
    dtype: torch.dtype = torch.float32,
    tied: bool = False,
) -> Any:
    """A two-layer causal model. `end_scale` makes the end token likely now and then, so that
    actions have ragged lengths; 1 leaves it as rare as any other."""
    tokenizer = byte_tokenizer()
    shape = {
        "vocab_size": vocab or len(byte_tokenizer(merges=True)),
        **SIZES,
        "initializer_range": std,
        "tie_word_embeddings": tied,
        "bos_token_id": None,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        match kind:
            case "qwen3":
                model = Qwen3ForCausalLM(Qwen3Config(**shape))
            case "llama":
                model = LlamaForCausalLM(LlamaConfig(**shape))
            case "mistral":
                model = MistralForCausalLM(MistralConfig(**shape, sliding_window=SLIDING_WINDOW))
            case "gemma3":
                model = Gemma3ForCausalLM(
                    Gemma3TextConfig(
                        **shape,
                        sliding_window=SLIDING_WINDOW,
                        layer_types=["sliding_attention", "full_attention"],
                        query_pre_attn_scalar=8,
                        final_logit_softcapping=10.0,
                    )
                )
            case _:
                raise ValueError(kind)
        with torch.no_grad():
            model.get_output_embeddings().weight[tokenizer.eos_token_id] *= end_scale
    return model.to(dtype).eval()


def model_that_reads_images() -> Any:
    """Gemma 3 with a vision tower; the config of its language model is nested in its own."""
    text = {
        "vocab_size": len(byte_tokenizer(merges=True)),
        **SIZES,
    }
    sight = {
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "image_size": 28,
        "patch_size": 14,
    }
    config = Gemma3Config(text_config=text, vision_config=sight, mm_tokens_per_image=4)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return AutoModelForCausalLM.from_config(config).eval()


def save_model(
    folder: Path,
    kind: str = "qwen3",
    *,
    merges: bool = False,
    seed: int = 0,
    tied: bool = False,
) -> str:
    """A model folder as a config's `path` names it."""
    tiny_model(kind, seed=seed, tied=tied).save_pretrained(folder)
    byte_tokenizer(merges=merges).save_pretrained(folder)
    return str(folder)


@functools.cache
def saved_model() -> str:
    """A model folder that lasts as long as this process, for all tests that only read it."""
    folder = tempfile.mkdtemp(prefix="tiny-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return save_model(Path(folder))


@dataclass(frozen=True)
class Scene:
    """What has been said so far about one item."""

    clues: tuple[str, ...]
    said: tuple[Mapping[str, str], ...] = ()


class Notes(DecPOMDP[tuple[str, ...], Scene]):
    """Every agent has a clue of its own and hears how long its last note was.

    The reward counts letters that the clue holds too, so it depends on every agent's text. With
    `sequential` the agents act in turn; with `ends` an episode may end early.
    """

    reward_range = (0.0, 1.0)

    def __init__(
        self,
        agents: int = 2,
        horizon: int = 3,
        items: int = 4,
        sequential: bool = False,
        ends: bool = False,
        clues: tuple[tuple[str, ...], ...] = (),
    ) -> None:
        self.agents = ("ada", "ben", "cleo")[:agents]
        self.horizon = horizon
        self.sequential, self.ends = sequential, ends
        rng = np.random.default_rng(7)
        words = ("ash", "birch", "cedar", "the elder", "fir and larch", "oak")
        self.clues = clues or tuple(
            tuple(" ".join(rng.choice(words, size=rng.integers(1, 4))) for _ in self.agents)
            for _ in range(items)
        )

    def items(self, split: str) -> Sequence[tuple[str, ...]]:
        return self.clues

    def reset(self, item: tuple[str, ...], rng: np.random.Generator) -> Scene:
        return Scene(tuple(item))

    def observe(self, state: Scene, agent: str) -> str | None:
        number, turn = self.agents.index(agent), len(state.said)
        if self.sequential and number != turn % len(self.agents):
            return None
        own = [notes[agent] for notes in state.said if agent in notes]
        return f"{len(own[-1])} letters" if own else state.clues[number]

    def step(
        self, state: Scene, actions: Mapping[str, str], rng: np.random.Generator
    ) -> Outcome[Scene]:
        reward = 0.0
        for agent, text in actions.items():
            clue = state.clues[self.agents.index(agent)]
            reward += sum(letter in clue for letter in text) / (len(text) + 1) / len(actions)
            reward += 0.01 * (sum(text.encode()) % 7)
        after = Scene(state.clues, (*state.said, dict(actions)))
        done = self.ends and sum(map(len, actions.values())) % 3 == 0
        return Outcome(state=after, reward=reward, done=done)

    def metrics(self, state: Scene) -> Mapping[str, float]:
        return {"letters": float(sum(len(t) for notes in state.said for t in notes.values()))}

    def global_info(self, state: Scene) -> str:
        return f"turn {len(state.said)}"


@dataclass
class Cast:
    """Agents at play: each with its base, adapter and voice."""

    bases: dict[str, Base]
    voices: dict[str, AgentSpec]
    generators: dict[int, TransformersEngine] = field(default_factory=dict)
    """By base; agents that share one are served in one call."""

    def __post_init__(self) -> None:
        for base in self.bases.values():
            if id(base) not in self.generators:
                mine = {a: v for a, v in self.voices.items() if self.bases[a] is base}
                self.generators[id(base)] = TransformersEngine(base, mine)

    @property
    def players(self) -> dict[str, Language]:
        return {
            agent: Language(engine=self.generators[id(self.bases[agent])], agent=agent, spec=voice)
            for agent, voice in self.voices.items()
        }

    def network(self, agent: str) -> Network:
        return Network(self.bases[agent], self.voices[agent].adapter)

    def rows(self, tree: Tree[Any], agent: str, **settings: Any) -> list[Row]:
        voice = self.voices[agent]
        return actor_rows(
            tree,
            agent,
            window=voice.window,
            temperature=voice.sampling.temperature,
            **settings,
        )


def cast(
    agents: Sequence[str] = ("ada", "ben"),
    *,
    kind: str = "qwen3",
    shared: bool = True,
    lora: Mapping[str, str | None] | None = None,
    window: int | None = None,
    merges: bool = False,
    dtype: torch.dtype = torch.float32,
    settings: Mapping[str, Sampling] | None = None,
    **sampling: Any,
) -> Cast:
    """Agents on one shared model, or each on its own; `lora` names an agent's adapter or None."""
    tokenizer = byte_tokenizer(merges=merges)
    chat = ChatFormat(tokenizer, system="be brief")
    bases: dict[str, Base] = {}
    for number, agent in enumerate(agents):
        if shared and bases:
            bases[agent] = next(iter(bases.values()))
        else:
            bases[agent] = Base(tiny_model(kind, seed=number, dtype=dtype))
    for agent, adapter in (lora or {}).items():
        if adapter is not None and adapter not in bases[agent].adapters:
            if not bases[agent].adapters:
                bases[agent].causal.requires_grad_(False)
            add_adapter(bases[agent], adapter)
    drawn = Sampling(**{"max_tokens": 8, **sampling})
    voices = {
        agent: AgentSpec(
            adapter=(lora or {}).get(agent),
            chat=chat,
            sampling=(settings or {}).get(agent, drawn),
            window=window,
        )
        for agent in agents
    }
    return Cast(bases, voices)


def add_adapter(base: Base, name: str) -> None:
    """An adapter that changes the model: its B is not zero."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(sum(name.encode()))
        base.add_adapter(name, LoRASettings(rank=4, alpha=8.0))
        with torch.no_grad():
            for parameter in base.adapter_parameters(name).values():
                parameter.normal_(0.0, 0.2)


def play(
    task: DecPOMDP[Any, Any],
    team: Cast,
    shape: Rollout | None = None,
    *,
    seed: int = 0,
    greedy: bool = False,
) -> list[Tree[Any]]:
    """Trees sampled for all training items."""
    trees, _ = grow(
        task, task.items("train"), team.players, shape or Chain(), seed=seed, greedy=greedy
    )
    return trees


def forced(
    team: Cast, tree: Tree[Any], agent: str, *, budget: int | None = None
) -> dict[int, tuple[float, ...]]:
    """Teacher-forced log-probabilities of an agent's actions, by the node they led to."""
    rows = team.rows(tree, agent, budget=budget)
    by_node: dict[int, tuple[float, ...]] = {}
    outputs = evaluate(team.network(agent), rows, token_budget=4096)
    for row, part in zip(rows, outputs, strict=True):
        cursor = 0
        for span in row.spans:
            count = span.end - span.start
            by_node[span.node] = tuple(part.logprobs[cursor : cursor + count].tolist())
            cursor += count
    return by_node


def gap(one: Mapping[int, Sequence[float]], other: Mapping[int, Sequence[float]]) -> float:
    """The largest difference of two sets of log-probabilities with the same keys and lengths."""
    assert one.keys() == other.keys()
    worst = 0.0
    for node, values in one.items():
        assert len(values) == len(other[node]) > 0
        worst = max(worst, *(abs(a - b) for a, b in zip(values, other[node], strict=True)))
    return worst


def behaviour(tree: Tree[Any], agent: str) -> dict[int, tuple[float, ...]]:
    """What the generator recorded, by the node that the action led to."""
    return {
        node.index: node.actions[agent].logprobs for node in tree.nodes if agent in node.actions
    }


def plain_logprobs(
    model: Any, tree: Tree[Any], agent: str, temperature: float = 1.0
) -> dict[int, tuple[float, ...]]:
    """The same through transformers alone: each branch unpacked, one call of `model` for it."""
    by_node: dict[int, tuple[float, ...]] = {}
    for leaf in tree.leaves():
        ids: list[int] = []
        places: list[tuple[int, int, int]] = []
        for number, part in branch_parts(tree, leaf.index, agent):
            if isinstance(part, Action):
                places.append((number, len(ids), len(ids) + len(part.tokens)))
            ids += part.tokens
        if not ids:
            continue
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([ids], device=model.device)).logits[0]
        scores = (logits.float() / temperature).log_softmax(-1)
        for node, start, end in places:
            by_node[node] = tuple(scores[i - 1, ids[i]].item() for i in range(start, end))
    return by_node


def branch_parts(tree: Tree[Any], index: int, agent: str) -> Iterator[tuple[int, Any]]:
    """(node, observation or action) of one agent from the root to a node."""
    for node in tree.ancestry(index):
        if agent in node.actions:
            yield node.index, node.actions[agent]
        if agent in node.observations:
            yield node.index, node.observations[agent]


def merged(base: Base, adapter: str | None) -> Any:
    """A plain transformers model with an adapter's weights folded in."""
    if not base.adapters:
        return base.causal
    model = copy.deepcopy(base.model, {id(base): base})  # its hooks call the base, which has a lock
    if adapter is None:
        return model.unload()
    return model.merge_and_unload(adapter_names=[adapter])


def register(monkeypatch: Any, **tasks: str) -> None:
    """Make tasks known by name, as an entry point would."""
    from colearn import registry
    from colearn.registry import lookup

    known: Callable[[Any], dict[str, str]] = lookup.names
    for module in (registry, lookup):
        monkeypatch.setattr(
            module, "names", lambda kind: known(kind) | (tasks if kind == "tasks" else {})
        )
