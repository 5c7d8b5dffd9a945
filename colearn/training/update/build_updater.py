"""Builds the updater of a team."""

from __future__ import annotations

from typing import Literal

from colearn.config import Config, ResolvedRun
from colearn.contract import FrozenCopy
from colearn.errors import ConfigError
from colearn.methods.critic.stream import text_ids
from colearn.methods.values.critics import Critics
from colearn.methods.values.given import GivenCritics
from colearn.methods.values.item_means import ItemMeans
from colearn.models.folders import with_folders
from colearn.models.load import Tokenizers
from colearn.rollout.agents import AgentSpec
from colearn.training.learners.minibatch import UpdateSchedule
from colearn.training.learners.reader import Evaluate
from colearn.training.team import Team

from .actors import Actors
from .updater import Updater


def build_updater(team: Team) -> Updater | None:
    """Returns the updater of a team's learners; None if the algorithm does not learn.

    Errors: ConfigError for a token-level critic whose vocabulary differs from that of its agents.
    """
    run = with_folders(team.run, team.folders)
    if not run.algorithm.learns:
        return None
    config, parts, given = run.config, run.parts, GivenCritics.of(team.run)
    learners = {key.model: learner for key, learner in team.learners.items() if key.kind == "actor"}
    _check_teachers(config, team)
    critic = None
    if len(learners) < len(team.learners):
        assert config.critic is not None and config.critic.path is not None
        tokenizer = team.tokenizers.load(config.critic.path, field="critic.path")
        critic = Critics.of(run, team.learners, text_ids(tokenizer))
        if critic.critic.reads_ids:
            _check_words(config, team.tokenizers)
    return Updater(
        parts=parts,
        actors=Actors(
            specs={
                agent: AgentSpec(**settings.spec_fields)
                for agent, settings in config.language_agents.items()
            },
            learners=learners,
            critic=parts.critic if run.heads else None,
        ),
        critic=critic,
        references=_copies(team, "reference"),
        teachers=_teachers(run, team),
        seed=config.run.seed,
        schedule=UpdateSchedule(
            config.train.epochs, config.train.minibatch, config.train.minibatch_unit
        ),
        target_kl=config.train.target_kl,
        token_budget=run.token_budget,
        together=team.together,
        critic_alone=0 if config.critic is None else config.critic.warmup_iterations,
        given=given,
        critic_schedule=_critic_schedule(run),
        item_means=ItemMeans({} if given is None else given.item_means),
        item_baseline=config.critic is not None and config.critic.item_baseline,
    )


def _copies(team: Team, kind: Literal["reference", "teacher"]) -> dict[str, FrozenCopy]:
    return {key.model: copy for key, copy in team.copies.items() if key.kind == kind}


def _teachers(run: ResolvedRun, team: Team) -> dict[str, Evaluate]:
    """The forward pass of each teacher. Errors: ConfigError as for `ServedTeacher`."""
    teachers: dict[str, Evaluate] = {
        name: copy.evaluate for name, copy in _copies(team, "teacher").items()
    }
    for name, url in run.served_teachers.items():
        from colearn.engines.served_teacher import ServedTeacher

        tokenizer = team.tokenizers.load(run.config.models[name].path, field=f"models.{name}.path")
        served = ServedTeacher(url, tokenizer, field=f"models.{name}.teacher")
        team.resources.callback(served.close)
        teachers[name] = served.evaluate
    return teachers


def _critic_schedule(run: ResolvedRun) -> UpdateSchedule | None:
    critic, train = run.config.critic, run.config.train
    if critic is None or not critic.own_schedule:
        return None
    if critic.head == "ridge":
        return UpdateSchedule(1, None)
    return UpdateSchedule(
        critic.epochs or train.epochs, critic.minibatch or train.minibatch, train.minibatch_unit
    )


def _check_teachers(config: Config, team: Team) -> None:
    """Errors: ConfigError if a teacher's vocabulary differs from that of its model."""
    for name in _copies(team, "teacher"):
        model, field = config.models[name], f"models.{name}.teacher"
        assert model.teacher is not None, "checked when the run was resolved"
        own = team.tokenizers.load(model.path, field=f"models.{name}.path").get_vocab()
        if team.tokenizers.load(model.teacher, field=field).get_vocab() != own:
            raise ConfigError(
                f"{field}: its vocabulary differs from that of models.{name}.path, whose tokens it "
                "scores; name a model of the same tokenizer"
            )


def _check_words(config: Config, tokenizers: Tokenizers) -> None:
    """Errors: ConfigError if a token-level critic's vocabulary differs from that of its agents."""
    assert config.critic is not None and config.critic.path is not None
    words = tokenizers.load(config.critic.path, field="critic.path").get_vocab()
    for name, model in config.models.items():
        if model.trained:
            vocabulary = tokenizers.load(model.path, field=f"models.{name}.path").get_vocab()
            if vocabulary != words:
                raise ConfigError(
                    f"critic.path: its vocabulary differs from that of models.{name}, whose tokens "
                    "it reads; give it the same base, or a critic that reads text (critic.name: "
                    "decentralized)"
                )
