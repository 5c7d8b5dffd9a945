"""Warm start of an embedded model: maximum likelihood on legal play and on drills."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from colearn.contract.seeding import derive_rng
from colearn.contract.types import Action, Observation
from colearn.rollout.agents.language import with_tokens
from colearn.text.token_ids import token_ids

from .embedded_recipes import Recipe

if TYPE_CHECKING:
    import numpy as np
    from transformers import PreTrainedTokenizerBase

    from colearn.rollout.agents import ChatFormat

DRILLS = 4096
"""Number of distinct drills that the warm start samples from."""

CALL = 256
"""Fixed cost of one call of the model, as the number of tokens (padding included) that take the
same time."""

Row = tuple[list[int], list[int]]
"""Token ids and labels of one history."""

Episode = list[list[tuple[Observation, str]]]
"""For each agent and context: the observations and action texts of the agent's turns."""


def warm_start(
    model: Any,
    tokenizer: PreTrainedTokenizerBase,
    episodes: Sequence[Episode],
    recipe: Recipe,
    report: Callable[[float], None] = lambda progress: None,
) -> None:
    """Train by maximum likelihood on action tokens only, given the history. `report` receives the
    finished fraction after each step."""
    from colearn.rollout.agents import ChatFormat

    chat = ChatFormat(tokenizer)
    end = tokenizer.eos_token_id
    histories = []
    for episode in episodes:
        for turns in episode:
            ids: list[int] = []
            labels: list[int] = []
            last: Action | None = None
            for prompt, text in turns:
                observation = with_tokens(chat, prompt, last)
                action = (*chat.spell(text), end)
                ids += (*observation.tokens, *action)
                labels += (*[-100] * len(observation.tokens), *action)
                last = Action(text, action)
            histories.append((ids, labels))
    optimizer = torch.optim.AdamW(model.parameters(), lr=recipe.learning_rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, recipe.learning_rate, total_steps=recipe.steps
    )
    rng = derive_rng("embedded", "batches", *recipe.draw)
    model.train()
    drilled = int(recipe.drills * recipe.batch)
    drills = [_drill(chat, tokenizer, rng) for _ in range(DRILLS)] if drilled else []
    for number in range(recipe.steps):
        played = rng.integers(len(histories), size=recipe.batch - drilled)
        chosen = [histories[n] for n in played]
        chosen += [drills[n] for n in rng.integers(len(drills), size=drilled)] if drilled else []
        optimizer.zero_grad()
        count = sum(label != -100 for _, labels in chosen for label in labels)
        for rows in by_length(chosen):
            _loss(model, rows, count).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        report((number + 1) / recipe.steps)
    model.eval()


def by_length(rows: Sequence[Row]) -> list[list[Row]]:
    """Divide rows into groups so as to minimise the total time, which is estimated from padding and
    number of calls. If a single group is fastest, the rows keep their order, and all rows are
    padded to the length of the longest row."""
    ordered = sorted(rows, key=lambda row: len(row[0]), reverse=True)
    best = [0.0]  # least cost of the first n rows, longest first
    begins = [0]
    for end in range(1, len(ordered) + 1):
        costs = [
            best[begin] + CALL + (end - begin) * len(ordered[begin][0]) for begin in range(end)
        ]
        best.append(min(costs))
        begins.append(costs.index(min(costs)))
    groups, end = [], len(ordered)
    while end:
        groups.append(ordered[begins[end] : end])
        end = begins[end]
    return groups if len(groups) > 1 else [list(rows)]


def _loss(model: Any, rows: Sequence[Row], count: int) -> torch.Tensor:
    """Return the contribution of these rows to the mean loss of a batch with `count` labels."""
    width = max(len(ids) for ids, _ in rows)
    inputs = torch.zeros((len(rows), width), dtype=torch.long)
    targets = torch.full((len(rows), width), -100)
    for row, (tokens, answers) in enumerate(rows):
        inputs[row, : len(tokens)] = torch.tensor(tokens)
        targets[row, : len(answers)] = torch.tensor(answers)
    loss: torch.Tensor = model(input_ids=inputs, labels=targets, num_items_in_batch=count).loss
    return loss


def _drill(chat: ChatFormat, tokenizer: PreTrainedTokenizerBase, rng: np.random.Generator) -> Row:
    """Return token ids and labels of a drill: up to 24 random words, followed by one to three
    consecutive words from these."""
    known = sorted(word for word in tokenizer.get_vocab() if word[0] == " " and word[1:].isalpha())
    words = [known[n] for n in rng.integers(len(known), size=int(rng.integers(4, 25)))]
    count = int(rng.integers(1, 4))
    first = int(rng.integers(0, len(words) - count + 1))
    prompt = chat.open("".join(words)).tokens
    action_tokens = token_ids(tokenizer, "".join(words[first : first + count]))
    answer = (*action_tokens, tokenizer.eos_token_id)
    return [*prompt, *answer], [*(-100,) * len(prompt), *answer]
