"""States that whole iterations exceed a run's budget of environment steps."""

from __future__ import annotations

_TOLERATED = 1.1
"""Share of the budget up to which a longer run is not mentioned."""


def exceeds(steps: float, budget: float) -> bool:
    """Whether a number of environment steps is more than a tenth beyond the budget."""
    return steps > _TOLERATED * budget


def large_iteration(steps: int, budget: int) -> str | None:
    """Returns a line if whole iterations of up to `steps` environment steps may end more than a
    tenth beyond the budget, else None."""
    total = -(-budget // steps) * steps if steps else 0
    if not exceeds(total, budget):
        return None
    end = "" if total == steps else f", so a run may have {total:,}"
    return (
        f"one iteration has up to {steps:,} environment steps, the budget is {budget:,}, and an "
        f"iteration is never cut{end}; lower train.episodes, or raise train.environment_steps"
    )
