"""train_step and the optimisers: what changes, who sees it, what is refused."""
import copy
import os

import numpy as np
import pytest

import sheaf as sf
from conftest import Leaf, TreeRNN, trees


def losses(fast, data):
    return float(np.mean(fast.loss(*data), dtype=np.float64))


def test_a_step_is_the_optimisers_formula(fast, module, data):
    before = {name: np.array(p.value) for name, p in module.named_parameters()}
    loss, grads = sf.value_and_grad(fast.loss, dense=True, reduce="sum")(*data)
    opt = sf.optim.SGD(fast, lr=0.5)
    step = fast.train_step(opt, "loss", *data)
    assert step.loss == pytest.approx(loss / 24) and (step.step, step.instances, step.failed) == (1, 24, 0)
    assert step.error is None and not step.skipped and step.seconds > 0
    norm = np.sqrt(sum(np.vdot(g, g) for g in grads.values())) / 24
    assert step.norm == pytest.approx(norm, rel=1e-5)
    for name, p in module.named_parameters():
        expected = before[name] - 0.5 * grads[name] / 24 if name in grads else before[name]
        assert np.allclose(p.value, expected, atol=1e-7), name


def test_momentum_decay_clip_and_weights_of_their_own(fast, module, data):
    opt = sf.optim.SGD(fast, lr=0.1, momentum=0.9, weight_decay=0.2, clip=0.01,
                       updates={"out": {"rate": 0.0}, "w": {"weight_decay": 0.0}})
    w, out, momentum = np.array(module.w.value), np.array(module.out.value), 0
    for _ in range(3):
        loss, grads = sf.value_and_grad(fast.loss, dense=True, reduce="sum")(*data)
        step = fast.train_step(opt, fast.loss, *data)
        momentum = 0.9 * momentum + grads["w"] / 24 * min(1, 0.01 / step.norm)
        w = w - 0.1 * momentum
        assert np.allclose(module.w.value, w, atol=1e-6) and step.norm > 0.01
    assert np.array_equal(module.out.value, out) and opt.steps == 3


@pytest.mark.parametrize("make", [
    lambda f: sf.optim.SGD(f, lr=0.3), lambda f: sf.optim.SGD(f, lr=0.05, momentum=0.9), lambda f: sf.optim.Adam(f, lr=0.02),
    lambda f: sf.optim.AdamW(f, lr=0.02), lambda f: sf.optim.Adagrad(f, lr=0.1), lambda f: sf.optim.RMSprop(f, lr=0.01),
    lambda f: sf.optim.LAMB(f, lr=0.02)])
def test_every_optimiser_lowers_the_loss(fast, data, make):
    opt, first = make(fast), losses(fast, data)
    for _ in range(30):
        fast.train_step(opt, "loss", *data)
    assert losses(fast, data) < 0.7 * first


def test_whoever_runs_next_sees_the_weights(fast, module, data):
    fast(data[0]), fast.loss(*data), fast.vector(data[0])
    encoded, opt = fast.loss.encode(*data), sf.optim.Adam(fast, lr=0.05)
    before = np.array(fast(data[0]))
    for batch in encoded.batches(8):
        fast.train_step(opt, "loss", batch)
    after = fast(data[0])
    assert not np.array_equal(before, after)
    assert np.allclose(after[0], module(data[0][0]), atol=1e-5)
    # The same as a model that begins with these weights.
    other = TreeRNN()
    other.load_state_dict(module.state_dict())
    other = sf.jit(other)
    assert np.array_equal(after, other(data[0])) and np.array_equal(fast.loss(*data), other.loss(*data))
    assert np.array_equal(sf.value_and_grad(fast.loss)(*data)[1]["w"], sf.value_and_grad(other.loss)(*data)[1]["w"])
    # Another memory that the user gives is taken, and trained on.
    module.w.value = np.zeros((12, 6), np.float32)
    assert not np.asarray(fast.vector([t for t in data[0] if not isinstance(t, Leaf)])).any()
    step = fast.train_step(opt, "loss", encoded)
    assert np.abs(module.w.value).max() > 0 and step.loss == pytest.approx(float(np.mean(
        [sf.cross_entropy(copy_with(other.module, w=np.zeros((12, 6), np.float32))(t), l) for t, l in zip(*data)])), rel=1e-5)


def copy_with(module, **values):
    made = copy.deepcopy(module)
    for name, value in values.items():
        getattr(made, name).value = value
    return made


