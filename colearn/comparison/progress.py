"""How far the runs are, as bars on a terminal and as lines anywhere else."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn


class Watcher(Protocol):
    """What the launcher tells about its runs."""

    def started(self, name: str, how: str) -> None: ...

    def advanced(self, name: str, environment_steps: int, mean_return: float | None) -> None: ...

    def ended(self, name: str, outcome: str) -> None: ...


_MANY = 16


_SHARE = 0.1
"""Of a run's budget, after which a line tells of it again though its return is the same."""


class Lines:
    """One line at each start, evaluation and end."""

    def __init__(self, console: Console, budgets: dict[str, int]) -> None:
        self._console = console
        self._budgets = budgets
        self._told: dict[str, tuple[int, float | None]] = {}

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *exception: object) -> None:
        return None

    def started(self, name: str, how: str) -> None:
        self._print(name, how)

    def advanced(self, name: str, environment_steps: int, mean_return: float | None) -> None:
        steps, value = self._told.get(name, (0, None))
        on = environment_steps - steps > _SHARE * self._budgets[name]
        if mean_return is not None and (mean_return != value or on):
            self._told[name] = (environment_steps, mean_return)
            self._print(
                name,
                f"{environment_steps}/{self._budgets[name]} environment steps, "
                f"return {mean_return:.3f}",
            )

    def ended(self, name: str, outcome: str) -> None:
        self._print(name, outcome)

    def _print(self, name: str, text: str) -> None:
        self._console.print(f"{name}: {text}", highlight=False, markup=False, soft_wrap=True)


class Bars:
    """One bar per run: environment steps out of the budget, and the latest evaluation's return.

    Of many runs those at work are shown, under a bar that counts all of them.
    """

    def __init__(self, console: Console, budgets: dict[str, int]) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed:.0f}/{task.total:.0f} {task.fields[unit]}"),
            TextColumn("{task.fields[latest]}"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[state]}", markup=False),
            console=console,
        )
        self._many = len(budgets) > _MANY
        self._runs = self._progress.add_task(
            "all", total=len(budgets), visible=self._many, unit="runs", latest="", state=""
        )
        self._bars: dict[str, TaskID] = {
            name: self._progress.add_task(
                name,
                total=budget,
                start=False,
                visible=not self._many,
                unit="steps",
                latest="return -",
                state="waiting",
            )
            for name, budget in budgets.items()
        }

    def __enter__(self) -> Bars:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def started(self, name: str, how: str) -> None:
        self._progress.start_task(self._bars[name])
        self._progress.update(self._bars[name], state=how, visible=True)

    def advanced(self, name: str, environment_steps: int, mean_return: float | None) -> None:
        latest = "return -" if mean_return is None else f"return {mean_return:.3f}"
        self._progress.update(self._bars[name], completed=environment_steps, latest=latest)

    def ended(self, name: str, outcome: str) -> None:
        failed = outcome.startswith("failed")
        self._progress.update(self._bars[name], state=outcome, visible=failed or not self._many)
        self._progress.advance(self._runs)
        self._progress.stop_task(self._bars[name])


def watch(console: Console, budgets: dict[str, int]) -> Bars | Lines:
    """Bars on a terminal, lines elsewhere; `budgets` are environment steps by run name."""
    return Bars(console, budgets) if console.is_terminal else Lines(console, budgets)
