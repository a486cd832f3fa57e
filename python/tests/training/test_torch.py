"""Compiled methods as modules of torch: gradients beside torch's own, shared memory, what is refused."""
import copy
import gc
from dataclasses import dataclass

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import sheaf as sf
from conftest import Leaf, TreeRNN
from sheaf import Float32, Module, Param, normal, tanh


def eager(parameters, tree):
    if isinstance(tree, Leaf):
        return parameters["embedding"][tree.word]
    return torch.tanh(torch.cat([eager(parameters, tree.left), eager(parameters, tree.right)]) @ parameters["w"])


def eager_losses(parameters, data):
    scores = torch.stack([eager(parameters, t) @ parameters["out"] for t in data[0]])
    return torch.nn.functional.cross_entropy(scores, torch.tensor(data[1]), reduction="none")


def copies(net):
    return {name: p.detach().clone().requires_grad_() for name, p in net.named_parameters()}


def test_gradients_are_torchs(fast, data):
    net = fast.to_torch("loss")
    assert [name for name, _ in net.named_parameters()] == ["embedding", "w", "out", "unused"]
    own = copies(net)
    losses, expected = net(*data), eager_losses(own, data)
    assert losses.shape == (24,) and torch.allclose(losses, expected, atol=1e-5)
    weights = torch.linspace(-1, 2, 24)
    (losses * weights).sum().backward()
    (expected * weights).sum().backward()
    for name, p in net.named_parameters():
        assert torch.allclose(p.grad, torch.zeros_like(p) if own[name].grad is None else own[name].grad, atol=1e-5), name


def test_optimisers_of_torch_train_the_model(fast, module, data):
    net, encoded = fast.to_torch(fast.loss), fast.loss.encode(*data)
    own = copies(net)
    ours, theirs = torch.optim.Adam(net.parameters(), lr=0.02), torch.optim.Adam(own.values(), lr=0.02)
    before = np.array(fast(data[0]))
    for _ in range(5):
        for optimizer, loss in ((ours, net(encoded).mean()), (theirs, eager_losses(own, data).mean())):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    assert torch.allclose(net.w, own["w"], atol=2e-4) and torch.allclose(net.embedding, own["embedding"], atol=2e-4)
    # One memory: the Params, and what other methods compute with when they are called next.
    after = fast(data[0])
    assert np.array_equal(module.w.value, net.w.detach().numpy()) and not np.array_equal(before, after)
    assert np.allclose(after[0], module(data[0][0]), atol=1e-5)
    with torch.no_grad():
        net.out.zero_()
    assert not np.asarray(fast(data[0])).any()
    # And the other way.
    fast.train_step(sf.optim.SGD(fast, lr=0.1), "loss", *data)
    loss = net(encoded)
    assert np.array_equal(loss.detach().numpy(), fast.loss(*data)) and np.abs(net.out.detach().numpy()).any()
    state = {name: torch.ones_like(p) for name, p in net.named_parameters()}
    net.load_state_dict(state)
    assert (np.asarray(fast.vector([Leaf(1)])) == 1).all()


def test_sparse_gradients(fast, data):
    dense, sparse = fast.to_torch("loss"), fast.to_torch("loss", sparse=True)
    dense(*data).sum().backward()
    sparse(data[0], data[1]).sum().backward()
    assert sparse.embedding.grad.is_sparse and not sparse.w.grad.is_sparse
    assert torch.equal(sparse.embedding.grad.to_dense(), dense.embedding.grad)
    torch.optim.SparseAdam([sparse.embedding], lr=0.1).step()
    assert np.allclose(fast.loss(*data), dense(*data).detach())


def test_two_forwards_before_a_backward(fast, data):
    net = fast.to_torch("loss")
    one, other = net(data[0][:10], data[1][:10]), net(data[0][10:], data[1][10:])
    one.sum().backward()
    first = net.w.grad.clone()
    other.sum().backward()
    both, net.w.grad = net.w.grad.clone(), None
    net(*data).sum().backward()
    assert torch.allclose(both, net.w.grad, atol=1e-5) and not torch.allclose(first, both, atol=1e-3)


def test_a_forward_is_gone_with_its_results(fast, data):
    """Not with the next collection: rows of many mini-batches would pile up until then."""
    net = fast.to_torch("loss")
    for columns in (data, [fast.loss.encode(*data)]):
        net(*columns).mean().backward()
        gc.collect()
        gc.disable()
        try:
            for _ in range(3):
                net(*columns).mean().backward()
            net(*columns)
            assert gc.collect() == 0
        finally:
            gc.enable()


def test_weights_that_change_before_the_backward_are_an_error(fast, data):
    net = fast.to_torch("loss")
    losses = net(*data)
    with torch.no_grad():
        net.w.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        losses.sum().backward()
    losses = net(*data)
    fast.train_step(sf.optim.SGD(fast, lr=0.1), "loss", *data)
    with pytest.raises(RuntimeError, match="the weights have changed"):
        losses.sum().backward()


class Middle(Module):
    def __init__(self):
        self.w = Param(3, 3, init=normal(0.5))

    def forward(self, x: Float32["3"], xs: list[Float32["3"]]) -> tuple[Float32["3"], list[Float32["3"]], int]:
        h, seen = x, [x]
        for y in xs:
            h = tanh((h + y) @ self.w)
            seen = [*seen, h]
        return h, seen, len(xs)

    def rows(self, x: Float32["n 3"]) -> Float32["n 3"]:
        return tanh(x @ self.w)