def test_dropout_draws_by_step(module, data):
    def trained(steps):
        fast = sf.jit(copy.deepcopy(module))
        opt = sf.optim.SGD(fast, lr=0.0)
        return [fast.train_step(opt, "dropped", *data).loss for _ in range(steps)], fast
    found, fast = trained(3)
    assert len(set(found)) == 3 and found == trained(3)[0]
    assert np.mean(fast.dropped(*data)) == pytest.approx(np.mean(fast.loss(*data)))  # nothing drops outside of it
    assert sf.value_and_grad(fast.dropped)(*data)[0] == pytest.approx(np.mean(fast.loss(*data)))
    assert sf.value_and_grad(fast.dropped, dropout=True)(*data)[0] not in found[:1] + [np.mean(fast.loss(*data))]


def test_inputs_that_fail_have_no_part(fast, module, data):
    other = sf.jit(copy.deepcopy(module))
    good = fast.train_step(sf.optim.SGD(fast, lr=0.1), "loss", data[0][:5], data[1][:5])
    step = other.train_step(sf.optim.SGD(other, lr=0.1), "loss", data[0][:6], [*data[1][:5], 9])
    assert (step.failed, step.instances) == (1, 5) and step.error.instance == 5 and "no such class" in str(step.error)
    assert step.loss == good.loss and np.array_equal(module.w.value, other.module.w.value)
    opt, before = sf.optim.SGD(fast, lr=0.1), np.array(module.w.value)
    with pytest.raises(sf.InstanceErrors, match="all 2 instances failed"):
        fast.train_step(opt, "loss", data[0][:2], [9, 9])
    with pytest.raises(ValueError, match="no inputs"):
        fast.train_step(opt, "loss", [], [])
    assert opt.steps == 0 and np.array_equal(before, module.w.value)


def test_what_is_refused(fast, data):
    opt = sf.optim.Adam(fast)
    for options, error, words in (
            ({"beta1": 0.9}, TypeError, "AdamW has no option 'beta1'; there are lr, betas, eps, weight_decay, clip, updates"),
            ({"lr": -1}, ValueError, "lr is -1"), ({"lr": "fast"}, TypeError, "lr is a number"),
            ({"betas": (0.9, 1)}, ValueError, "less than 1"), ({"betas": 0.9}, TypeError, "two numbers"),
            ({"clip": float("nan")}, ValueError, "clip is nan"),
            ({"updates": {"w": {"decay": 1}}}, TypeError, "there are rate, weight_decay")):
        with pytest.raises(error, match=words):
            sf.optim.AdamW(fast, **options)
    with pytest.raises(TypeError, match="of a model that sf.jit gave, or sf.load for training, not of TreeRNN"):
        sf.optim.Adam(fast.module)
    with pytest.raises(ValueError, match="updates: no weight is called 'embeding'; did you mean 'embedding'"):
        sf.optim.Adam(fast, updates={"embeding": {"rate": 1}})
    with pytest.raises(ValueError, match=r"the loss is a compiled method of TreeRNN or its name \(forward, .*not 'lost'"):
        fast.train_step(opt, "lost", *data)
    with pytest.raises(TypeError, match="is no loss"):
        fast.train_step(opt, "forward", data[0])
    with pytest.raises(TypeError, match="an optimiser belongs here"):
        fast.train_step("adam", "loss", *data)
    with pytest.raises(ValueError, match="of another model"):
        sf.jit(TreeRNN()).train_step(opt, "loss", *data)
    with pytest.raises(TypeError, match="label"):
        fast.train_step(opt, "loss", data[0])
    fast.train_step(opt, "loss", *data)
    with pytest.raises(ValueError, match="makes steps by 'loss': make another for 'dropped'"):
        fast.train_step(opt, "dropped", *data)
    assert opt.steps == 1


def test_the_child_of_a_fork_has_the_weights(fast, module, data):
    opt = sf.optim.Adam(fast, lr=0.05)
    fast.train_step(opt, "loss", *data)
    expected = np.array(fast(data[0]))
    child = os.fork()
    if child == 0:
        code = 1
        try:
            again = sf.optim.SGD(fast, lr=0.1)
            code = 2 if not np.array_equal(fast(data[0]), expected) else 3
            try:
                fast.train_step(opt, "loss", *data)
            except RuntimeError as error:
                code = 4 if code == 3 and "fork" in str(error) else 5
            step = fast.train_step(again, "loss", *data)
            code = 0 if code == 4 and step.loss == pytest.approx(losses(sf.jit(copy_with(module)), data), rel=0.5) else code
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert np.array_equal(fast(data[0]), expected)
