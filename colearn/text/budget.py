"""States that an iteration exceeds a run's budget of environment steps."""

from __future__ import annotations

_TOLERATED = 1.1
"""Share of the budget up to which a longer run is not mentioned."""


def exceeds(steps: float, budget: float) -> bool:
    """Whether a number of environment steps is more than a tenth beyond the budget."""
    return steps > _TOLERATED * budget


def large_iteration(steps: str, budget: int) -> str:
    """Returns a line for an iteration that alone exceeds the budget; `steps` is its size."""
    return (
        f"one iteration has {steps} environment steps, the budget is {budget:,}, and an iteration "
        "is never cut; lower train.episodes, or raise train.environment_steps"
    )
