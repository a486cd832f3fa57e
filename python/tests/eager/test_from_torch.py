"""sf.from_torch: cells of PyTorch as Modules."""
import copy
import pickle

import numpy as np
import pytest

from sheaf import from_torch, nn

torch = pytest.importorskip("torch")
try:
    torch.zeros(1).numpy()
except RuntimeError:
    pytest.skip("this torch does not work with this NumPy", allow_module_level=True)


def draw(*shape):
    return torch.randn(*shape, generator=GENERATOR)


GENERATOR = torch.Generator().manual_seed(1)


class Function(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.w, self.b = torch.nn.Parameter(draw(4, 4)), torch.nn.Parameter(draw(4))
        self.function = function

    def forward(self, x, y):
        return self.function(self, x, y)


def changed_in_place(m, x, y):
    z = x + y
    z.mul_(2).add_(m.b)
    return z.sigmoid_()


F = torch.nn.functional
FUNCTIONS = {
    "arithmetic": lambda m, x, y: (x + 2 * y - 1) / (y.abs() + 1) - (3 - x) ** 2 + 1 / (x * x + 1) + torch.add(x, y, alpha=0.5),
    "powers": lambda m, x, y: (x.abs() + 1) ** 0.5 + 2 ** y.clamp(-1, 1) + (x.abs() + 1) ** y.tanh(),
    "functions": lambda m, x, y: (x.exp().log1p() + x.sin() * y.cos() + torch.erf(x) + x.floor() + y.ceil() + x.sign() + torch.rsqrt(y.abs() + 1) + x.expm1().tanh()),
    "activations": lambda m, x, y: (F.relu(x) + F.gelu(x) + F.silu(y) + F.leaky_relu(x, 0.2) + F.softplus(y) + F.elu(x, 0.7) + F.logsigmoid(x) + F.hardtanh(y) + F.gelu(y, approximate="tanh")),
    "comparisons": lambda m, x, y: torch.where((x > y) & (x >= 0) | ~(y <= 0.5), x, -y) + x.masked_fill(x < 0, 0.25) + torch.maximum(x, y) + torch.min(x, y),
    "products": lambda m, x, y: x @ m.w + (m.w @ y.T).T + torch.addmm(m.b, x, m.w, alpha=0.5) + torch.einsum("nd,hd->nh", x, m.w) + F.linear(y, m.w, m.b) + (x @ m.b)[:, None],
    "movement": lambda m, x, y: torch.cat([x[:, 1:], y[:, :1]], 1) + torch.stack([x, y], 1)[:, 1] + x.flip(1) + x.view(-1, 2, 2).permute(0, 2, 1).reshape(x.shape) + x.t().transpose(0, 1).unsqueeze(0).squeeze(0) + m.b.expand(x.shape) + x[0] + y[-1],
    "parts": lambda m, x, y: [a * b for a, b in zip(x.chunk(2, 1), y.split([2, 2], 1))][1].sum(1) + x.unbind(1)[2] + torch.tril(m.w)[1, 0] + torch.triu(m.w, 1)[0].sum(),
    "reductions": lambda m, x, y: (x.sum() + y.mean(0).sum() + x.max(1)[0].sum() + x.amin(0).mean() + torch.logsumexp(x, 1).sum() + x.norm() + y.var(1).sum() + y.var(1, unbiased=False).mean() + x.sum((0, 1)), x.argmax(1), x.max(1)[1], y.cumsum(0)),
    "softmax": lambda m, x, y: (F.softmax(x, 1) + F.log_softmax(y, 0), F.layer_norm(x, (4,), m.b, m.b, 0.1), F.layer_norm(y, (4,))),
    "attention": lambda m, x, y: F.softmax((x @ y.T / 2).masked_fill(torch.ones(len(x), len(y)).tril() == 0, float("-inf")), -1) @ y,
    "made": lambda m, x, y: x + torch.zeros_like(x) + torch.ones(4) + torch.full((4,), 0.5) + torch.arange(4) + torch.arange(4.0),
    "in place": changed_in_place,
    "structures": lambda m, x, y: (x, (y, x + y)),
}


def written(x):
    x[0] = 5
    return x


def part_of_written(x):
    part = x[0]
    x.add_(1)
    return part


def arrays(value):
    return tuple(map(arrays, value)) if isinstance(value, (tuple, list)) else np.asarray(value)


def same(got, wanted):
    if isinstance(wanted, tuple):
        assert isinstance(got, tuple) and len(got) == len(wanted)
        for a, b in zip(got, wanted):
            same(a, b)
    else:
        assert got.shape == wanted.shape
        np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-4, atol=1e-5)


