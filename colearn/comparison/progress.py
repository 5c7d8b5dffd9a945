"""How far the runs are, as bars on a terminal and as lines anywhere else."""

from __future__ import annotations

import io
import json
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn


class Watcher(Protocol):
    """What the launcher tells about its runs."""

    def started(self, name: str, resumed: bool) -> None: ...

    def advanced(self, name: str, environment_steps: int, mean_return: float | None) -> None: ...

    def ended(self, name: str, outcome: str) -> None: ...


class MetricsTail:
    """Follows one metrics.jsonl as it grows; a line is read once it is complete."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self.environment_steps = 0
        self.mean_return: float | None = None
        """The latest evaluation's mean return."""

    def advance(self) -> bool:
        """Read what is new; True if it held a record."""
        if not self._path.is_file():
            return False
        with self._path.open("rb") as file:
            if file.seek(0, io.SEEK_END) < self._offset:
                self._offset = 0  # a resumed run cut off what followed its checkpoint
            file.seek(self._offset)
            new = file.read()
        complete = new[: new.rfind(b"\n") + 1]
        self._offset += len(complete)
        for line in complete.splitlines():
            # a killed run may leave half a line behind; the report is what insists on whole ones
            with suppress(ValueError):
                self._take(json.loads(line))
        return bool(complete)

    def _take(self, record: dict[str, Any]) -> None:
        self.environment_steps = record.get("environment_steps", self.environment_steps)
        if record.get("kind") == "evaluation":
            self.mean_return = record.get("metrics", {}).get("return", self.mean_return)


_MANY = 16


class Lines:
    """One line at each start, evaluation and end."""

    def __init__(self, console: Console, budgets: dict[str, int]) -> None:
        self._console = console
        self._budgets = budgets
        self._returns: dict[str, float | None] = {}

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *exception: object) -> None:
        return None

    def started(self, name: str, resumed: bool) -> None:
        self._print(name, "resumed" if resumed else "started")

    def advanced(self, name: str, environment_steps: int, mean_return: float | None) -> None:
        if mean_return is not None and mean_return != self._returns.get(name):
            self._returns[name] = mean_return
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

    def started(self, name: str, resumed: bool) -> None:
        self._progress.start_task(self._bars[name])
        state = "resumed" if resumed else "running"
        self._progress.update(self._bars[name], state=state, visible=True)

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
