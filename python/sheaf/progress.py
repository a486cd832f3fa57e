"""Where a training stands, on the terminal or in a notebook: by tqdm or rich, whichever is there, else a
line an epoch."""
import sys


def shown(steps):
    """What `step` is told of each step of a training, and `close` when there are no more."""
    for kind in (_Tqdm, _Rich):
        try:
            return kind(steps)
        except ImportError:
            pass
    return _Lines()


def _told(step):
    told = {"epoch": step.epoch, "loss": f"{step.loss:.4g}"}
    if step.ended:
        told.update((name, f"{value:.4g}") for name, value in step.ended.measures.items() if name != "loss")
    return told


class _Tqdm:
    def __init__(self, steps):
        from tqdm.auto import tqdm
        self._bar, self._last = tqdm(total=steps, unit="step"), {}

    def step(self, step):
        self._last |= _told(step)
        self._bar.set_postfix(self._last, refresh=False)
        self._bar.update(step.step - self._bar.n)

    def close(self):
        self._bar.close()


class _Rich:
    def __init__(self, steps):
        from rich.progress import Progress
        self._bar, self._last = Progress(), {}
        self._task = self._bar.add_task("training", total=steps)
        self._bar.start()

    def step(self, step):
        self._last |= _told(step)
        self._bar.update(self._task, completed=step.step,
                         description=" ".join(f"{name} {value}" for name, value in self._last.items()))

    def close(self):
        self._bar.stop()

    def __del__(self):
        if hasattr(self, "_bar"):  # after `break` nobody closes it
            self.close()


class _Lines:
    def step(self, step):
        if step.ended:
            print(" ".join(f"{name} {value}" for name, value in _told(step).items()), file=sys.stderr)

    def close(self):
        pass
