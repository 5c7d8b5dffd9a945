"""Embedded models: small transformers models built locally for one task, without a download.

The vocabulary holds the task's words, including those that only critics read. Other words are
split into characters. The warm start is maximum likelihood on legal but uncoordinated actions:
the agents know the task's language and do not yet coordinate. Models are seeded and cached: the
same task and settings give the same folder. `embedded:3` has other initial weights than `embedded`.

If all agents start with the same uniform policy, an action carries no information about the
agent's observation, and listening to it earns nothing: a saddle point with zero gradient.
`embedded-tiny-varied:3` starts from legal play that differs, at random, by agent, turn and
observation.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from string import printable
from typing import TYPE_CHECKING, Any

import torch
from filelock import FileLock, Timeout

from colearn.agents.language import check_length, read_prompt
from colearn.cache import cache_folder
from colearn.contract import DecPOMDP
from colearn.contract.asking import item_name, placed
from colearn.critic.stream import piece_tag
from colearn.errors import ConfigError, nearest
from colearn.notes import note
from colearn.rollout.transition import (
    begin,
    items_of,
    legal_action,
    privileged,
    prompts,
    step,
    told,
)
from colearn.seeding import derive_rng, derive_seed
from colearn.types import Action, Prompt

if TYPE_CHECKING:
    import numpy as np
    from transformers import LlamaConfig, PretrainedConfig, PreTrainedTokenizerBase

    from colearn.agents import ChatFormat

EMBEDDED = "embedded"
POSITIONS = 32768
"""Maximum number of tokens in a text."""
DRILLS = 4096
"""Number of distinct drills that the warm start samples from."""

_TEMPLATE = (
    "{% for m in messages %}{% if m['role'] == 'assistant' %}<answer>{{ m['content'] }}<end>"
    "{% else %}<{{ m['role'] }}>{{ m['content'] }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<answer>{% endif %}"
)
_SPECIAL = ("<pad>", "<unk>", "<end>", "<user>", "<system>", "<answer>")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Model size and warm-start length."""

    width: int
    layers: int
    heads: int
    episodes: int
    steps: int
    batch: int = 32
    learning_rate: float = 5e-3
    spread: float = 0.1
    """Standard deviation of initial weights. Copying emerges sooner than at transformers' 0.02."""
    draw: tuple[int, ...] = ()
    """The N of `embedded:N`: selects the initial weights and the warm-start batches."""
    version: int = 4
    copies: bool = False
    """Initialise the last attention layer to output the words it attends to, with small other
    weights: copying then exists and only has to be directed."""
    drills: float = 0.0
    """Fraction of warm-start examples that are drills: random words of the task, and a run of them
    as the answer. Every word can then be copied, whether or not it occurs in play."""
    concentration: float = 0.0
    """Above 0, legal play is not uniform: for each agent, turn and observation the action
    probabilities are drawn once from a symmetric Dirichlet distribution of this concentration."""

    @property
    def key(self) -> dict[str, Any]:
        """The fields that name the folder; disabled options are left out."""
        return {
            k: v
            for k, v in asdict(self).items()
            if v or k not in ("copies", "drills", "concentration")
        }


RECIPES = {
    "embedded-tiny": Recipe(width=32, layers=2, heads=2, episodes=256, steps=150),
    "embedded-tiny-varied": Recipe(
        width=32, layers=2, heads=2, episodes=256, steps=150, concentration=5.0
    ),
    "embedded": Recipe(width=64, layers=2, heads=4, episodes=1024, steps=250),
    "embedded-copy": Recipe(
        width=64,
        layers=2,
        heads=4,
        episodes=384,
        steps=600,
        learning_rate=3e-3,
        spread=0.02,
        copies=True,
        drills=0.3,
    ),
    "embedded-large": Recipe(width=192, layers=4, heads=6, episodes=4096, steps=1500),
}


