"""Trained agents in Python: the answers of `colearn serve`, without a server."""

from __future__ import annotations

import json
import secrets
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from colearn.contract import Sampling, TokenHistory, TokenRequest, WindowExceeded
from colearn.contract.types import Action
from colearn.engines.transformers import TransformersEngine
from colearn.errors import ConfigError, nearest
from colearn.rollout.agents import AgentSpec, Language
from colearn.runs.record.checkpoints import Step

from .client.protocol.conversation import read_conversation
from .client.protocol.errors import ServeError
from .client.protocol.schema import parse
from .export import export_run
from .export.manifest import MANIFEST, read_manifest
from .export.run_reader import agents_with_models
from .serve.agent import ServedAgent
from .serve.requests import observe, token_history


class LoadedAgent:
    """One trained agent in memory, with a private history.

    For equal texts, seeds and sampling, `act` gives the tokens that `colearn serve` gives in a
    session, and `chat` the tokens that it gives without one. Both return an action: `text` (with
    its reasoning), `tokens`, `logprobs` and `finish`. A greedy answer ignores `seed`; without a
    seed, a random one is drawn. One thread at a time.
    """

    def __init__(self, folder: Path, *, device: str = "auto") -> None:
        self._served = served = ServedAgent(folder, device=device)
        spec = AgentSpec(sampling=served.sampling, chat=served.decoder)
        self._engine = TransformersEngine(served.base, {served.name: spec})
        self._opened = served.decoder.opened_reasoning("")
        self.reset()

    @property
    def name(self) -> str:
        """The agent's name in the task."""
        return self._served.name

    @property
    def sampling(self) -> Sampling:
        """The sampling parameters with which the agent was exported."""
        return self._served.sampling

    @property
    def context(self) -> int:
        """Maximum number of tokens in a history."""
        return self._served.context

    @property
    def player(self) -> Language:
        """The agent as a player of evaluations. It shares no history with `act`."""
        served = self._served
        spec = AgentSpec(
            sampling=served.sampling,
            window=served.manifest.window,
            chat=served.chat(served.manifest.system),
            positions=served.context,
        )
        return Language(engine=self._engine, agent=self.name, spec=spec)

    def reset(self) -> None:
        """Forget the private history: the next observation begins an episode."""
        self._history = TokenHistory()
        self._last: Action | None = None

    def act(self, observation: str, *, greedy: bool = False, seed: int | None = None) -> Action:
        """Append an observation to the private history, and answer it. The answer is appended, too.

        Errors: ConfigError if the history exceeds the model's context or the agent's window.
        """
        served = self._served
        chat = served.chat(served.manifest.system)
        try:
            history = observe(self._history, chat, observation, self._last, served.manifest.window)
        except WindowExceeded as error:
            raise ConfigError(f"{self.name}: {error}; call reset() between episodes") from None
        action, self._history = self._answer(history, self._history, greedy, seed)
        self._last = chat.remembered(action)
        return action

    def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        greedy: bool = False,
        seed: int | None = None,
    ) -> Action:
        """Answer a conversation in OpenAI's form. The private history stays as it is.

        Errors: ConfigError for messages that the server would refuse.
        """
        try:
            written = json.dumps({"messages": list(messages)})
        except (TypeError, ValueError) as error:
            raise ConfigError(f"{self.name}: messages: {error}; give OpenAI's form") from None
        try:
            request = parse(written.encode())
            history = token_history(self._served, read_conversation(request), None)
        except ServeError as error:
            raise ConfigError(f"{self.name}: {error}") from None
        return self._answer(history, None, greedy, seed)[0]

    def _answer(
        self, history: TokenHistory, before: TokenHistory | None, greedy: bool, seed: int | None
    ) -> tuple[Action, TokenHistory]:
        room = self.context - len(history)
        if room < 1:
            raise ConfigError(
                f"{self.name}: {len(history)} tokens leave no room for an answer in the context of "
                f"{self.context}; call reset() between episodes"
            )
        sampling = replace(self.sampling, max_tokens=min(self.sampling.max_tokens, room))
        request = TokenRequest(
            agent=self.name,
            history=history,
            continues=before,
            sampling=replace(sampling, temperature=0.0) if greedy else sampling,
            seeds=(secrets.randbits(63) if seed is None else seed % 2**64,),
        )
        ((answer,),) = self._engine.generate([request])
        action = answer.action
        return replace(action, text=self._opened + action.text), answer.history


def load_agent(
    source: str | Path, agent: str | None = None, *, step: Step = "last", device: str = "auto"
) -> LoadedAgent:
    """Load one trained agent.

    source: an exported agent, a folder of exported agents, or a run, whose checkpoint `step` is
    read. agent: the agent's name, which a run and a folder of several agents need.

    Errors: ConfigError for an unknown or missing name; CheckpointError for a run that cannot be
    read.
    """
    folder = Path(source)
    if (folder / MANIFEST).is_file():
        held = read_manifest(folder).agent
        if agent not in (None, held):
            raise ConfigError(f"{folder}: holds the agent '{held}', not '{agent}'")
        return LoadedAgent(folder, device=device)
    names = [] if agent is None else [agent]
    return _load(folder, names or None, step, device, one=agent is None)[0]


def load_team(
    source: str | Path,
    agents: Sequence[str] | None = None,
    *,
    step: Step = "last",
    device: str = "auto",
) -> dict[str, LoadedAgent]:
    """Load the named agents of a run, or of a folder of exported agents, by name; None: all.
    Arguments and errors: as for `load_agent`."""
    names = None if agents is None else list(agents)
    return {agent.name: agent for agent in _load(Path(source), names, step, device)}


def _load(
    folder: Path, names: list[str] | None, step: Step, device: str, *, one: bool = False
) -> list[LoadedAgent]:
    exported = _exported(folder)
    held = list(exported or agents_with_models(folder))
    if one and len(held) > 1:
        raise ConfigError(f"{folder}: name one of its agents: {', '.join(held)}")
    missing = [name for name in names or () if name not in held]
    if missing:
        raise ConfigError(f"{folder}: no agent '{missing[0]}'; {nearest(missing[0], held)}")
    with tempfile.TemporaryDirectory() as scratch:
        folders = exported or export_run(folder, Path(scratch) / "team", step=step, agents=names)
        return [LoadedAgent(folders[name], device=device) for name in names or folders]


def _exported(folder: Path) -> dict[str, Path]:
    """The exported agents in a folder by their names, which a renamed folder keeps.

    Errors: ConfigError for two agents of one name.
    """
    exported: dict[str, Path] = {}
    for path in sorted(folder.glob(f"*/{MANIFEST}")):
        name = read_manifest(path.parent).agent
        if name in exported:
            raise ConfigError(
                f"{folder}: {exported[name].name} and {path.parent.name} both hold the agent "
                f"'{name}'; load each by load_agent"
            )
        exported[name] = path.parent
    return exported
