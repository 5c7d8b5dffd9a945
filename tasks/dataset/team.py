"""The team of a data set: the template of each agent, and the answers that each agent reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import Formatter

from colearn.errors import ConfigError, nearest

PROMPT = "prompt"


@dataclass(frozen=True, slots=True)
class Seats:
    """Prompt templates by agent, in the order of the config.

    In a template, `{prompt}` stands for the row's prompt, and `{NAME}` for the answer of another
    agent. An agent acts in the stage after the stages of all agents whose answers it reads. The
    agents of one stage act at the same time.
    """

    templates: Mapping[str, str]
    stages: tuple[tuple[str, ...], ...]

    def acting(self, stage: int) -> tuple[str, ...]:
        """Returns the agents that act in a stage; after the last stage, an empty tuple."""
        return self.stages[stage] if stage < len(self.stages) else ()

    def text(self, agent: str, prompt: str, answers: Mapping[str, str]) -> str:
        """The agent's template with the prompt and answers filled in."""
        return self.templates[agent].format_map({**answers, PROMPT: prompt})


def seats(agents: Sequence[str] | Mapping[str, str]) -> Seats:
    """Returns the `Seats` of a config's `agents`: prompt templates by name, or names alone. If only
    names are given, each agent reads the answers of all agents before it.

    Errors: ConfigError for a name or a template that cannot be used.
    """
    templates = dict(agents) if isinstance(agents, Mapping) else _one_after_the_other(agents)
    if not templates:
        raise ConfigError("task.agents: name at least one agent")
    for agent in templates:
        if not agent.isidentifier() or agent == PROMPT:
            raise ConfigError(f"task.agents: '{agent}' must be an identifier other than 'prompt'")
    reads = {agent: _reads(agent, template, templates) for agent, template in templates.items()}
    stages: list[tuple[str, ...]] = []
    placed: set[str] = set()
    while len(placed) < len(reads):
        stage = tuple(a for a, sources in reads.items() if a not in placed and sources <= placed)
        if not stage:
            circle = ", ".join(a for a in reads if a not in placed)
            raise ConfigError(f"task.agents: {circle} wait for each other's answers; drop one")
        stages.append(stage)
        placed |= set(stage)
    return Seats(templates, tuple(stages))


def _one_after_the_other(names: Sequence[str]) -> dict[str, str]:
    if len(set(names)) < len(names):
        raise ConfigError("task.agents: names an agent twice; rename one")
    return {
        agent: "\n\n".join([f"{{{PROMPT}}}", *(f"{name}: {{{name}}}" for name in names[:number])])
        for number, agent in enumerate(names)
    }


def _reads(agent: str, template: str, templates: Mapping[str, str]) -> set[str]:
    """The agents whose answers a template contains."""
    field = f"task.agents.{agent}"
    try:
        fields = [part[1:] for part in Formatter().parse(template) if part[1] is not None]
    except ValueError as error:
        raise ConfigError(f"{field}: {error}; write a literal brace twice") from None
    for name, form, conversion in fields:
        if name not in (PROMPT, *templates) or form or conversion:
            known = (PROMPT, *templates)
            raise ConfigError(f"{field}: unknown field '{{{name}}}'; {nearest(str(name), known)}")
    return {str(name) for name, _, _ in fields} - {PROMPT}
