"""Embedded models: small transformers models built locally for one task, without a download.

The vocabulary holds the task's words, including words that only critics read. Other words are split
into characters. The warm start trains by maximum likelihood on legal but uncoordinated actions.
After the warm start, agents know the task's language but do not yet coordinate. Models are seeded
and cached: the same task and settings give the same folder. `embedded:3` has other initial weights
than `embedded`.

If all agents start with the same uniform policy, an action carries no information about the agent's
observation. Other agents then gain nothing by reacting to the action, and training starts at a
saddle point with zero gradient. `embedded-tiny-varied:3` therefore starts from legal play with
random preferences for each agent, turn and observation. Actions in the first turn remain uniform:
no action has been observed yet, and an initial preference can hold a team in a local optimum.

`embedded-tiny-untrained` is intended for a critic and has no warm start.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from colearn.contract import DecPOMDP
from colearn.contract.checked_task import CheckedTask, item_name
from colearn.contract.seeding import derive_rng, derive_seed
from colearn.contract.types import Observation
from colearn.errors import ConfigError, nearest
from colearn.methods.critic.stream import piece_tag
from colearn.programs.files.cache import cache_place, made_once
from colearn.programs.files.first_opening import remember_model_files
from colearn.rollout.context_limit import check_length
from colearn.text.notes import TimeLeft, note

from .digests import file_digests, settings_digests
from .embedded_recipes import RECIPES, Recipe
from .embedded_tokenizer import embedded_tokenizer, stream_turns
from .torch_settings import threads
from .warm_start import Episode, warm_start

if TYPE_CHECKING:
    import numpy as np
    from transformers import LlamaConfig, PretrainedConfig, PreTrainedTokenizerBase


POSITIONS = 32768
"""Maximum number of tokens in a text."""


def embedded_model(task: DecPOMDP[Any, Any], name: str, field: str) -> Path:
    """Return the folder of the model for `task`; build the model if it is not cached.

    The cache is $COLEARN_CACHE, or colearn/ under the user's cache folder.
    Errors: ConfigError naming `field` for an unknown size or a task without `legal_action`.
    """
    recipe = embedded_recipe(task, name, field)
    size = name.partition(":")[0]
    episodes, texts = _play(task, recipe, name, field)
    key = hashlib.blake2b(
        json.dumps([recipe.key, _plain(episodes), texts]).encode(), digest_size=8
    ).hexdigest()
    place = f"{size}-{key}"

    def make(aside: Path) -> None:
        note(
            f"makes the model '{name}' for this task, once; it is kept in {cache_place(place)}, "
            "and later runs of the task begin with it"
        )
        tokenizer = embedded_tokenizer(task, episodes, texts)
        with threads(1):  # more are slower for models of this size
            _make(recipe, tokenizer, episodes, aside, TimeLeft(f"makes the model '{name}'").report)

    return made_once(place, f"the model '{name}'", make)


def embedded_with_digests(name: str, digests: Mapping[str, str]) -> Path | None:
    """Return the cached model with these digests of its files (`file_digests`); None if there are
    no digests, or no such model."""
    weights = any(file.endswith(".safetensors") for file in digests)
    size = name.partition(":")[0]
    for folder in sorted(cache_place(size).parent.glob(f"{size}-*")):
        if (
            digests
            and folder.is_dir()
            and file_digests(str(folder), name, weights=weights) == digests
        ):
            return folder
    return None


def embedded_parts(
    task: DecPOMDP[Any, Any], name: str, field: str
) -> tuple[PretrainedConfig, PreTrainedTokenizerBase]:
    """Return config and tokenizer of the model that `embedded_model` builds, without building
    weights.

    Errors: as `embedded_model`.
    """
    recipe = embedded_recipe(task, name, field)
    tokenizer = embedded_tokenizer(task, *_play(task, recipe, name, field))
    return _architecture(recipe, tokenizer), tokenizer


def embedded_recipe(task: DecPOMDP[Any, Any], name: str, field: str) -> Recipe:
    """Return the recipe for an embedded model's name. Errors: as `embedded_model`."""
    size, _, draw = name.partition(":")
    if size not in RECIPES:
        raise ConfigError(f"{field}: no embedded model '{size}'; {nearest(size, RECIPES)}")
    if draw and not draw.isdecimal():
        raise ConfigError(f"{field}: '{draw}' is no number; write {size}, {size}:1, {size}:2, ...")
    if not _draws_actions(task):
        raise ConfigError(
            f"{field}: '{name}' needs actions to warm-start on: give task.words, if the task has "
            "this setting (dataset, gateway), or add legal_action to your task's class; or give a "
            "model's folder or name"
        )
    if RECIPES[size].concentration and task.action_words(task.agents[0]) is None:
        raise ConfigError(
            f"{field}: '{name}' needs a task with action_words(agent), such as dpomdp; use "
            f"{size.removesuffix('-varied')}"
        )
    return replace(RECIPES[size], draw=(int(draw),) if draw else ())


