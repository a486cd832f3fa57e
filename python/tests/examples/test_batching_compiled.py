"""A Batcher over a compiled model: the bits of a call of all."""
import asyncio
import os
import sys

import numpy as np
import pytest

import sheaf as sf

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples"))
from catalogue import EXAMPLES


def test_tasks_share_runs():
    model, trees = EXAMPLES["treelstm"].load()
    fast = sf.jit(model)
    wanted = fast(trees)

    async def main():
        assert np.array_equal(await fast.acall(trees), wanted)
        async with sf.Batcher(fast, most=8, wait=0.01) as score:
            got = await asyncio.gather(*(score(tree) for tree in trees))
            with pytest.raises(TypeError, match="t"):
                await score("no tree")
        assert score.runs < len(trees)
        async with sf.Batcher(fast.loss) as loss:
            assert (await loss(trees[0], 3)).dtype == np.float32
            with pytest.raises(sf.InstanceError, match="label 9 is out of range"):
                await loss(trees[0], 9)
        return got

    got = asyncio.run(main())
    assert all(np.array_equal(a, b) for a, b in zip(got, wanted, strict=True))
