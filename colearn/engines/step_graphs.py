"""Records the forward pass of one decoded token as a CUDA graph, once for each shape, and replays
the graph.

On a CUDA device, the pass of one token consists of several hundred short kernels. The host takes
longer to launch these kernels than the device takes to run them. A replay launches all kernels at
once.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from colearn.errors import ConfigError, reason_of
from colearn.models.base import Base
from colearn.models.device_layers import equal_groups

from .batch_slab import Slab

SLOTS = 256
"""Recorded passes round the number of slots up to a multiple of this number, so that few shapes
occur while histories grow."""

Replay = Callable[[], Tensor]


class StepGraphs:
    """Recorded passes over one slab, keyed by number of rows, number of slots and equal groups of
    adapters.

    A pass of a new shape runs twice on the host: once to compute the result of this step, and once
    to record the graph. The inputs of a recorded pass are tensors that each step overwrites.
    """

    def __init__(self, base: Base) -> None:
        self.base = base
        self._slab: Slab | None = None
        self._layers: object = None
        self._recorder: GraphRecorder | None = None
        self._passes: dict[tuple[int, int, tuple[str | None, ...]], _Pass] = {}

    def hidden(
        self, slab: Slab, ids: Tensor, visible: Tensor, adapters: Sequence[str | None], used: int
    ) -> Tensor:
        """Compute the last hidden states [rows, D] of `ids` [rows, 1], the next token of each row
        of `slab`. `visible` [rows, 1]: first visible positions; `used`: number of slots in use
        after this step."""
        if slab is not self._slab or self.base.device_layers is not self._layers:
            self._passes.clear()
            self._slab, self._recorder = slab, None
        room, slots = _rows(slab), min(-(-used // SLOTS) * SLOTS, slab.capacity)
        adapters = _padded(adapters, room)
        key = room, slots, equal_groups(adapters)
        inputs = (ids, visible, slab.device_lengths, slab.device_offsets)
        known = self._passes.get(key)
        if known is not None:
            return known.again(inputs, adapters)[: slab.rows]
        if self._recorder is None:  # memory is freed with the last recording in it
            self._recorder = GraphRecorder(self.base.device)
        new_pass = _Pass(self.base, slab, room, slots, self._recorder)
        new_pass.overwrite(inputs)
        hidden = new_pass.record(adapters)
        self._layers = self.base.device_layers
        self._passes[key] = new_pass
        return hidden[: slab.rows]


def _rows(slab: Slab) -> int:
    """Return the number of rows that a recorded pass computes: 1, 2, 3, 4, 6, 8, 12, 16, 24, ...,
    but not more than the slab has room for."""
    power = 1 << (slab.rows.bit_length() - 1)
    return min(next(n for n in (power, power + power // 2, 2 * power) if n >= slab.rows), slab.room)


def _padded(adapters: Sequence[str | None], room: int) -> list[str | None]:
    return [*adapters, *[adapters[-1]] * (room - len(adapters))]


class GraphRecorder:
    """Records passes that share memory, because only one of these passes runs at a time."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._pool = torch.cuda.graph_pool_handle()

    def record(self, run: Callable[[], Tensor]) -> Replay:
        """Record the kernels that `run` launches, without running these kernels. Each replay
        overwrites the result of the previous replay.

        Errors: ConfigError if `run` waits for the device or copies from the host.
        """
        graph = torch.cuda.CUDAGraph()
        current = torch.cuda.current_stream(self.device)
        aside = torch.cuda.Stream(self.device)
        aside.wait_stream(current)
        try:
            with torch.cuda.stream(aside), _without_collections():
                graph.capture_begin(self._pool, capture_error_mode="thread_local")
                try:
                    result = run()
                finally:
                    graph.capture_end()
        except RuntimeError as error:
            raise ConfigError(
                "run.generator.cuda_graphs: this model's pass cannot be recorded "
                f"({reason_of(error)}); set it to false"
            ) from error
        current.wait_stream(aside)

        def replay() -> Tensor:
            graph.replay()
            return result

        return replay


@contextmanager
def _without_collections() -> Iterator[None]:
    """Context without garbage collection. A garbage collection could free the graph of another
    batch, which would invalidate the recording."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class _Pass:
    """One pass of a fixed shape, with the tensors that it reads."""

    def __init__(
        self, base: Base, slab: Slab, room: int, slots: int, recorder: GraphRecorder
    ) -> None:
        self.base, self.slots, self._recorder = base, slots, recorder

        def integers(*shape: int) -> Tensor:
            return torch.zeros(shape, dtype=torch.long, device=base.device)

        self._ids, self._visible = integers(room, 1), integers(room, 1)
        self._lengths, self._offsets = integers(room), integers(room)
        self._slab = slab.first(room, self._lengths, self._offsets)
        self._adapters: list[str | None] = []
        self._replay: Replay | None = None

    def overwrite(self, inputs: Sequence[Tensor]) -> None:
        """Copy a step's inputs. Any additional rows keep earlier values, and the results of these
        rows are ignored."""
        for buffer, new in zip(
            (self._ids, self._visible, self._lengths, self._offsets), inputs, strict=True
        ):
            buffer[: len(new)] = new

    def record(self, adapters: list[str | None]) -> Tensor:
        """Run the pass, and record it for `again`."""
        self._adapters = adapters
        with self.base.using(adapters), self.base.packed():
            hidden = self._run()
            self._masks = self.base.row_masks
            self._replay = self._recorder.record(self._run)
        return hidden

    def again(self, inputs: Sequence[Tensor], adapters: list[str | None]) -> Tensor:
        assert self._replay is not None
        self.overwrite(inputs)
        if adapters != self._adapters:
            if self._masks is not None:
                self._masks.overwrite(adapters)
            self._adapters = adapters
        return self._replay()

    def _run(self) -> Tensor:
        positions = self._slab.begin(1, self.slots, alike=False)
        mask = self._slab.mask(positions, self._visible)
        return self.base.hidden(self._ids, position_ids=positions, mask=mask, cache=self._slab)[
            :, -1
        ]
