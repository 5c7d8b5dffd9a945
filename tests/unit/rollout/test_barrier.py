"""The barrier of lockstep: who is released, when, and in which order."""

from __future__ import annotations

import asyncio

from colearn.rollout.grow_tree import Barrier

Path = tuple[int, ...]


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_branches_are_released_in_the_order_of_trees_and_paths() -> None:
    """Two trees, one of which has split in two; they come in another order."""
    order: list[tuple[int, Path]] = []

    async def main() -> None:
        barrier = Barrier(2)
        barrier.split(2)

        async def branch(tree: int, path: Path) -> None:
            await barrier.wait(tree, path)
            order.append((tree, path))

        first = asyncio.create_task(branch(1, (0,)))
        second = asyncio.create_task(branch(0, (1,)))
        await settled()
        assert order == []
        third = asyncio.create_task(branch(0, (0,)))
        await asyncio.gather(first, second, third)
        assert barrier.turn == 1

    asyncio.run(main())
    assert order == [(0, (0,)), (0, (1,)), (1, (0,))]


def test_a_branch_that_ends_holds_nobody_up() -> None:
    async def main() -> None:
        barrier = Barrier(2)
        waiting = asyncio.create_task(barrier.wait(0, ()))
        await settled()
        assert not waiting.done()
        barrier.split(0)
        await asyncio.wait_for(waiting, 5)

    asyncio.run(main())


def test_all_branches_go_on_in_the_same_turn_of_the_event_loop() -> None:
    """Also the last to come: what they request must reach an engine together."""
    at: list[int] = []

    async def main() -> None:
        barrier, turns = Barrier(3), 0

        async def branch(tree: int) -> None:
            await barrier.wait(tree, ())
            at.append(turns)

        tasks = [asyncio.create_task(branch(tree)) for tree in range(3)]
        while not all(task.done() for task in tasks):
            turns += 1
            await asyncio.sleep(0)

    asyncio.run(main())
    assert len(at) == 3 and len(set(at)) == 1
