"""Calls from asyncio, of what is called with lists."""
import asyncio
import threading
import time

import pytest

from sheaf.batching import AsyncCalls, Batcher


class Model(AsyncCalls):
    """Doubles; fails for 13, and as a whole for words."""

    def __init__(self, seconds=0.0):
        self.seconds, self.sizes, self.threads = seconds, [], set()

    def __call__(self, xs, ys=None, errors="raise"):
        self.sizes.append(len(xs))
        self.threads.add(threading.current_thread())
        time.sleep(self.seconds)
        for i, x in enumerate(xs):
            if isinstance(x, str):
                raise TypeError(f"x[{i}]: a number belongs here")
        return [ValueError("13 it is") if x == 13 else 2 * x + (ys[i] if ys else 0) for i, x in enumerate(xs)]


def test_calls_run_together():
    async def main():
        model = Model(0.02)
        async with Batcher(model, most=8, wait=0.001) as batcher:
            got = await asyncio.gather(*(batcher(i) for i in range(20, 40)))
        assert got == [2 * i for i in range(20, 40)] and sum(model.sizes) == batcher.calls == 20
        assert max(model.sizes) <= 8 and len(model.sizes) == batcher.runs <= 5
        assert len(model.threads) == 1 and threading.current_thread() not in model.threads
        with pytest.raises(RuntimeError, match="closed"):
            await batcher(1)
    asyncio.run(main())


def test_one_alone_waits_no_longer_than_it_was_said():
    async def main():
        batcher = Batcher(Model(), most=100, wait=0.01)
        began = time.monotonic()
        assert await batcher(1, 5) == 7 and time.monotonic() - began < 5
        await batcher.aclose()
    asyncio.run(main())


def test_failures_are_each_ones_own():
    async def main():
        async with Batcher(Model(), most=5, wait=1) as batcher:
            got = await asyncio.gather(*(batcher(x) for x in (1, 13, "a", 4, 5)), return_exceptions=True)
        assert got[0] == 2 and got[3:] == [8, 10]
        assert isinstance(got[1], ValueError) and isinstance(got[2], TypeError)
        async with Batcher(Model(), most=2, wait=1) as batcher:
            got = await asyncio.gather(batcher(1), batcher(1, 2), return_exceptions=True)
            assert got[0] == 2 and "2 arguments" in str(got[1])
        with pytest.raises(TypeError):
            async with Batcher(Model(), wait=0) as batcher:
                await batcher("a")
    asyncio.run(main())


def test_cancelled_tasks_are_left_out():
    async def main():
        model = Model(0.02)
        async with Batcher(model, most=4, wait=0.01) as batcher:
            tasks = [asyncio.create_task(batcher(i)) for i in range(3)]
            await asyncio.sleep(0)
            tasks[1].cancel()
            assert await tasks[0] == 0 and await tasks[2] == 4 and model.sizes == [2]
            with pytest.raises(asyncio.CancelledError):
                await tasks[1]
            running = asyncio.create_task(batcher(7))
            await asyncio.sleep(0.02)
            running.cancel()
        assert sum(model.sizes) == 3
    asyncio.run(main())


def test_a_call_does_not_block_the_loop():
    async def main():
        turns = 0

        async def count():
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0.001)

        counting = asyncio.create_task(count())
        assert await Model(0.1).acall([1, 2]) == [2, 4]
        counting.cancel()
        assert turns > 10
    asyncio.run(main())


def test_mistakes():
    for wrong in ({"most": 0}, {"wait": -1}):
        with pytest.raises(ValueError):
            Batcher(Model(), **wrong)