def embedded_model(task: DecPOMDP[Any, Any], name: str, field: str) -> Path:
    """The folder of the model for `task`; builds the model if it is not cached.

    The cache is $COLEARN_CACHE, or colearn/ under the user's cache folder.
    Errors: ConfigError naming `field` for an unknown size or a task without `legal_action`.
    """
    recipe = embedded_recipe(task, name, field)
    size = name.partition(":")[0]
    episodes, texts = _play(task, recipe)
    key = hashlib.blake2b(
        json.dumps([recipe.key, _plain(episodes), texts]).encode(), digest_size=8
    ).hexdigest()
    folder = cache_folder() / f"{size}-{key}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    if folder.is_dir():
        return folder
    with _lock(name, folder):
        if not folder.is_dir():
            note(f"makes the model '{name}' for this task, once; it is kept in {folder}")
            aside = folder.with_suffix(".partial")
            shutil.rmtree(aside, ignore_errors=True)
            _make(recipe, _tokenizer(task, episodes, texts), episodes, aside)
            aside.rename(folder)
    return folder


@contextmanager
def _lock(name: str, folder: Path) -> Iterator[None]:
    """Hold the lock of a model's folder; a note says that another process holds it."""
    lock = FileLock(f"{folder}.lock")
    try:
        lock.acquire(blocking=False)
    except Timeout:
        note(f"waits for the model '{name}', which another process makes")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def embedded_parts(
    task: DecPOMDP[Any, Any], name: str, field: str
) -> tuple[PretrainedConfig, PreTrainedTokenizerBase]:
    """Config and tokenizer of the model that `embedded_model` builds, without weights.

    Errors: as `embedded_model`.
    """
    recipe = embedded_recipe(task, name, field)
    tokenizer = _tokenizer(task, *_play(task, recipe))
    return _architecture(recipe, tokenizer), tokenizer


_Episode = list[list[tuple[Prompt, str]]]
"""For each agent and context: the observations and action texts of its turns."""


def embedded_recipe(task: DecPOMDP[Any, Any], name: str, field: str) -> Recipe:
    """The recipe of an embedded model's name. Errors: as `embedded_model`."""
    size, _, draw = name.partition(":")
    if size not in RECIPES:
        raise ConfigError(f"{field}: no embedded model '{size}'; {nearest(size, RECIPES)}")
    if draw and not draw.isdecimal():
        raise ConfigError(f"{field}: '{draw}' is no number; write {size}, {size}:1, {size}:2, ...")
    if not _draws_actions(task):
        raise ConfigError(
            f"{field}: '{name}' needs a task with legal_action(state, agent, rng) to warm-start "
            "on; add it to the task or give a model's folder or hub name"
        )
    if RECIPES[size].concentration and not hasattr(task, "action_words"):
        raise ConfigError(
            f"{field}: '{name}' needs a task with action_words(agent), such as dpomdp; use "
            f"{size.removesuffix('-varied')}"
        )
    return replace(RECIPES[size], draw=(int(draw),) if draw else ())


def _draws_actions(task: DecPOMDP[Any, Any]) -> bool:
    rng = derive_rng("embedded", "legal")
    item = items_of(task, "train")[0]
    name = item_name(item)
    state = begin(task, item, rng, name)
    seen = prompts(task, state, name)
    return all(legal_action(task, state, agent, rng, name) is not None for agent in seen)


def _play(task: DecPOMDP[Any, Any], recipe: Recipe) -> tuple[list[_Episode], list[str]]:
    """Episodes of uncoordinated legal actions on the training items, with all global and
    privileged texts that occur in them."""
    items = items_of(task, "train")
    episodes, information = [], set[str]()
    for number in range(recipe.episodes):
        rng = derive_rng("embedded", number)
        item = items[number % len(items)]
        name = item_name(item)
        state = begin(task, item, rng, name)
        contexts: dict[str, list[list[tuple[Prompt, str]]]] = {agent: [[]] for agent in task.agents}
        for turn in range(task.horizon):
            seen = prompts(task, state, name)
            information.add(told(task, state, name))
            if hidden := privileged(task, state, name):
                information |= {hidden, *(piece_tag("hidden", n) for n in _turns(task))}
            actions = {
                agent: _legal(task, recipe, state, agent, turn, prompt.text, rng, name)
                for agent, prompt in seen.items()
            }
            for agent, prompt in seen.items():
                with placed(task, name):  # a word is at least one token, and cheaper to count
                    check_length(agent, len(prompt.whole.split()), POSITIONS)
                if prompt.fresh:
                    contexts[agent].append([])
                contexts[agent][-1].append((prompt, actions[agent]))
            if turn + 1 == task.horizon:  # the last step adds no observation, and may be slow
                break
            outcome = step(task, state, actions, rng, name)
            state = outcome.state
            if outcome.done:
                break
        episodes.append([turns for agent in contexts.values() for turns in agent if turns])
    return episodes, sorted(information)