def holds(module, made, *given):
    with torch.no_grad():
        same(made(*map(arrays, given)), arrays(module(*given)))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    module = Function(FUNCTIONS[name])
    made = from_torch(module, (draw(3, 4), draw(3, 4)), name="Made")
    holds(module, made, draw(3, 4), draw(3, 4))


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n not in ("made",)])
def test_functions_of_any_length(name):
    module = Function(FUNCTIONS[name])
    made = from_torch(module, (draw(3, 4), draw(3, 4)), longer=(draw(5, 4), draw(5, 4)), name="Made")
    assert 'x: Float32["n 4"]' in made.text
    for n in (1, 2, 6):
        holds(module, made, draw(n, 4), draw(n, 4))


def test_layers():
    for module, example, longer in (
            (torch.nn.LSTMCell(4, 3), (draw(4), (draw(3), draw(3))), None),
            (torch.nn.GRUCell(4, 3), (draw(4), draw(3)), None),
            (torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Dropout(0.5),
                                 torch.nn.Linear(8, 2)), draw(4), None),
            (torch.nn.TransformerEncoderLayer(4, 2, 6), draw(3, 4), draw(5, 4)),
            (torch.nn.Embedding(7, 3), torch.tensor([1, 2]), torch.tensor([1, 2, 3])),
            (torch.nn.Bilinear(3, 4, 2), (draw(3), draw(4)), None)):
        module.eval()
        try:
            made = from_torch(module, example, longer)
        except NotImplementedError as error:
            assert isinstance(module, torch.nn.Bilinear) and "aten::" in str(error)
            continue
        holds(module, made, *(example if isinstance(example, tuple) else (example,)))
        if longer is not None:
            holds(module, made, longer)
        state = {name: value.numpy() for name, value in module.state_dict().items()}
        assert set(made.state_dict()) == set(state)
        made.initialize(seed=1)
        made.load_state_dict(state)
        holds(module, made, *(example if isinstance(example, tuple) else (example,)))


def test_inside_a_model_and_copied():
    cell = torch.nn.LSTMCell(4, 3)
    made = from_torch(cell, (draw(4), (draw(3), draw(3))))
    twin = nn.LSTMCell(4, 3)
    twin.load_state_dict(made.state_dict())
    x, h, c = (draw(n).numpy() for n in (4, 3, 3))
    for other in (copy.deepcopy(made), pickle.loads(pickle.dumps(made)), twin):
        same(other(x, (h, c)), tuple(np.asarray(part) for part in made(x, (h, c))))
    again = copy.deepcopy(made)
    again.weight_ih.value[...] = 0
    assert made.weight_ih.value.any()


@pytest.mark.parametrize("function, said", [
    (lambda m, x, y: x.sort(1)[0], "aten::sort has no counterpart"),
    (lambda m, x, y: F.dropout(x, 0.5), r"\.eval\(\)"),
    (lambda m, x, y: x[x > 0], "aten::"),
    (lambda m, x, y: x if x.sum() > 0 else y, "cannot be recorded|value that is read"),
    (lambda m, x, y: x[:, ::2], "a slice with a step"),
    (lambda m, x, y: x[0].add_(1) + x, "in place"),
    (lambda m, x, y: written(x * 1), "in place"),
    (lambda m, x, y: part_of_written(x * 1), "in place"),
    (lambda m, x, y: F.softplus(x, 1.0, 3.0), "threshold"),
])
def test_refused(function, said):
    with pytest.raises(NotImplementedError, match=said):
        from_torch(Function(function), (draw(3, 4), draw(3, 4)))


def test_examples_that_do_not_do():
    module = Function(FUNCTIONS["arithmetic"])
    with pytest.raises(TypeError, match="not of int"):
        from_torch(module, (draw(3, 4), 3))
    with pytest.raises(ValueError, match="not made alike"):
        from_torch(module, (draw(3, 4), draw(3, 4)), longer=(draw(3, 4), draw(4)))
    turns = Function(lambda m, x, y: sum(x[i] for i in range(len(x))))
    with pytest.raises(NotImplementedError, match="different operators"):
        from_torch(turns, (draw(3, 4), draw(3, 4)), longer=(draw(5, 4), draw(5, 4)))
