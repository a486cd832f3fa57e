"""Calls from asyncio: one of many inputs that does not block, and single ones that run together.

    scores = await fast.acall(trees)

    async with sf.Batcher(fast, most=64, wait=0.002) as score:
        one = await score(tree)              # from many tasks at once: they run together
"""
import collections
import functools

__all__ = ["AsyncCalls", "Batcher"]


class AsyncCalls:
    """What is called with lists can be awaited too."""

    async def acall(self, *columns, **named):
        """The same as a call, in a thread beside: other tasks go on. A run that has begun goes on to its
        end when the task is cancelled."""
        import asyncio  # a tenth of what importing Sheaf takes
        run = functools.partial(self, *columns, **named)
        return await asyncio.get_running_loop().run_in_executor(None, run)


class Batcher:
    """Collects single calls from tasks of one event loop, and runs them together.

    A run begins when `most` calls wait, or the first has waited `wait` seconds; while one runs, calls
    collect for the next. An input's result has the same bits whatever it runs with. One that fails
    raises its own InstanceError; the others have results.

    model   what `sf.jit`, `sf.load` or a compiled method gives: called with a list for each argument and
            `errors="return"`
    """

    def __init__(self, model, *, most=64, wait=0.002):
        if most < 1:
            raise ValueError(f"most is at least 1, not {most}")
        if wait < 0:
            raise ValueError(f"wait is at least 0 seconds, not {wait}")
        self._model, self._most, self._wait = model, most, wait
        self._waiting = collections.deque()
        import asyncio
        from concurrent.futures import ThreadPoolExecutor
        self._asyncio, self._thread = asyncio, ThreadPoolExecutor(1, "sheaf.Batcher")
        self._timer = self._running = None
        self._closed = False
        self.runs = self.calls = 0

    async def __call__(self, *arguments):
        """The result for one input."""
        if self._closed:
            raise RuntimeError("this Batcher is closed")
        loop = self._asyncio.get_running_loop()
        answer = loop.create_future()
        self._waiting.append((arguments, answer))
        if len(self._waiting) >= self._most:
            self._begin(loop)
        elif self._timer is None and self._running is None:
            self._timer = loop.call_later(self._wait, self._begin, loop)
        return await answer

    def _begin(self, loop):
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._running is not None:
            return  # what waits goes on when it ends
        batch = []
        while self._waiting and len(batch) < self._most:
            arguments, answer = self._waiting.popleft()
            if answer.done():
                continue  # its task was cancelled
            if batch and len(arguments) != len(batch[0][0]):
                answer.set_exception(TypeError(f"{len(arguments)} arguments were given, and {len(batch[0][0])} "
                                               "by a call beside"))
                continue
            batch.append((arguments, answer))
        if batch:
            self.runs, self.calls = self.runs + 1, self.calls + len(batch)
            self._running = loop.create_task(self._run(loop, batch))

    async def _run(self, loop, batch):
        try:
            columns = [list(column) for column in zip(*(arguments for arguments, _ in batch))]
            run = functools.partial(self._model, *columns, errors="return")
            results, error = await loop.run_in_executor(self._thread, run), None
        except Exception as failed:  # of the call as a whole: a wrong type in one input
            results, error = None, failed
        if error is not None and len(batch) > 1:
            await self._one_by_one(loop, batch)
        else:
            for i, (_, answer) in enumerate(batch):
                self._answer(answer, error if error is not None else results[i])
        self._running = None
        if self._waiting:
            self._begin(loop)

    async def _one_by_one(self, loop, batch):
        """Finds whose input it was: the others have results."""
        for arguments, answer in batch:
            run = functools.partial(self._model, *([argument] for argument in arguments), errors="return")
            try:
                result, = await loop.run_in_executor(self._thread, run)
            except Exception as failed:
                result = failed
            self._answer(answer, result)

    @staticmethod
    def _answer(answer, result):
        if answer.done():
            return
        if isinstance(result, Exception):
            answer.set_exception(result)
        else:
            answer.set_result(result)

    async def aclose(self):
        """Waits for what was called, and takes no more."""
        self._closed = True
        while self._waiting or self._running is not None:
            if self._running is None:
                self._begin(self._asyncio.get_running_loop())
            if self._running is not None:
                await self._asyncio.wait([self._running])
        self._thread.shutdown(wait=False)

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.aclose()
