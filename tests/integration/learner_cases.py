"""What every learner must do alike, as plain functions; and a worker that runs them.

As a script: `learner_cases.py OUT LEARNER,... CASE...` under torchrun or alone. Each process
writes OUT/LEARNER-CASE-RANK.pt: what the case gives.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import tiny
import torch
from learner_parts import (
    UPDATES,
    Make,
    Result,
    maker,
    network,
    objective,
    only,
    result,
    sampled,
    train,
)
from learner_parts import accumulated as metrics_of
from torch import Tensor, nn

from colearn.config import LoRASettings
from colearn.contract import Learner
from colearn.contract.rows import Outputs, RowBatch
from colearn.errors import CheckpointError
from colearn.models.base import Base
from colearn.models.network import Network, ValueHead
from colearn.training.learners import checkpoint_files


def policy(make: Make) -> Result:
    """Several micro-batches per update, an odd number of them, clipping and decay at work."""
    learner, rows = make("actor", network()), only(sampled(), "spans")
    log = train(learner, rows, UPDATES)
    record = result(learner, log=log)
    record["logprobs"] = [part.logprobs for part in learner.evaluate(rows)]
    return record


def value(make: Make) -> Result:
    """A critic as it is built: a value head, and no LM head."""
    critic = network(head=True)
    critic.base.causal.set_output_embeddings(nn.Identity())
    learner = make("critic", critic)
    return result(learner, log=train(learner, only(sampled(), "marks"), UPDATES))


def unreached(make: Make) -> Result:
    """The LM head is trained too, and no row reaches it."""
    learner = make("critic", network(head=True))
    return result(learner, log=train(learner, only(sampled(), "marks"), UPDATES))


def mixed(make: Make) -> Result:
    """A value head on the actor, and micro-batches of one row: actions only, marks only, both."""
    rows = sampled()
    rows = only(rows[:2], "spans") + only(rows[2:4], "marks") + rows[4:]
    learner = make("actor", network(head=True), 1)
    return result(learner, log=train(learner, rows, UPDATES))


def alone(make: Make) -> Result:
    """One row has all the marks: one process alone reaches the head."""
    rows = sampled()
    rows = only(rows[:1], "marks") + only(rows[1:], "spans")
    learner = make("actor", network(head=True), 1)
    return result(learner, log=train(learner, rows, UPDATES))


def team(make: Make) -> Result:
    """Two actors and a critic, adapters on one frozen base, in the updater's order of calls."""
    base = Base(tiny.tiny_model(seed=5))
    base.causal.requires_grad_(False)
    learners = []
    for name in ("one", "two", "critic"):
        torch.manual_seed(sum(name.encode()))
        base.add_adapter(name, LoRASettings(rank=4, alpha=8.0))
    for name in ("one", "two", "critic"):
        head = ValueHead(base.config.hidden_size) if name == "critic" else None
        learners.append(make(name, Network(base, name, head)))
    rows = sampled()
    work = [only(rows, "spans"), only(rows[:3], "spans"), only(rows, "marks")]
    log = []
    for _ in range(UPDATES):
        for learner, mine in zip(learners, work, strict=True):
            log.append(metrics_of(learner, mine, objective(mine)))
        log += [learner.step(0.0) for learner in learners]
    return result(*learners, log=log)


def accumulated(make: Make) -> Result:
    """Two calls of accumulate before a step are one minibatch, and nobody acted in the third."""
    learner, rows = make("actor", network()), only(sampled(), "spans")
    log: list[dict[str, float]] = []
    for _ in range(3):
        whole = objective(rows)
        for part in (rows[:2], rows[2:]):
            log.append(metrics_of(learner, part, whole))
        log.append(learner.step(0.0))
    before = {name: weight.clone() for name, weight in learner.weights().items()}
    log.append(metrics_of(learner, [], objective(rows)) | learner.step(0.0))
    assert all(torch.equal(before[name], weight) for name, weight in learner.weights().items())
    log += train(learner, rows, 2)
    return result(learner, log=log)


def shared(make: Make) -> Result:
    """What each process reads at its marks is everybody's."""
    rows = only(sampled(), "marks")
    learner = make("critic", network(head=True), 1)
    with torch.no_grad():
        learner.parameters["head.linear.weight"].fill_(0.1)  # type: ignore[attr-defined]
    accumulated = learner.accumulate(rows, objective(rows))
    return result(learner, log=[dict(accumulated.metrics)]) | {"values": dict(accumulated.values)}


def bad_loss(make: Make) -> Result:
    learner, rows = make("actor", network()), only(sampled(), "spans")
    rows[1] = replace(rows[1], advantages=(float("nan"),) * len(rows[1].spans))
    return _failing(learner, lambda: train(learner, rows, 1))


