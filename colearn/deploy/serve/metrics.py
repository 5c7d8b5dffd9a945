"""Provides a server's Prometheus metrics, which are served at /metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from colearn.engines.decoder import Decoder

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)


class Metrics:
    """Metrics of one server.

    The arguments `engine`, `sessions` and `waiting` provide current counts, which are read at each
    scrape.
    """

    def __init__(
        self,
        engine: Decoder,
        *,
        sessions: Callable[[], int],
        waiting: Callable[[], int],
        limit: int,
    ) -> None:
        self._registry = registry = CollectorRegistry()
        self.requests = Counter(
            "colearn_requests",
            "Requests by route and status.",
            ("route", "status"),
            registry=registry,
        )
        registry.register(_State(engine, sessions, waiting, limit))
        self.prompt = Counter("colearn_prompt_tokens", "Tokens of prompts.", registry=registry)
        self.cached = Counter(
            "colearn_cached_tokens", "Tokens of prompts that were not run again.", registry=registry
        )
        self.generated = Counter("colearn_generated_tokens", "Tokens sampled.", registry=registry)
        self.first = Histogram(
            "colearn_time_to_first_token_seconds",
            "From a request's arrival to its first token.",
            buckets=SECONDS,
            registry=registry,
        )
        self.duration = Histogram(
            "colearn_request_duration_seconds",
            "From a request's arrival to its last token.",
            buckets=SECONDS,
            registry=registry,
        )

    def text(self) -> bytes:
        """Returns the metrics in Prometheus' text format."""
        return generate_latest(self._registry)


class _State(Collector):
    """Collector for metrics whose values are stored in other objects."""

    def __init__(
        self,
        engine: Decoder,
        sessions: Callable[[], int],
        waiting: Callable[[], int],
        limit: int,
    ) -> None:
        self._engine, self._limit = engine, limit
        self._sessions, self._waiting = sessions, waiting

    def collect(self) -> Iterable[Metric]:
        engine = self._engine
        yield _gauge("colearn_running_rows", "Rows in work.", engine.running)
        yield _gauge("colearn_waiting_requests", "Requests that wait.", self._waiting())
        yield _gauge("colearn_sessions", "Sessions.", self._sessions())
        yield _gauge(
            "colearn_sessions_cached",
            "Sessions whose KV cache is kept between turns.",
            len(engine.prefixes),
        )
        yield CounterMetricFamily(
            "colearn_sessions_evicted",
            "Sessions that lost their KV cache to the memory limit.",
            value=engine.prefixes.evicted,
        )
        yield _gauge("colearn_cache_bytes", "All KV caches.", engine.cache_bytes)
        yield _gauge("colearn_cache_limit_bytes", "Their limit.", self._limit)
        yield CounterMetricFamily(
            "colearn_prefilled_tokens",
            "Tokens run through the model to extend histories.",
            value=engine.prefilled_tokens,
        )


def _gauge(name: str, help: str, value: float) -> Metric:
    return GaugeMetricFamily(name, help, value=value)
