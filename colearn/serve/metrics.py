"""Counters, gauges and histograms in Prometheus' text format."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)


class Counter:
    """A number that only grows, apart for each combination of its labels."""

    kind = "counter"

    def __init__(self, name: str, help: str, *labels: str) -> None:
        self.name, self.help, self.labels = name, help, labels
        self._values: dict[tuple[str, ...], float] = {} if labels else {(): 0}

    def add(self, amount: float = 1, *labels: str) -> None:
        self._values[labels] = self._values.get(labels, 0) + amount

    def lines(self) -> list[str]:
        return [
            f"{self.name}{_labels(dict(zip(self.labels, values, strict=True)))} {number:g}"
            if number < 1e6
            else f"{self.name}{_labels(dict(zip(self.labels, values, strict=True)))} {number:.0f}"
            for values, number in self._values.items()
        ]


class Reading:
    """A number that is kept elsewhere and read when it is asked for."""

    def __init__(self, kind: str, name: str, help: str, read: Callable[[], float]) -> None:
        self.kind, self.name, self.help, self._read = kind, name, help, read

    def lines(self) -> list[str]:
        return [f"{self.name} {self._read():.0f}"]


class Histogram:
    """Durations in seconds, counted up to each bound."""

    kind = "histogram"

    def __init__(self, name: str, help: str) -> None:
        self.name, self.help = name, help
        self._counts = [0] * (len(SECONDS) + 1)
        self._sum = 0.0

    def observe(self, seconds: float) -> None:
        self._counts[bisect_left(SECONDS, seconds)] += 1
        self._sum += seconds

    def lines(self) -> list[str]:
        lines, total = [], 0
        for bound, count in zip((*SECONDS, float("inf")), self._counts, strict=True):
            total += count
            shown = "+Inf" if bound == float("inf") else f"{bound:g}"
            lines.append(f"{self.name}_bucket{_labels({'le': shown})} {total}")
        return [*lines, f"{self.name}_sum {self._sum:.6f}", f"{self.name}_count {total}"]


Metric = Counter | Reading | Histogram


class Metrics:
    """All of them, in the order in which they were added."""

    def __init__(self) -> None:
        self._all: list[Metric] = []

    def counter(self, name: str, help: str, *labels: str) -> Counter:
        found = Counter(name, help, *labels)
        self._all.append(found)
        return found

    def histogram(self, name: str, help: str) -> Histogram:
        found = Histogram(name, help)
        self._all.append(found)
        return found

    def reading(self, kind: str, name: str, help: str, read: Callable[[], float]) -> None:
        self._all.append(Reading(kind, name, help, read))

    def text(self) -> str:
        lines = []
        for metric in self._all:
            lines += [f"# HELP {metric.name} {metric.help}", f"# TYPE {metric.name} {metric.kind}"]
            lines += metric.lines()
        return "\n".join(lines) + "\n"


def _labels(labels: Mapping[str, str]) -> str:
    inner = ",".join(f'{name}="{value}"' for name, value in labels.items())
    return f"{{{inner}}}" if inner else ""