def _plain(episodes: Sequence[_Episode]) -> list[Any]:
    """Episodes as JSON for the folder's name: texts, with system text and earlier turns if any."""
    return [
        [[(_shown(prompt), done) for prompt, done in turns] for turns in episode]
        for episode in episodes
    ]


def _shown(prompt: Prompt) -> Any:
    if prompt.system is None and not prompt.turns:
        return prompt.text
    return [prompt.system, prompt.turns, prompt.text]


def _legal(
    task: Any,
    recipe: Recipe,
    state: Any,
    agent: str,
    turn: int,
    text: str,
    rng: np.random.Generator,
    item: str,
) -> str:
    """A legal action, sampled from the recipe's distribution."""
    if not recipe.concentration:
        return legal_action(task, state, agent, rng, item) or ""
    words: Sequence[str] = task.action_words(agent)
    table = derive_rng("embedded", "table", *recipe.draw, agent, turn, text)
    weights = table.dirichlet([recipe.concentration] * len(words))
    return words[int(rng.choice(len(words), p=weights))]


def _make(
    recipe: Recipe,
    tokenizer: PreTrainedTokenizerBase,
    episodes: Sequence[_Episode],
    folder: Path,
) -> None:
    from transformers import LlamaForCausalLM
    from transformers.utils import logging

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed("embedded", "weights", *recipe.draw))
        model = LlamaForCausalLM(_architecture(recipe, tokenizer))
        if recipe.copies:
            _begin_with_copies(model)
    _warm_start(model, tokenizer, episodes, recipe)
    logging.disable_progress_bar()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _begin_with_copies(model: Any) -> None:
    """Set large embeddings and an identity value and output projection in the last attention.
    The tied LM head then reads the attended words."""
    with torch.no_grad():
        model.model.embed_tokens.weight.normal_(0.0, 0.1)
        attention = model.model.layers[-1].self_attn
        for weight in (attention.v_proj.weight, attention.o_proj.weight):
            weight.copy_(torch.eye(len(weight)))


def _architecture(recipe: Recipe, tokenizer: PreTrainedTokenizerBase) -> LlamaConfig:
    from transformers import LlamaConfig

    return LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=recipe.width,
        intermediate_size=2 * recipe.width,
        num_hidden_layers=recipe.layers,
        num_attention_heads=recipe.heads,
        num_key_value_heads=recipe.heads,
        max_position_embeddings=POSITIONS,
        tie_word_embeddings=True,
        initializer_range=recipe.spread,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )


def _turns(task: DecPOMDP[Any, Any]) -> range:
    """Turn numbers that may occur in a critic's stream."""
    return range(max(10, task.horizon))