def _draws_actions(task: DecPOMDP[Any, Any]) -> bool:
    rng = derive_rng("embedded", "legal")
    item = CheckedTask(task).items("train")[0]
    checked = CheckedTask(task, item_name(item))
    state = checked.reset(item, rng)
    prompts = checked.observe(state)
    return all(checked.legal_action(state, agent, rng) is not None for agent in prompts)


def _play(
    task: DecPOMDP[Any, Any], recipe: Recipe, model: str, field: str
) -> tuple[list[Episode], list[str]]:
    """Play episodes of uncoordinated legal actions on the training items. Returns the episodes, and
    all global and privileged texts in them.

    Errors: ConfigError if no agent acts in any episode.
    """
    items = CheckedTask(task).items("train")
    episodes, information = [], set[str]()
    for number in range(recipe.episodes):
        rng = derive_rng("embedded", number)
        item = items[number % len(items)]
        checked = CheckedTask(task, item_name(item))
        state = checked.reset(item, rng)
        contexts: dict[str, list[list[tuple[Observation, str]]]] = {
            agent: [[]] for agent in task.agents
        }
        for turn in range(task.horizon):
            prompts = checked.observe(state)
            if not prompts:  # a program that asks no agent
                break
            information.add(checked.global_info(state))
            if hidden := checked.privileged_info(state):
                information |= {hidden, *(piece_tag("hidden", n) for n in stream_turns(task))}
            actions = {
                agent: _legal(checked, recipe, state, agent, turn, prompt.text, rng)
                for agent, prompt in prompts.items()
            }
            for agent, prompt in prompts.items():
                with checked.placed():  # a word is at least one token, and cheaper to count
                    check_length(agent, len(prompt.whole.split()), POSITIONS)
                if prompt.fresh:
                    contexts[agent].append([])
                contexts[agent][-1].append((prompt, actions[agent]))
            if turn + 1 == task.horizon:  # the last step adds no observation, and may be slow
                break
            outcome = checked.step(state, actions, rng)
            state = outcome.state
            if outcome.last:
                break
        episodes.append([turns for agent in contexts.values() for turns in agent if turns])
    if not any(episodes):
        raise ConfigError(
            f"{field}: '{model}' is warm-started on the task's episodes, but no agent acts in any "
            f"of {recipe.episodes}; correct the task, or give a model's folder or hub name"
        )
    return episodes, sorted(information)


def _plain(episodes: Sequence[Episode]) -> list[Any]:
    """Convert episodes to plain JSON data, from which the folder's name is computed. The data
    contain the texts of each turn, with the system text and earlier turns, if any."""
    return [
        [[(_shown(prompt), action) for prompt, action in turns] for turns in episode]
        for episode in episodes
    ]


def _shown(prompt: Observation) -> Any:
    if prompt.system is None and not prompt.turns:
        return prompt.text
    return [prompt.system, prompt.turns, prompt.text]


def _legal(
    checked: CheckedTask,
    recipe: Recipe,
    state: Any,
    agent: str,
    turn: int,
    text: str,
    rng: np.random.Generator,
) -> str:
    """Sample a legal action from the recipe's distribution."""
    if not recipe.concentration or turn == 0:
        return checked.legal_action(state, agent, rng) or ""
    words = checked.task.action_words(agent)
    assert words is not None, "checked with the recipe"
    table = derive_rng("embedded", "table", *recipe.draw, agent, turn, text)
    weights = table.dirichlet([recipe.concentration] * len(words))
    return words[int(rng.choice(len(words), p=weights))]


def _make(
    recipe: Recipe,
    tokenizer: PreTrainedTokenizerBase,
    episodes: Sequence[Episode],
    folder: Path,
    report: Callable[[float], None],
) -> None:
    from transformers import LlamaForCausalLM
    from transformers.utils import logging

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed("embedded", "weights", *recipe.draw))
        model = LlamaForCausalLM(_architecture(recipe, tokenizer))
        if recipe.copies:
            _begin_with_copies(model)
    if recipe.steps:
        warm_start(model, tokenizer, episodes, recipe, report)
    logging.disable_progress_bar()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    remember_model_files(settings_digests(folder))


def _begin_with_copies(model: Any) -> None:
    """Draw large random embeddings, and set the value and output projections of the last attention
    layer to the identity. The tied LM head then reads the attended words."""
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