def bad_gradient(make: Make) -> Result:
    """The loss of one micro-batch is finite, its gradient is not."""
    learner, rows = make("actor", network()), only(sampled(), "spans")
    whole = objective(rows)

    def steep(outputs: Outputs, batch: RowBatch) -> tuple[Tensor, dict[str, float]]:
        loss, metrics = whole(outputs, batch)
        if any(row.tree == 1 for row in batch.rows):
            loss = loss + (outputs.logprobs.sum() * 0.0).sqrt()
        return loss, metrics

    def update() -> None:
        metrics_of(learner, rows, steep)
        learner.step(0.0)

    return _failing(learner, update)


def _failing(learner: Learner, update: Callable[[], object]) -> Result:
    before = {name: weight.clone() for name, weight in learner.weights().items()}
    message = ""
    try:
        update()
    except FloatingPointError as error:
        message = str(error)
    moved = any(not torch.equal(before[name], x) for name, x in learner.weights().items())
    return {"message": message, "moved": moved}


def resumed(make: Make) -> Result:
    """Save after four updates and go on; a new learner loads and goes on alike."""
    folder = Path(os.environ["LEARNER_FOLDER"])
    rows = only(sampled(), "spans")
    one, two = make("actor", network()), make("actor", network(seed=6))
    train(one, rows, 4)
    one.save(folder)
    two.load(folder)
    log = train(one, rows, 4)
    again = train(two, rows, 4)
    return result(one, log=log) | {"again": result(two, log=again)}


def unstepped(make: Make) -> Result:
    """Save before the first update, as a run does; both learners then train alike."""
    folder = Path(os.environ["LEARNER_FOLDER"]) / "unstepped"
    rows = only(sampled(), "spans")
    one, two = make("actor", network()), make("actor", network(seed=6))
    one.save(folder)
    two.load(folder)
    log = train(one, rows, 4)
    again = train(two, rows, 4)
    return result(one, log=log) | {"again": result(two, log=again)}


def adapters(make: Make) -> Result:
    """Two adapters on one base: both saved after two updates, loaded, and trained on alike."""
    folder = Path(os.environ["LEARNER_FOLDER"]) / "adapters"
    rows = only(sampled(), "spans")

    def pair() -> list[Learner]:
        base = Base(tiny.tiny_model(seed=5))
        base.causal.requires_grad_(False)
        for name in ("one", "two"):
            torch.manual_seed(sum(name.encode()))
            base.add_adapter(name, LoRASettings(rank=4, alpha=8.0))
        return [make(name, Network(base, name, None)) for name in ("one", "two")]

    first, second = pair(), pair()
    for learner in first:
        train(learner, rows, 2)
    for learner in first:
        learner.save(folder / learner.name)
    for learner in second:
        learner.load(folder / learner.name)
    log = [line for learner in first for line in train(learner, rows, 2)]
    again = [line for learner in second for line in train(learner, rows, 2)]
    return result(*first, log=log) | {"again": result(*second, log=again)}


def continued(make: Make) -> Result:
    """From a checkpoint that another learner, or another number of processes, has written."""
    learner, rows = make("actor", network(seed=6)), only(sampled(), "spans")
    learner.load(Path(os.environ["LEARNER_FOLDER"]))
    return result(learner, log=train(learner, rows, 4))


def broken(make: Make) -> Result:
    """The three files of a checkpoint, each cut in half in turn."""
    learner = make("actor", network())
    train(learner, only(sampled(), "spans"), 1)
    messages = []
    for name in (checkpoint_files.WEIGHTS, checkpoint_files.OPTIMIZER, checkpoint_files.NUMBERS):
        with tempfile.TemporaryDirectory() as folder:
            learner.save(Path(folder))
            path = Path(folder) / name
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
            try:
                learner.load(Path(folder))
            except CheckpointError as error:
                messages.append(str(error).removeprefix(f"{folder}/"))
    return {"messages": messages}


CASES: dict[str, Callable[[Make], Result]] = {
    case.__name__: case
    for case in (
        *(policy, value, unreached, mixed, alone, team, accumulated, shared),
        *(bad_loss, bad_gradient, resumed, unstepped, adapters, continued, broken),
    )
}


def main() -> None:
    torch.set_num_threads(1)
    out, learners, *cases = sys.argv[1:]
    rank = os.environ.get("RANK", "0")
    for learner in learners.split(","):
        for case in cases:
            record = CASES[case](maker(learner))
            torch.save(record, Path(out) / f"{Path(learner).stem}-{case}-{rank}.pt")
    if torch.distributed.is_initialized():
        torch.distributed.barrier()
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
