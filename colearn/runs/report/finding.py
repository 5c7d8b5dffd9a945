"""Summarises a comparison in a sentence that states only what the intervals support."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

from colearn.contract import Headline
from colearn.runs.over_seeds import (
    MeanEstimate,
    can_differ,
    differ,
    estimate,
    probability_of_improvement,
)
from colearn.runs.record import Run
from colearn.text.budget import exceeds

from .show import show_estimate, show_mean

Ends = tuple[MeanEstimate | None, MeanEstimate | None, MeanEstimate | None]
"""Estimates of the headline metric's first and last value, and of the gain within seeds."""

_SPELLED_OUT = 4
RETURN = Headline()


@dataclass(frozen=True, slots=True)
class _Caution:
    """Reason why a change is not significant, worded for a single algorithm and for all algorithms
    together."""

    alone: str
    together: str


_ONE_SEED = _Caution("one seed, so no interval", "one seed each, so no interval")
_FEW_SEEDS = _Caution(
    "too few seeds to call it a change at 95%; four can",
    "too few seeds to call any of it a change at 95% (four can)",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairFinding:
    """Estimate over seeds of P(x ends better than y) + P(equal) / 2."""

    x: str
    y: str
    probability: MeanEstimate
    differs: bool
    """Whether the exact rank test is significant at 95%."""
    enough_seeds: bool


def compare_pairs(
    finals: Mapping[str, Sequence[float]], judged: Headline = RETURN
) -> list[PairFinding]:
    """Returns a finding for every ordered pair of algorithms, computed from the headline metric's
    final values by seed."""
    finals = {label: [judged.sign * value for value in values] for label, values in finals.items()}
    pairs = []
    for x, y in permutations(finals, 2):
        pairs.append(
            PairFinding(
                x=x,
                y=y,
                probability=probability_of_improvement(finals[x], finals[y]),
                differs=differ(finals[x], finals[y]),
                enough_seeds=can_differ(len(finals[x]), len(finals[y])),
            )
        )
    return pairs


def improved(gain: MeanEstimate | None) -> int:
    """1 if the gain's 95% interval is above 0, -1 if below, else 0.

    Always 0 if there are too few seeds for any two algorithms to differ significantly."""
    if gain is None or gain.low is None or gain.high is None:
        return 0
    if not can_differ(gain.seeds, gain.seeds):
        return 0
    return (gain.low > 0) - (gain.high < 0)


def headline(
    changes: Mapping[str, Ends], pairs: Sequence[PairFinding], judged: Headline = RETURN
) -> list[str]:
    """Returns forms of a sentence, the fullest first, that states which algorithms improved, their
    first and last values, and which pairs differ. Shorter forms count the algorithms or the pairs.
    """
    cautions = [_caution(gain) for _, _, gain in changes.values()]
    shared = cautions[0] if len(cautions) > 1 and len(set(cautions)) == 1 else None
    together = [] if shared is None else [shared.together]
    spelled_out = [
        f"{label} {_development(ends, judged)}"
        + (f" ({caution.alone})" if caution is not None and shared is None else "")
        for (label, ends), caution in zip(changes.items(), cautions, strict=True)
    ]
    counted = [improvements([gain for _, _, gain in changes.values()], judged), *together]
    known = [label for label, (_, last, _) in changes.items() if last is not None]
    best = max(known, key=lambda label: judged.sign * _mean(changes[label][1]), default=None)
    if best is not None:
        end = "highest" if judged.better == "higher" else "lowest"
        counted.append(f"the {end} final mean is {best}'s, {_shown(changes[best][1])}")
    algorithms = [[*spelled_out, *together], counted]
    different = [_differences(pairs, judged)]
    if len(different[0]) > 1:
        different.append([differing(pairs)])
    return [
        f"Evaluation {judged.label}: {'; '.join([*clauses, *ends])}."
        for clauses in (algorithms[1:] if len(changes) > _SPELLED_OUT else algorithms)
        for ends in different
    ]


def improvements(gains: Sequence[MeanEstimate | None], judged: Headline) -> str:
    """Returns a clause that counts the algorithms whose gain is an improvement."""
    rising = sum(judged.sign * improved(gain) > 0 for gain in gains)
    return f"{rising} of {len(gains)} algorithms improved"


def differing(pairs: Sequence[PairFinding]) -> str:
    """Returns a clause that counts the pairs of algorithms that differ significantly."""
    return f"{sum(pair.differs for pair in pairs) // 2} of {len(pairs) // 2} pairs differ at 95%"


def budget_note(label: str, budget: int | None, used: Sequence[int]) -> str:
    """Returns a sentence that the runs of `label` exceeded the budget of environment steps by more
    than a tenth on average; "" if they did not."""
    steps = estimate(used, least=0.0)
    if budget is None or steps is None or not exceeds(steps.mean, budget):
        return ""
    return (
        f"{label} made {show_mean(steps)} environment steps with a budget of {budget:,}, because "
        "an iteration is never cut; fewer train.episodes make an iteration smaller."
    )


def final_steps(runs: Sequence[Run]) -> list[int]:
    """The environment steps that each run has made at its last evaluation."""
    return [run.evaluations[-1].environment_steps for run in runs if run.evaluations]


def unequal_note(used: Mapping[str, Sequence[int]]) -> str:
    """Returns a sentence that the algorithms' final values belong to numbers of environment steps
    that differ by more than a tenth; "" if they do not. `used`: the steps of each run's last
    evaluation, by label; runs that learn nothing make no steps and are passed over."""
    means = {label: sum(steps) / len(steps) for label, steps in used.items() if any(steps)}
    if len(means) < 2 or not exceeds(max(means.values()), min(means.values())):
        return ""
    fewest, *_, most = sorted(means, key=means.__getitem__)
    return (
        "The final values are neither compared at equal environment steps nor interpolated; the "
        f"fewest steps are those of {fewest}, the most those of {most}."
    )


def changes_note(changes: Sequence[str]) -> str:
    """Returns a sentence that the runs were made with different files; "" if they were not."""
    if not changes:
        return ""
    return f"Not all runs were made with the same files; what changed: {', '.join(changes)}."


def _development(ends: Ends, judged: Headline) -> str:
    first, last, gain = ends
    if first is None or last is None:
        return f"has no finite {judged.metric} at its ends"
    span = f"from {_shown(first)} to {_shown(last)}"
    if _caution(gain) is not None:
        return f"went {span}"
    if improved(gain) == 0:
        return f"shows no clear change ({span})"
    worse = "fell" if judged.better == "higher" else "rose"
    return f"{'improved' if judged.sign * improved(gain) > 0 else worse} {span}"


def _caution(gain: MeanEstimate | None) -> _Caution | None:
    if gain is None:
        return None
    if gain.low is None:
        return _ONE_SEED
    return None if can_differ(gain.seeds, gain.seeds) else _FEW_SEEDS


def _differences(pairs: Sequence[PairFinding], judged: Headline) -> list[str]:
    if not pairs:
        return []
    better = [pair for pair in pairs if pair.differs and pair.probability.mean > 0.5]
    side = "above" if judged.better == "higher" else "below"
    if better and len(better) <= _SPELLED_OUT:
        return [
            f"{pair.x} ends {side} {pair.y} (probability {_shown(pair.probability)})"
            for pair in better
        ]
    if better:
        return [differing(pairs)]
    if not any(pair.enough_seeds for pair in pairs):
        return ["too few seeds to tell any pair apart at 95% (four each can)"]
    return ["no pair differs at 95%"]


def _mean(value: MeanEstimate | None) -> float:
    assert value is not None, "only labels with a last value are ranked"
    return value.mean


def _shown(value: MeanEstimate | None) -> str:
    return "no value" if value is None else show_estimate(value)
