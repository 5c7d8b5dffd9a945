"""Checks of a resolved run that do not need weights."""

from __future__ import annotations

from colearn.errors import ConfigError

from .agent_settings import AgentSettings, TrainedSampling
from .resolved_run import ResolvedRun


def check_run(run: ResolvedRun) -> None:
    """Errors: ConfigError for models, a critic or exact evaluation that do not fit the run."""
    if run.algorithm.learns:
        check_learning(run)
    if run.config.evaluation.exact:
        check_exact(run)
    check_quantized(run)
    if run.algorithm.learns and run.config.train.staleness:
        check_stale(run)
    _ = run.value_models  # checks the critic
    run.generator.check(run)
    run.host.check(run)


def check_learning(run: ResolvedRun) -> None:
    """Check training. Errors: ConfigError if no model is trained, if a trained model lacks the
    teacher that the loss reads, if a trained network uses
    float16, if a trained agent decodes greedily, if the critic has a schedule of its own while it
    recomputes advantages in each joint minibatch (CoLLM's Alg. 1), or if the value loss has
    settings that a solved head ignores."""
    trained = {name: model for name, model in run.config.models.items() if model.trained}
    if not trained:
        raise ConfigError("models: no model is trained; set trained: true on one of them")
    for name, model in trained.items():
        if run.parts.loss.needs_teacher and model.teacher is None:
            raise ConfigError(
                f"models.{name}.teacher: algorithm.loss.teacher is above 0; name the path of this "
                "model's teacher, or set algorithm.loss.teacher: 0"
            )
    _check_critic_schedule(run)
    loss = run.parts.value_loss
    if run.config.critic is not None and run.config.critic.head == "ridge":
        for key, ignored in (("clip", loss.clip is not None), ("expectile", loss.expectile != 0.5)):
            if ignored:
                raise ConfigError(
                    f"algorithm.value_loss.{key}: critic.head: ridge predicts the mean of the "
                    "returns, in one step; leave it out, or set critic.head: trained"
                )
    for network in run.learners:
        if run.settings(network).dtype == "float16":
            raise ConfigError(
                f"{network.section}.dtype: in float16 gradients below 6e-8 are rounded to 0, so "
                "small advantages train nothing; use bfloat16 or float32 (float16 is for models "
                "with trained: false)"
            )
    for agent, player in run.config.agents.items():
        if player.speaks and player.model in trained:
            _check_sampled(agent, player.sampling)
            if player.model in run.served_teachers:
                _check_served(agent, player)


def _check_sampled(agent: str, sampling: TrainedSampling) -> None:
    """Errors: ConfigError if every answer to a prompt is the same: such answers are no samples of
    the policy that the loss differentiates, and there is nothing to compare them with."""
    for name, greedy in (
        ("temperature", sampling.temperature == 0),
        ("top_k", sampling.top_k == 1),
    ):
        if greedy:
            raise ConfigError(
                f"agents.{agent}.sampling.{name}: {getattr(sampling, name):g} decodes greedily, "
                "and training needs samples of the policy; raise it (evaluation.greedy: true "
                "evaluates greedily), or train another model"
            )


def _check_served(agent: str, player: AgentSettings) -> None:
    """Errors: ConfigError for answers that a teacher behind a server cannot score: a server scores
    whole histories at temperature 1."""
    sampling = player.sampling
    for name, differs in (
        ("sampling.temperature", sampling.temperature != 1),
        ("sampling.anneal", sampling.anneal is not None),
        ("window", player.window is not None),
    ):
        if differs:
            raise ConfigError(
                f"agents.{agent}.{name}: models.{player.model}.teacher is a server, which scores "
                "whole histories at temperature 1; leave it out, or give the teacher's path"
            )


def _check_critic_schedule(run: ResolvedRun) -> None:
    """Check the critic's schedule. Errors: ConfigError if the critic sets `epochs`, `minibatch` or
    `head: ridge` while it recomputes advantages in each joint minibatch."""
    critic = run.config.critic
    if run.parts.fixed_advantages or critic is None:
        return
    chosen = {"epochs": critic.epochs, "minibatch": critic.minibatch}
    chosen["head"] = 1 if critic.head == "ridge" else None
    for key, value in chosen.items():
        if value is not None:
            raise ConfigError(
                f"critic.{key}: the critic recomputes advantages in each joint minibatch; set "
                "algorithm.value_loss.frozen_targets: true, or leave it out"
            )


def check_quantized(run: ResolvedRun) -> None:
    """Errors: ConfigError for a quantised base that would be trained or copied."""
    for key in run.networks:
        settings = run.settings(key)
        if settings.quantization is None:
            continue
        if key in run.learners and settings.lora is None:
            raise ConfigError(
                f"{key.section}.quantization: weights in 4 bits cannot be trained; set "
                f"{key.section}.lora, or leave it out"
            )
        if key.kind == "actor" and run.generator.copies:
            raise ConfigError(
                f"{key.section}.quantization: this generator needs weights of its own, which "
                "are not quantised; set run.generator: transformers, or leave it out"
            )


def check_stale(run: ResolvedRun) -> None:
    """Check staleness. Errors: ConfigError for a loss, generator or cast that does not support
    rollouts that run ahead of updates."""
    if not run.parts.loss.corrects_staleness:
        raise ConfigError(
            "train.staleness: stale actions need algorithm.loss.importance_cap (2 is usual), "
            "or algorithm.loss.old_logprobs: behaviour; set one, or staleness to 0"
        )
    if not run.generator.copies:
        raise ConfigError(
            "train.staleness: this generator reads the weights that are being updated; set "
            "run.generator: {name: transformers, copy: true}, vllm or vllm_server"
        )
    if run.cast.pool:
        raise ConfigError(
            "train.staleness: past selves change with the updates that rollouts run ahead of; "
            "set it to 0, or a cast without a pool"
        )


def check_exact(run: ResolvedRun) -> None:
    for agent, settings in run.config.agents.items():
        if not settings.speaks:
            raise ConfigError(
                f"evaluation.exact: agents.{agent} is no language model; set it to false"
            )