def test_between_layers_of_torch():
    torch.manual_seed(0)
    fast = sf.jit(Middle())
    net, below, above = fast.to_torch(), torch.nn.Linear(4, 3), torch.nn.Linear(3, 2)
    given = torch.randn(5, 4)
    lists = [[torch.randn(3, requires_grad=True) for _ in range(i)] for i in range(5)]
    results = {}
    for way in ("sheaf", "torch"):
        below.zero_grad(), above.zero_grad(), net.zero_grad()
        for y in sum(lists, []):
            y.grad = None
        x = below(given)
        if way == "sheaf":
            last, seen, counts = net(x, lists)
            assert counts.tolist() == [0, 1, 2, 3, 4] and [len(s) for s in seen] == [1, 2, 3, 4, 5]
        else:
            last, seen = [], []
            for h, ys in zip(x, lists):
                seen.append([h])
                for y in ys:
                    h = torch.tanh((h + y) @ net.w)
                    seen[-1].append(h)
                last.append(h)
            last = torch.stack(last)
        loss = above(last).square().sum() + sum((s[len(s) // 2] * s[-1]).sum() for s in seen)
        loss.backward()
        results[way] = [loss.detach(), below.weight.grad.clone(), net.w.grad.clone(),
                        *[y.grad.clone() for y in sum(lists, [])]]
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(*results.values()))
    # Extents of their own: one tensor for each input.
    rows = fast.to_torch("rows")
    some = [torch.randn(n, 3, requires_grad=True) for n in (1, 4)]
    sum(r.sum() for r in rows(some)).backward()
    for x in some:
        own = x.detach().clone().requires_grad_()
        torch.tanh(own @ net.w).sum().backward()
        assert torch.allclose(x.grad, own.grad, atol=1e-6)


def test_dropout_drops_in_training_mode(fast, data):
    net = fast.to_torch("dropped")
    one, other = net(*data), net(*data)
    assert not torch.equal(one, other)
    one.sum().backward()  # each with its own draws
    other.sum().backward()
    net.eval()
    assert torch.allclose(net(*data), torch.tensor(fast.loss(*data))) and torch.equal(net(*data), net(*data))
    with torch.no_grad():
        net.out.zero_()
        assert torch.allclose(net(*data), torch.tensor(np.log(3.0)).float())


def test_parameters_that_stay(fast, data):
    net = fast.to_torch("loss")
    net.embedding.requires_grad_(False)
    net(*data).sum().backward()
    assert net.embedding.grad is None and net.w.grad.abs().sum() > 0
    first = net.w.grad.clone()
    net.embedding.requires_grad_(True)  # and back
    net.w.requires_grad_(False)
    net.zero_grad(set_to_none=True)
    net(*data).sum().backward()
    assert net.w.grad is None and net.embedding.grad.abs().sum() > 0
    net.w.requires_grad_(True)
    net(*data).sum().backward()
    assert torch.equal(net.w.grad, first)


def test_dropout_of_one_method_is_not_anothers(fast, data):
    assert fast.to_torch("dropped")._draws
    assert not fast.to_torch("loss")._draws and not fast.to_torch("forward")._draws


def test_what_layers_give_under_autocast_is_cast():
    net, x = sf.jit(Doubles()).to_torch(), torch.randn(4, 3, requires_grad=True)
    below = torch.nn.Linear(3, 3)
    with torch.autocast("cpu", torch.bfloat16):
        given = below(x)
        assert given.dtype == torch.bfloat16
        result = net(given)
    assert result.dtype == torch.float32 and torch.equal(result, given.float() * 2)
    result.sum().backward()
    assert below.bias.grad.tolist() == [8.0] * 3
    for given, words in ((torch.ones(2, 3, dtype=torch.bfloat16), r"bfloat16: give it as f32, with .float\(\)"),
                         ([torch.ones(3).to_sparse()], "takes tensors that have memory of their own. Those inside of vmap")):
        with pytest.raises(TypeError, match=words):
            net(given)


class Doubles(Module):
    def forward(self, x: Float32["3"]) -> Float32["3"]:
        return x * 2


@dataclass
class Box:
    x: Float32["3"]


class Holds(Module):
    def forward(self, box: Box) -> Float32["3"]:
        return box.x * 2


class Boxes(Module):
    def forward(self, x: Float32["3"]) -> list[Box]:
        return [Box(x)]


def test_what_is_refused(fast, data):
    net = fast.to_torch("loss")
    with pytest.raises(TypeError, match="'forward' gives objects, Box: to_torch is of methods that"):
        sf.jit(Boxes()).to_torch()
    with pytest.raises(ValueError, match="the method is a compiled method"):
        fast.to_torch("lost")
    for change in (lambda: net.double(), lambda: net.half(), lambda: copy.deepcopy(net)):
        with pytest.raises(TypeError, match="f32|to_torch"):
            change()
    assert net.float() is net
    held = sf.jit(Holds())
    for run in (held, held.to_torch()):
        with pytest.raises(ValueError, match=r"box\[0\].x: the tensor requires a gradient, which ends here"):
            run([Box(torch.ones(3, requires_grad=True))])
    with pytest.raises(TypeError, match="label"):
        net(data[0])
    with pytest.raises(sf.InstanceErrors, match="1 of 2"):
        net(data[0][:2], [0, 7])
    w = net.w
    net.w = torch.nn.Parameter(torch.zeros(12, 6))
    with pytest.raises(RuntimeError, match="the Parameter 'w' is not what"):
        net(*data)
    net.w = w
    net(*data).sum().backward()
