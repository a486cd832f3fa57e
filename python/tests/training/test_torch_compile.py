"""What to_torch() gives inside of torch.compile and torch.export: one node of the graph."""
import numpy as np
import pytest
import sheaf as sf
from sheaf import Float32, Token

torch = pytest.importorskip("torch")
if not hasattr(getattr(torch, "library", None), "custom_op"):
    pytest.skip("this torch has no custom operators", allow_module_level=True)


class Cell(sf.Module):
    def __init__(self, drop=0.0):
        self.linear, self.table, self.drop = sf.nn.Linear(4, 4), sf.Param(7, 4), drop

    def forward(self, x: Float32[4], word: Token) -> tuple[Float32[4], Float32[""]]:
        h = sf.tanh(self.linear(x) + self.table[word])
        if self.drop > 0:
            h = sf.dropout(h, self.drop)
        return h, sf.sum(h * x)


class Sum(sf.Module):
    def __init__(self):
        self.scale = sf.Param(4, init=sf.constant(2.0))

    def forward(self, xs: list[Float32[4]]) -> Float32[4]:
        total = sf.zeros(4)
        for x in xs:
            total = total + self.scale * x
        return total


class Whole(torch.nn.Module):
    def __init__(self, drop=0.0):
        super().__init__()
        torch.manual_seed(0)
        self.before, self.after = torch.nn.Linear(3, 4), torch.nn.Linear(4, 2)
        self.cell = sf.jit(Cell(drop), vocab=7).to_torch()

    def forward(self, x, words):
        h, score = self.cell(self.before(x), words)
        return self.after(h).sum(1) + score


def inputs(count=5):
    return torch.from_numpy(np.random.default_rng(count).standard_normal((count, 3)).astype("f4")), torch.arange(count) % 7


def gradients(whole, run, *given):
    whole.zero_grad()
    run(*given).square().mean().backward()
    return [p.grad.clone() for p in whole.parameters()]


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_compiled_graphs_have_the_method_as_one_node(backend):
    torch._dynamo.reset()
    whole = Whole()
    compiled = torch.compile(whole, backend=backend, fullgraph=True)
    exact = backend != "inductor"  # whose own linear layers have other bits
    optimizer = torch.optim.SGD(whole.parameters(), lr=0.1)
    for count in (5, 5, 9, 1):
        given = inputs(count)
        result, expected = compiled(*given), whole(*given)
        own, others = gradients(whole, compiled, *given), gradients(whole, whole, *given)
        for a, b in zip([result, *own], [expected, *others]):
            assert torch.equal(a, b) if exact else torch.allclose(a, b, atol=1e-5)
        optimizer.step()  # in place: the next call has these weights


def test_gradients_of_runs_that_are_gone_are_those_of_the_runs():
    """More forwards than are kept before the first backward."""
    torch._dynamo.reset()
    whole = Whole()
    compiled = torch.compile(whole, backend="aot_eager", fullgraph=True)
    several = [inputs(count) for count in (2, 3, 4, 5)]
    whole.zero_grad()
    for loss in [compiled(*given).sum() for given in several]:
        loss.backward()
    own = [p.grad.clone() for p in whole.parameters()]
    whole.zero_grad()
    for given in several:
        whole(*given).sum().backward()
    for a, p in zip(own, whole.parameters()):
        assert torch.equal(a, p.grad)
    # Weights that changed in between are an error, as in torch.
    losses = [compiled(*given).sum() for given in several]
    with torch.no_grad():
        whole.cell.get_parameter("linear.bias").add_(1.0)
    with pytest.raises(RuntimeError, match="changed|modified"):
        losses[0].backward()


def test_what_is_no_node_runs_between_graphs():
    torch._dynamo.reset()
    drawn = Whole(drop=0.5)
    compiled = torch.compile(drawn, backend="eager")
    given = inputs()
    assert not torch.equal(compiled(*given), compiled(*given))  # another draw each time
    drawn.eval()
    assert torch.equal(compiled(*given), drawn(*given))
    assert torch._dynamo.explain(drawn.eval())(*given).graph_break_count == 0
    total = sf.jit(Sum()).to_torch()

    @torch.compile(backend="eager")
    def run(xs):
        return total([xs, xs[:2]]) * 3.0

    xs = torch.ones(3, 4)
    assert torch.equal(run(xs), torch.tensor([[18.0] * 4, [12.0] * 4]))


def test_exported_programs_have_the_method():
    whole = Whole().eval()
    given = inputs()
    batch = torch.export.Dim("batch")
    program = torch.export.export(whole, given, dynamic_shapes=({0: batch}, {0: batch}))
    assert sum(node.target == torch.ops.sheaf.call.default for node in program.graph.nodes) == 1
    assert not program.constants
    for count in (5, 2, 8):
        assert torch.equal(program.module()(*inputs(count)), whole(*inputs(count)))
