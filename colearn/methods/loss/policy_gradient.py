"""Policy-gradient loss (CoLLM Eq. 1, 2, 4) with PPO clipping, KL penalty and entropy bonus."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor

from colearn.contract import PolicyBatch, PolicyLoss
from colearn.contract.anneal import left
from colearn.contract.bounds import Anneal, Count, Weight
from colearn.errors import ConfigError

_LARGEST = 80.0
"""Upper bound of a log-ratio: exp(80) is finite in float32, but exp(80)^2 is infinite."""


@dataclass(frozen=True, kw_only=True)
class PolicyGradient(PolicyLoss):
    """Loss -rho A per action with rho = pi(a|h) / pi_old(a|h), where an action is a full response.

    At rho = 1 the gradient of the loss is -A grad log pi(a|h) (CoLLM, Sec. 5.2).

    Wrong when many epochs run without `clip`: a sequence ratio is a product over all tokens and can
    become very large.
    """

    ratio: Literal["sequence", "geometric", "token"] = "sequence"
    """"token": the ratio, the clipping and the loss term are computed for each token (PPO, GRPO).
    "geometric": the ratio of an action is the geometric mean of its tokens' ratios (GSPO, whose
    `clip` is 0.0003 and `clip_high` 0.0004). Long and short actions then have ratios of the same
    scale, but the gradient of an action is divided by its number of tokens."""
    reduction: Literal["sample_mean", "token_mean", "action_mean"] = "sample_mean"
    """"sample_mean": divide the sum by the minibatch's number of actions (the paper's 1/|beta|).
    "token_mean": divide the sum by the minibatch's number of tokens. "action_mean": average over an
    action's tokens, then over actions (GRPO, MHGPO Eq. 6)."""
    clip: Annotated[float, Field(gt=0.0, lt=1.0, description="0.2 is usual")] | None = None
    """epsilon: the loss does not reward moving the ratio below 1 - epsilon or above 1 + epsilon."""
    clip_high: Annotated[float, Field(gt=0.0, description="0.28 is DAPO's")] | None = None
    """epsilon of the upper bound (DAPO); None: `clip`."""
    ratio_cap: Annotated[float, Field(gt=0.0, description="5 is usual")] | None = None
    """CISPO's upper bound of the ratio. The term becomes min(rho, ratio_cap) A log pi, and no
    gradient flows through the ratio. Every term therefore keeps its gradient, also where `clip`
    would leave it out."""
    dual_clip: Annotated[float, Field(gt=1.0, description="3 is usual")] | None = None
    """c > 1: with A < 0 the loss is at most -c A (Ye et al. 2020)."""
    mask: Annotated[float, Field(gt=0.0, lt=1.0, description="0.2 is usual")] | None = None
    """Leave out every term whose ratio is outside the trust region [1 - mask, 1 + mask], whatever
    the sign of the advantage. `clip`, in contrast, keeps terms whose gradient leads back into the
    trust region. With `old_logprobs: behaviour` the ratio is relative to the behaviour policy."""
    mask_high: Annotated[float, Field(gt=0.0, description="0.28 is usual")] | None = None
    """Value that replaces `mask` in the upper bound 1 + mask; None: no replacement."""
    kl: Weight = 0.0
    """Weight of the penalty k3 = exp(d) - d - 1 per sampled token, where d = log(reference /
    policy). The mean of k3 over the policy's samples is KL(policy || reference), the metric `kl`.
    Since samples are not differentiated, the gradient of k3 equals the gradient of KL(reference ||
    policy). The gradient of k3 mainly penalises low probabilities of tokens that are likely under
    the reference. Higher probabilities of unlikely tokens are penalised less."""
    reference_update_every: Count | None = None
    """Number of iterations after which the policy is copied to the reference; None: never. In
    self-play, plain policy-gradient training cycles around a mixed equilibrium. Training converges
    if the policy is regularised towards a recent policy (R-NaD, magnetic mirror descent)."""
    teacher: Weight = 0.0
    """Weight of on-policy distillation from `models.NAME.teacher`: each sampled token has the
    additional advantage log teacher - log policy. The mean of its negative over the policy's
    samples is KL(policy || teacher), the metric `teacher_kl`, which the additional advantage
    minimises; no gradient flows through the advantage. `mask` and `importance_cap` apply to it as
    to the reward's terms, `clip` and `ratio_cap` do not."""
    entropy: Weight = 0.0
    """Weight of the entropy bonus: the entropy over the whole vocabulary, per token."""
    old_logprobs: Literal["recompute", "behaviour"] = "recompute"
    """Source of log pi_old. "recompute": a forward pass of the trainer before the first of several
    steps. "behaviour": the generator's log-probabilities. The setting "behaviour" saves a forward
    pass, but the generator's arithmetic and weights may differ from the trainer's."""
    importance_cap: Annotated[float, Field(gt=0.0, description="2 is usual")] | None = None
    """C, the cap of truncated importance weights, for samples from an older or different policy.
    The term of an action (with ratio "token", of a token) has weight min(C, pi_old / pi_behaviour).
    The terms of `kl` and `teacher` have the same weights."""
    anneal_fraction: Anneal | None = None
    """Fraction of the training budget over which `kl`, `entropy` and `teacher` anneal to 0; None:
    never. Early in training, `kl` and `entropy` keep answers valid during exploration, and the
    teacher shows good ones. Late in training, each of them keeps the team from the best return.
    Wrong for a team that learns from teachers alone."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.clip_high is not None and self.clip is None:
            raise ConfigError("clip_high: is the upper side of clip; set clip too")
        if self.mask_high is not None and self.mask is None:
            raise ConfigError("mask_high: is the upper side of mask; set mask too")
        if self.ratio_cap is not None and (self.clip is not None or self.dual_clip is not None):
            raise ConfigError(
                "ratio_cap: takes the place of clip and dual_clip; leave them out, or leave it out"
            )
        if self.importance_cap is not None and self.old_logprobs == "behaviour":
            raise ConfigError(
                "importance_cap: nothing differs where the behaviour policy is the old one; "
                "use old_logprobs: recompute, or leave the cap out"
            )
        if self.reference_update_every is not None and self.kl == 0.0:
            raise ConfigError(
                "reference_update_every: there is no reference to move; set kl above 0"
            )
        # The contract's flags follow from the weights.
        object.__setattr__(self, "needs_reference", self.kl > 0.0)
        object.__setattr__(self, "needs_teacher", self.teacher > 0.0)
        object.__setattr__(self, "needs_entropy", self.entropy > 0.0)
        object.__setattr__(self, "by_token", self.ratio == "token")

    @property
    def corrects_staleness(self) -> bool:
        return self.importance_cap is not None or super().corrects_staleness

    def at(self, done: float) -> PolicyGradient:
        if self.anneal_fraction is None:
            return self
        factor = left(self.anneal_fraction, done)
        return replace(
            self,
            kl=self.kl * factor,
            entropy=self.entropy * factor,
            teacher=self.teacher * factor,
            anneal_fraction=None,
            reference_update_every=None,
        )

    def __call__(self, batch: PolicyBatch) -> tuple[Tensor, dict[str, float]]:
        log_ratio, advantages = batch.logprobs - batch.old_logprobs, batch.advantages
        if self.ratio == "token":
            if len(advantages) != len(log_ratio):
                advantages = advantages[batch.action_of]
            terms = batch.total_tokens
        else:
            terms = batch.total_samples
        log_ratio = self._per_term(log_ratio, batch)
        divisor = batch.total_tokens if self.reduction == "token_mean" else batch.total_samples
        weights = self._token_weights(batch)
        ratio = bounded(log_ratio).exp()
        if self.ratio_cap is None:
            plain = ratio * advantages
            surrogate = self._clipped(plain, ratio, advantages)
            clipped = (surrogate != plain).sum()
        else:
            capped = ratio.detach().clamp(max=self.ratio_cap)
            surrogate = capped * advantages * self._per_term(batch.logprobs, batch)
            clipped = (ratio > self.ratio_cap).sum()
        inside = self._inside(ratio)
        if inside is not None:
            surrogate = torch.where(inside, surrogate, 0.0)
        gain = surrogate * weights if self.ratio == "token" else surrogate
        if self.importance_cap is not None:
            trust = self._per_term(batch.old_logprobs - batch.behaviour, batch).exp()
            capped_trust = trust.clamp(max=self.importance_cap)
            gain = gain * capped_trust
        loss = -gain.sum() / divisor
        metrics = {
            "policy_loss": loss,
            "ratio_mean": ratio.sum() / terms,
            "clip_fraction": clipped / terms,
        }
        if inside is not None:
            metrics["mask_fraction"] = (~inside).sum() / terms
        if self.importance_cap is not None:
            metrics["importance_capped"] = (trust > self.importance_cap).sum() / terms
        if self.kl > 0.0:
            assert batch.ref_logprobs is not None, "kl needs the reference's log-probs"
            gap = batch.ref_logprobs - batch.logprobs
            kl = gap.exp() - gap - 1.0
            if self.importance_cap is not None:
                kl = kl * self._per_token(capped_trust, batch)
            loss = loss + self.kl * (kl * weights).sum() / divisor
            metrics["kl"] = kl.sum() / batch.total_tokens
        if self.teacher > 0.0:
            assert batch.teacher_logprobs is not None, "distillation needs the teacher's log-probs"
            ahead = (batch.teacher_logprobs - batch.logprobs).detach()
            if self.importance_cap is not None:
                ahead = ahead * self._per_token(capped_trust, batch)
            learned = bounded(batch.logprobs - batch.old_logprobs).exp() * ahead
            if inside is not None:
                learned = torch.where(self._per_token(inside, batch), learned, 0.0)
            loss = loss - self.teacher * (learned * weights).sum() / divisor
            metrics["teacher_kl"] = -ahead.sum() / batch.total_tokens
        if self.entropy > 0.0:
            assert batch.entropy is not None, "the bonus needs the entropy"
            loss = loss - self.entropy * (batch.entropy * weights).sum() / divisor
            metrics["entropy"] = batch.entropy.sum() / batch.total_tokens
        return loss, floats(metrics)

    def _clipped(self, plain: Tensor, ratio: Tensor, advantages: Tensor) -> Tensor:
        """PPO's gain min(rho A, clip(rho, 1 - clip, 1 + clip_high) A) for tensors of equal shape,
        where `plain` is rho A.

        With `dual_clip` c, the gain is at least c A where A < 0 (Ye et al. 2020).
        """
        gain = plain
        if self.clip is not None:
            high = self.clip if self.clip_high is None else self.clip_high
            gain = torch.minimum(plain, ratio.clamp(1.0 - self.clip, 1.0 + high) * advantages)
        if self.dual_clip is not None:
            gain = torch.maximum(gain, self.dual_clip * advantages.clamp(max=0.0))
        return gain

    def _inside(self, ratio: Tensor) -> Tensor | None:
        """Boolean mask of the terms inside the trust region; None without `mask`."""
        if self.mask is None:
            return None
        high = self.mask if self.mask_high is None else self.mask_high
        return (ratio >= 1.0 - self.mask) & (ratio <= 1.0 + high)

    def _per_term(self, log_ratio: Tensor, batch: PolicyBatch) -> Tensor:
        """Return the log-ratio of each term: with ratio "token" one log-ratio per token [N], else
        the sum ("geometric": the mean) over the tokens of each action [S]."""
        if self.ratio == "token":
            return log_ratio
        if self.ratio == "geometric":
            log_ratio = log_ratio / batch.action_of.bincount()[batch.action_of]
        return torch.zeros_like(batch.advantages, dtype=log_ratio.dtype).index_add(
            0, batch.action_of, log_ratio
        )

    def _per_token(self, terms: Tensor, batch: PolicyBatch) -> Tensor:
        """Return for each token [N] the entry of its term."""
        return terms if self.ratio == "token" else terms[batch.action_of]

    def _token_weights(self, batch: PolicyBatch) -> Tensor:
        """Weight of each token's term, [N]; a micro-batch contains whole actions."""
        ones = torch.ones_like(batch.logprobs)
        if self.reduction != "action_mean":
            return ones
        return ones / batch.action_of.bincount()[batch.action_of]


def bounded(log_ratio: Tensor) -> Tensor:
    """Log-ratios clipped to at most 80, with the gradient of the unclipped log-ratios.

    In float32, the exponential of a number above 88 is infinite, and 0 times an infinite gradient
    is NaN. Without the bound, a term that `clip` or `mask` leaves out could therefore make the sum
    NaN. If a very large term is kept, the gradient has an infinite norm despite the bound, and the
    learner reports this norm.
    """
    return log_ratio - (log_ratio - _LARGEST).clamp(min=0.0).detach()


def floats(metrics: dict[str, Tensor]) -> dict[str, float]:
    """Convert metrics to floats with a single copy from the device."""
    numbers = torch.stack([value.detach().float() for value in metrics.values()]).tolist()
    return dict(zip(metrics, numbers, strict=True))
