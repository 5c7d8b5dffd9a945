"""Recipes of embedded models: size, warm start and initial weights, by name."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Model size and warm-start length."""

    width: int
    layers: int
    heads: int
    episodes: int
    steps: int
    """Number of warm-start steps; 0 keeps the initial weights."""
    batch: int = 32
    learning_rate: float = 5e-3
    spread: float = 0.1
    """Standard deviation of initial weights. With 0.1 the model learns to copy sooner than with
    transformers' default of 0.02."""
    draw: tuple[int, ...] = ()
    """The number N in `embedded:N`, which selects the initial weights and the warm-start
    batches."""
    version: int = 5
    copies: bool = False
    """Whether to initialise the last attention layer so that the layer outputs the words to which
    it attends. All other weights are small. The untrained model can then already copy words, and
    only has to learn which words to copy."""
    drills: float = 0.0
    """Fraction of warm-start examples that are drills. The prompt of a drill is a list of random
    words of the task, and the answer is a contiguous part of this list. Drills teach the model to
    copy every word, even words that do not occur in play."""
    concentration: float = 0.0
    """If above 0, legal play is not uniform after the first turn. For each agent, turn and
    observation, the action probabilities are drawn once from a symmetric Dirichlet distribution
    with this concentration."""

    @property
    def key(self) -> dict[str, Any]:
        """The fields that determine the name of the model's folder, without disabled options."""
        return {
            k: v
            for k, v in asdict(self).items()
            if v or k not in ("copies", "drills", "concentration")
        }


RECIPES = {
    "embedded-tiny": Recipe(width=32, layers=2, heads=2, episodes=256, steps=150),
    "embedded-tiny-varied": Recipe(
        width=32, layers=2, heads=2, episodes=256, steps=150, concentration=5.0, version=6
    ),
    # for critics: a network that was taught to speak learns less easily what an action is worth
    "embedded-tiny-untrained": Recipe(width=32, layers=2, heads=2, episodes=256, steps=0),
    "embedded": Recipe(width=64, layers=2, heads=4, episodes=1024, steps=250),
    # as `embedded`, with heads of 32 channels: vLLM's attention on a CPU takes no smaller ones
    "embedded-vllm": Recipe(width=64, layers=2, heads=2, episodes=1024, steps=250),
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


def is_embedded(path: str) -> bool:
    """Whether a model's path is the name of an embedded model, such as `embedded-tiny:1`, or such a
    name with a typing error; the recipe of an unknown size is an error (`embedded_recipe`)."""
    if path.startswith("embedded"):
        return True
    close = get_close_matches(path.partition(":")[0], RECIPES, cutoff=0.85)
    return bool(close) and "/" not in path and not Path(path).exists()
