"""Writes the README.md of an exported critic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

import colearn
from colearn.methods.values.critic_folder import CriticManifest
from colearn.methods.values.explained_variance import TurnWorth
from colearn.methods.values.item_means import PRIORS
from colearn.text.masking import masked_settings

from .card import json_cell, training_section

_KINDS = {
    "v": "V of the history before a joint action",
    "q": "Q of the history and the joint action after it",
    "counterfactual": "Q of the history and the joint action, with one agent's answer last",
    "token": "V before every token of an agent's answer",
}


def critic_card(manifest: CriticManifest, origin: Mapping[str, str]) -> str:
    """The model card as Markdown with the YAML header of a model hub. `origin`: facts about the
    critic's training, by name."""
    fields: dict[str, Any] = {
        "library_name": "transformers",
        "pipeline_tag": "text-classification",
        "tags": ["colearn", "critic", "multi-agent", "reinforcement-learning", manifest.algorithm],
    }
    return "\n".join(
        [
            f"---\n{yaml.safe_dump(fields, sort_keys=False)}---",
            f"# {manifest.value_model}: a critic of {manifest.task}\n",
            f"Predicts the return of a team ({', '.join(manifest.agents)}) from its text.\n",
            _table(manifest, origin),
            worth_table(manifest.explained),
            _use(manifest),
        ]
    )


def worth_table(explained: tuple[TurnWorth, ...]) -> str:
    """A critic's explained variance by turn, as a Markdown section."""
    head = "| turn | values | explained variance | R^2, with bias |\n|---|---|---|---|"
    rows = [
        f"| {turn.turn} | {turn.values} | {_number(turn.explained_variance)} | {_number(turn.r2)} |"
        for turn in explained
    ]
    return "\n".join(["## On held-out episodes\n", head, *rows, "", "-: all returns are equal.\n"])


def _table(manifest: CriticManifest, origin: Mapping[str, str]) -> str:
    rows = {
        "values": _KINDS.get(str(manifest.reads.get("value")), _KINDS.get(manifest.part.value, "")),
        "reads": json_cell({"critic": manifest.critic, **manifest.reads}),
        "task": f"`{manifest.task}` {json_cell(masked_settings(manifest.task_settings))}",
        "turns": f"at most {manifest.horizon}",
        "rewards": f"{json_cell(manifest.credit)}, discount {manifest.discount:g}",
        "returns": f"centre {manifest.centre:.4g}, deviation {manifest.deviation:.4g}",
        **({"baseline": "means by item and turn"} if manifest.item_means else {}),
        "trained on": f"{manifest.joint_actions} joint actions",
        **origin,
        "exported with": f"colearn {colearn.__version__}",
    }
    return training_section(rows)


def _use(manifest: CriticManifest) -> str:
    numbers = f"{manifest.centre!r} + {manifest.deviation!r} * (logit + {manifest.bias!r})"
    means = _MEANS.format(priors=[f"{prior:g}" for prior in PRIORS]) if manifest.item_means else ""
    return _USE.format(numbers=numbers) + means


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


_USE = """\
## Use

In a run of colearn: `critic: {{from: FOLDER}}`. To score recorded episodes:

```python
import colearn

critic = colearn.load_critic(".")
critic.score(episode)  # a line of episodes.jsonl: values by agent and turn
```

Without colearn, for one stream of text. Each piece is split into tokens by itself, and the value is
read at the end of the last one:

```python
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained(".")
model = AutoModelForSequenceClassification.from_pretrained(".")
pieces = [("all", 0, "what everybody sees"), ("alice", 0, "what she does")]
ids = []
for role, turn, text in pieces:
    ids += tokenizer.encode(f"\\n[{{role}} {{turn}}]\\n{{text}}", add_special_tokens=False)
with torch.no_grad():
    logit = model(torch.tensor([ids])).logits.item()
value = {numbers}
```
"""

_MEANS = """
This is the network's part. The critic's value is `baseline + share * value`: the mean of an item's
returns at a turn, shrunk to the turn's, and the share of the network's part that predicted new
returns:

```python
import json

means = json.load(open("critic.json"))["item_means"]


def told(*key):
    return means.get("\x1f".join(map(str, key)), (0.0, 0.0))


def baseline(reader, turn, item):
    total, number = told(reader, turn)
    usual = total / number if number else 0.0
    prior = min({priors}, key=lambda one: told(reader, turn, "", one)[0])
    if prior == "inf":  # this turn's items say nothing
        return usual
    total, number = told(reader, turn, item)
    return (total + float(prior) * usual) / (number + float(prior))


def share(reader, turn):
    product, square = (told(reader, turn, "", name)[0] for name in ("product", "square"))
    return min(max(product / square, 0.0), 1.0) if square > 0 else 0.0
```
"""
