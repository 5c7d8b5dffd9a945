"""Text templates for the observations and actions of a tabular problem."""

from __future__ import annotations

from collections.abc import Mapping
from string import Formatter

from colearn.errors import ConfigError, nearest
from colearn.exact.model import TabularModel

OPENING = (
    "You are {agent}, one member of a team. All members act at the same time, see only their own "
    "observations and share one reward, which the team must make as large as possible. Number of "
    "turns: {horizon}. In each turn, answer with exactly one of the following, and nothing else:\n"
    "{actions}"
)
TURN = (
    "Turn {turn} of {horizon}. You observe: {observation}\n"
    "Answer with exactly one of the following, and nothing else:\n"
    "{actions}"
)
OPENING_FIELDS = ("agent", "actions", "horizon")
TURN_FIELDS = ("agent", "observation", "turn", "horizon", "actions")


def check_template(field: str, template: str, known: tuple[str, ...]) -> None:
    """Raise ConfigError naming `field` if the template cannot be filled from `known`."""
    if not isinstance(template, str):
        raise ConfigError(f"task.{field}: must be text, got {template!r}; put it in quotes")
    try:
        parts = list(Formatter().parse(template))
    except ValueError as error:
        raise ConfigError(f"task.{field}: {error}; write a literal brace twice") from None
    for _, name, form, conversion in parts:
        if name is None:
            continue
        if name not in known:
            raise ConfigError(f"task.{field}: unknown field '{{{name}}}'; {nearest(name, known)}")
        if form or conversion:
            raise ConfigError(f"task.{field}: '{{{name}}}' takes no format; write the name alone")


def rename(
    model: TabularModel, words: Mapping[str, str] | None
) -> tuple[tuple[tuple[str, ...], ...], tuple[tuple[str, ...], ...]]:
    """The texts of the actions, and the texts of the observations, by agent.

    Errors: ConfigError for a key that names neither an action nor an observation, an unusable text,
    or one text for two actions or two observations of an agent.
    """
    words = {} if words is None else words
    if not isinstance(words, Mapping):
        raise ConfigError(f"task.words: must map names to texts, got {words!r}")
    known = {name for names in (*model.actions, *model.observations) for name in names}
    for name, text in words.items():
        if name not in known:
            raise ConfigError(
                f"task.words: '{name}' is no action or observation; {nearest(str(name), known)}"
            )
        if not isinstance(text, str) or not text or text != text.strip():
            raise ConfigError(
                f"task.words.{name}: {text!r} must be text without space at its ends; "
                "put it in quotes"
            )
    texts = []
    for kind, sets in (("actions", model.actions), ("observations", model.observations)):
        agent_texts = tuple(tuple(words.get(name, name) for name in names) for names in sets)
        for agent, names in zip(model.agents, agent_texts, strict=True):
            for text in names:
                if names.count(text) > 1:
                    raise ConfigError(
                        f"task.words: two {kind} of '{agent}' read '{text}'; tell them apart"
                    )
        texts.append(agent_texts)
    return texts[0], texts[1]