def _tokenizer(
    task: DecPOMDP[Any, Any], episodes: Sequence[_Episode], information: Sequence[str]
) -> PreTrainedTokenizerBase:
    """A tokenizer with one token for each word and its leading space, and for each heading in a
    critic's stream. Unknown words are split into the longest known pieces, down to characters."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    split = pre_tokenizers.Split(
        Regex(
            r"\n\[[A-Za-z0-9_]+ [0-9]+\]\n"
            r"| ?[A-Za-z_/][A-Za-z0-9_/]*(?:-[A-Za-z0-9_/]+)*| ?[0-9]| ?[^\sA-Za-z0-9_/]|\s"
        ),
        "isolated",
    )
    played = [turn for episode in episodes for turns in episode for turn in turns]
    texts = {text for prompt, done in played for text in (prompt.whole, done)}
    texts |= {*information}
    roles = (*task.agents, "all", "global")
    texts |= {piece_tag(role, n) for role in roles for n in _turns(task)}
    words = {piece for text in texts for piece, _ in split.pre_tokenize_str(text)}
    words |= {piece.strip(" ") for piece in words if piece.strip(" ")}
    words |= {f"{space}{digit}" for space in ("", " ") for digit in range(10)}
    words |= {f" {word}" for word in words if not word.startswith((" ", "\n"))}
    words |= {character for word in words for character in word} | set(printable)
    vocabulary = {word: number for number, word in enumerate((*_SPECIAL, *sorted(words)))}
    tokenizer = Tokenizer(
        models.WordPiece(vocabulary, unk_token="<unk>", continuing_subword_prefix="")
    )
    tokenizer.pre_tokenizer = split
    tokenizer.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        unk_token="<unk>",
        eos_token="<end>",
        additional_special_tokens=list(_SPECIAL[3:]),
        chat_template=_TEMPLATE,
        clean_up_tokenization_spaces=False,
    )


def _warm_start(
    model: Any,
    tokenizer: PreTrainedTokenizerBase,
    episodes: Sequence[_Episode],
    recipe: Recipe,
) -> None:
    """Train by maximum likelihood on action tokens only, given the history."""
    from colearn.agents import ChatFormat

    chat = ChatFormat(tokenizer)
    end = tokenizer.eos_token_id
    histories = []
    for episode in episodes:
        for turns in episode:
            ids: list[int] = []
            labels: list[int] = []
            last: Action | None = None
            for seen, done in turns:
                observation = read_prompt(chat, seen, last)
                action = (*tokenizer(done, add_special_tokens=False)["input_ids"], end)
                ids += (*observation.tokens, *action)
                labels += (*[-100] * len(observation.tokens), *action)
                last = Action(done, action)
            histories.append((ids, labels))
    optimizer = torch.optim.AdamW(model.parameters(), lr=recipe.learning_rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, recipe.learning_rate, total_steps=recipe.steps
    )
    rng = derive_rng("embedded", "batches", *recipe.draw)
    model.train()
    drilled = int(recipe.drills * recipe.batch)
    drills = [_drill(chat, tokenizer, rng) for _ in range(DRILLS)] if drilled else []
    for _ in range(recipe.steps):
        played = rng.integers(len(histories), size=recipe.batch - drilled)
        chosen = [histories[n] for n in played]
        chosen += [drills[n] for n in rng.integers(len(drills), size=drilled)] if drilled else []
        width = max(len(ids) for ids, _ in chosen)
        inputs = torch.zeros((len(chosen), width), dtype=torch.long)
        targets = torch.full((len(chosen), width), -100)
        for row, (tokens, answers) in enumerate(chosen):
            inputs[row, : len(tokens)] = torch.tensor(tokens)
            targets[row, : len(answers)] = torch.tensor(answers)
        loss = model(input_ids=inputs, labels=targets).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    model.eval()


def _drill(
    chat: ChatFormat, tokenizer: PreTrainedTokenizerBase, rng: np.random.Generator
) -> tuple[list[int], list[int]]:
    """Token ids and labels: up to 24 random words, then a run of one to three of them."""
    known = sorted(word for word in tokenizer.get_vocab() if word[0] == " " and word[1:].isalpha())
    words = [known[n] for n in rng.integers(len(known), size=int(rng.integers(4, 25)))]
    count = int(rng.integers(1, 4))
    first = int(rng.integers(0, len(words) - count + 1))
    shown = chat.open("".join(words)).tokens
    said = tokenizer("".join(words[first : first + count]), add_special_tokens=False)["input_ids"]
    answer = (*said, tokenizer.eos_token_id)
    return [*shown, *answer], [*(-100,) * len(shown), *answer]
