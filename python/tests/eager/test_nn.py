"""Layers of sf.nn: names and layouts of torch's, and what they compute."""
import copy

import numpy as np
import pytest

import sheaf as sf
from sheaf import nn


def drawn(model, seed=1):
    """Every weight, those that begin as zeros too."""
    generator = np.random.default_rng(seed)
    for param in model.parameters():
        param.value = generator.normal(0, 0.5, param.shape)
    return model


def rows(n, size, seed=2):
    return np.random.default_rng(seed).normal(size=(n, size)).astype(np.float32)


def s(x):
    return 1 / (1 + np.exp(-x))


def test_names_and_layouts_of_torch():
    """As torch.nn's state_dicts have them."""
    def shapes(model):
        return {name: value.shape for name, value in model.state_dict().items()}

    assert shapes(nn.Linear(3, 5)) == {"weight": (5, 3), "bias": (5,)}
    assert shapes(nn.Linear(3, 5, bias=False)) == {"weight": (5, 3)}
    assert shapes(nn.Embedding(7, 3)) == {"weight": (7, 3)}
    assert shapes(nn.Conv1d(6, 4, 3, groups=2)) == {"weight": (4, 3, 3), "bias": (4,)}
    assert shapes(nn.LayerNorm((4,))) == {"weight": (4,), "bias": (4,)}
    assert shapes(nn.RMSNorm(4)) == {"weight": (4,)}
    assert shapes(nn.LSTMCell(3, 2)) == {"weight_ih": (8, 3), "weight_hh": (8, 2), "bias_ih": (8,),
                                         "bias_hh": (8,)}
    assert shapes(nn.GRUCell(3, 2, bias=False)) == {"weight_ih": (6, 3), "weight_hh": (6, 2)}
    lstm = shapes(nn.LSTM(3, 2, num_layers=2, bidirectional=True))
    assert lstm == {f"{weight}_l{layer}{way}": shape
                    for layer, size in ((0, 3), (1, 4)) for way in ("", "_reverse")
                    for weight, shape in (("weight_ih", (8, size)), ("weight_hh", (8, 2)),
                                          ("bias_ih", (8,)), ("bias_hh", (8,)))}
    assert list(shapes(nn.GRU(3, 2))) == ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"]
    attention = {"in_proj_weight": (12, 4), "in_proj_bias": (12,), "out_proj.weight": (4, 4),
                 "out_proj.bias": (4,)}
    assert shapes(nn.MultiheadAttention(4, 2)) == attention
    layer = {f"self_attn.{name}": shape for name, shape in attention.items()} | {
        "linear1.weight": (6, 4), "linear1.bias": (6,), "linear2.weight": (4, 6), "linear2.bias": (4,),
        "norm1.weight": (4,), "norm1.bias": (4,), "norm2.weight": (4,), "norm2.bias": (4,)}
    assert shapes(nn.TransformerEncoderLayer(4, 2, 6)) == layer
    whole = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 6), 2, norm=nn.LayerNorm(4))
    assert shapes(whole) == {f"layers.{i}.{name}": shape for i in range(2)
                             for name, shape in layer.items()} | {"norm.weight": (4,), "norm.bias": (4,)}
    assert not np.array_equal(whole.layers[0].linear1.weight.value, whole.layers[1].linear1.weight.value)


def test_state_dicts_inside_a_model():
    class Tagger(sf.Module):
        def __init__(self):
            self.lstms = [nn.LSTM(3, 2)]
            self.out = nn.Linear(2, 4)

    model = drawn(Tagger())
    state = model.state_dict("tagger.")
    assert list(state)[0] == "tagger.lstms.0.weight_ih_l0" and "tagger.out.weight" in state
    other = Tagger()
    other.load_state_dict({name[7:]: value for name, value in state.items()})
    assert np.array_equal(other.lstms[0].cells[0].weight_hh.value, model.lstms[0].cells[0].weight_hh.value)
    with pytest.raises(ValueError, match="missing: lstms.0.weight_ih_l0"):
        other.load_state_dict({})


def test_linear_and_norms_take_any_rows():
    linear, x = drawn(nn.Linear(3, 5)), rows(4, 3)
    wanted = x @ linear.weight.value.T + linear.bias.value
    np.testing.assert_allclose(linear(x), wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(linear(x[0]), wanted[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(linear(np.stack([x, x]))[1], wanted, rtol=1e-5, atol=1e-6)
    norm = drawn(nn.LayerNorm(3, eps=0.1))
    centred = x - x.mean(1, keepdims=True)
    wanted = centred / np.sqrt((centred ** 2).mean(1, keepdims=True) + 0.1) * norm.weight.value + norm.bias.value
    np.testing.assert_allclose(norm(x), wanted, rtol=1e-5, atol=1e-6)
    rms = drawn(nn.RMSNorm(3))
    np.testing.assert_allclose(rms(x[1]), x[1] / np.sqrt((x[1] ** 2).mean() + 1e-6) * rms.weight.value,
                               rtol=1e-5)
    table = drawn(nn.Embedding(7, 3))
    assert np.array_equal(table([6, 0]), table.weight.value[[6, 0]]) and table.of(6).shape == (3,)


def lstm_by_hand(x, state, suffix):
    w_i, w_h, b_i, b_h = (state[name + suffix] for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
    h = c = np.zeros(w_h.shape[1])
    made = []
    for row in x:
        i, f, g, o = np.split(w_i @ row + b_i + w_h @ h + b_h, 4)
        c = s(f) * c + s(i) * np.tanh(g)
        h = s(o) * np.tanh(c)
        made.append(h)
    return np.stack(made), h, c


def test_lstm():
    model, x = drawn(nn.LSTM(3, 2, num_layers=2, bidirectional=True)), rows(5, 3)
    state, y, hs, cs = model.state_dict(), x, [], []
    for layer in range(2):
        ahead, h, c = lstm_by_hand(y, state, f"_l{layer}")
        back, h2, c2 = lstm_by_hand(y[::-1], state, f"_l{layer}_reverse")
        y = np.concatenate([ahead, back[::-1]], 1)
        hs, cs = hs + [h, h2], cs + [c, c2]
    states, (last, cells) = model(x)
    for got, wanted in ((states, y), (last, np.stack(hs)), (cells, np.stack(cs))):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def test_gru():
    model, x = drawn(nn.GRU(3, 2, num_layers=2)), rows(4, 3)
    state, y, lasts = model.state_dict(), x, []
    for layer in range(2):
        w_i, w_h, b_i, b_h = (state[f"{name}_l{layer}"] for name in
                              ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
        h, made = np.zeros(2), []
        for row in y:
            (r, z, n), (r2, z2, n2) = np.split(w_i @ row + b_i, 3), np.split(w_h @ h + b_h, 3)
            z = s(z + z2)
            h = (1 - z) * np.tanh(n + s(r + r2) * n2) + z * h
            made.append(h)
        y = np.stack(made)
        lasts.append(h)
    states, last = model(x)
    np.testing.assert_allclose(states, y, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(last, np.stack(lasts), rtol=1e-5, atol=1e-6)


def attend_by_hand(state, q, k, heads, causal=False):
    ws, bs = np.split(state["in_proj_weight"], 3), np.split(state["in_proj_bias"], 3)
    q, k, v = (x @ w.T + b for x, w, b in zip((q, k, k), ws, bs))
    made = []
    for q_h, k_h, v_h in zip(*(np.split(x, heads, 1) for x in (q, k, v))):
        scores = q_h @ k_h.T / np.sqrt(q_h.shape[1])
        if causal:
            scores = np.where(np.tri(*scores.shape), scores, -np.inf)
        weights = np.exp(scores - scores.max(1, keepdims=True))
        made.append(weights / weights.sum(1, keepdims=True) @ v_h)
    return np.concatenate(made, 1) @ state["out_proj.weight"].T + state["out_proj.bias"]


def test_attention():
    model, q, k = drawn(nn.MultiheadAttention(4, 2)), rows(3, 4), rows(5, 4, 3)
    np.testing.assert_allclose(model(q, k, k), attend_by_hand(model.state_dict(), q, k, 2), rtol=1e-4, atol=1e-5)
    causal = drawn(nn.MultiheadAttention(4, 2, causal=True))
    np.testing.assert_allclose(causal(q, q, q), attend_by_hand(causal.state_dict(), q, q, 2, True),
                               rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="evenly"):
        nn.MultiheadAttention(4, 3)


@pytest.mark.parametrize("norm_first", [False, True])
def test_encoder_layer(norm_first):
    model, x = drawn(nn.TransformerEncoderLayer(4, 2, 6, norm_first=norm_first)), rows(3, 4)
    state = model.state_dict()
    inner = {name[10:]: value for name, value in state.items() if name.startswith("self_attn.")}

    def norm(x, name):
        x = x - x.mean(1, keepdims=True)
        return x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-5) * state[name + ".weight"] + state[name + ".bias"]

    def feed(x):
        hidden = np.maximum(x @ state["linear1.weight"].T + state["linear1.bias"], 0)
        return hidden @ state["linear2.weight"].T + state["linear2.bias"]

    if norm_first:
        n = norm(x, "norm1")
        y = x + attend_by_hand(inner, n, n, 2)
        wanted = y + feed(norm(y, "norm2"))
    else:
        y = norm(x + attend_by_hand(inner, x, x, 2), "norm1")
        wanted = norm(y + feed(y), "norm2")
    np.testing.assert_allclose(model(x), wanted, rtol=1e-4, atol=1e-5)


def test_against_torch():
    """Where torch is installed, its own layers say what ours compute."""
    torch = pytest.importorskip("torch")
    try:
        torch.zeros(1).numpy()
    except RuntimeError:  # made for another NumPy
        pytest.skip("this torch does not work with this NumPy")
    x = rows(5, 4)
    pairs = [(nn.Linear(4, 3), torch.nn.Linear(4, 3)), (nn.LayerNorm(4), torch.nn.LayerNorm(4)),
             (nn.LSTM(4, 3, 2, bidirectional=True), torch.nn.LSTM(4, 3, 2, bidirectional=True)),
             (nn.GRU(4, 3, 2, bidirectional=True), torch.nn.GRU(4, 3, 2, bidirectional=True)),
             (nn.TransformerEncoderLayer(4, 2, 6, activation="gelu"),
              torch.nn.TransformerEncoderLayer(4, 2, 6, activation="gelu").eval())]
    for ours, theirs in pairs:
        assert ours.load_state_dict(theirs.state_dict()) == ([], [])
        with torch.no_grad():
            wanted, got = theirs(torch.tensor(x)), ours(x)
        while isinstance(wanted, tuple):
            wanted, got = wanted[0], got[0]
        np.testing.assert_allclose(got, wanted.numpy(), rtol=1e-4, atol=1e-5)
        back = {name: torch.tensor(value) for name, value in ours.state_dict().items()}
        assert not any(theirs.load_state_dict(back))
    memory = rows(7, 4, 9)
    for norm_first in (False, True):
        ours = nn.TransformerDecoderLayer(4, 2, 6, norm_first=norm_first, causal=True)
        theirs = torch.nn.TransformerDecoderLayer(4, 2, 6, norm_first=norm_first).eval()
        ours.load_state_dict(theirs.state_dict())
        mask = torch.triu(torch.full((5, 5), -np.inf), 1)
        with torch.no_grad():
            wanted = theirs(torch.tensor(x), torch.tensor(memory), tgt_mask=mask)
        np.testing.assert_allclose(ours(x, memory), wanted.numpy(), rtol=1e-4, atol=1e-5)


def test_decoder():
    model = nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 6, causal=True), 2, norm=nn.LayerNorm(4))
    x, memory = rows(5, 4), rows(7, 4, 9)
    whole = model(x, memory)
    # A row sees no later ones, and all of the memory.
    np.testing.assert_allclose(model(x[:3], memory), whole[:3], rtol=1e-4, atol=1e-5)
    assert np.abs(model(x, memory[:5]) - whole).max() > 1e-3
    assert "layers.1.multihead_attn.in_proj_weight" in model.state_dict()


@pytest.mark.parametrize("bidirectional", [False, True])
def test_empty_sentence(bidirectional):
    """As compiled code has it: no states, and zeros after them."""
    width, states = (6, 4) if bidirectional else (3, 2)
    x = np.zeros((0, 4), np.float32)
    hs, h = nn.GRU(4, 3, 2, bidirectional=bidirectional)(x)
    assert hs.shape == (0, width) and h.shape == (states, 3) and not np.asarray(h).any()
    hs, (h, c) = nn.LSTM(4, 3, 2, bidirectional=bidirectional)(x)
    assert hs.shape == (0, width) and h.shape == c.shape == (states, 3) and not np.asarray(c).any()


def test_convolution():
    """Against sums written out, places last as in torch."""
    def by_hand(x, weight, stride, before, after, dilation, groups):
        x = np.pad(x, ((0, 0), (before, after)))
        out, per_group, taps = weight.shape
        count = (x.shape[1] - (taps - 1) * dilation - 1) // stride + 1
        y = np.zeros((out, count))
        for o in range(out):
            first = o // (out // groups) * per_group
            for t in range(count):
                at = t * stride + np.arange(taps) * dilation
                y[o, t] = np.sum(weight[o] * x[first:first + per_group, at])
        return y

    for n, options, sides in [(7, {}, (0, 0)), (7, {"padding": 2, "stride": 3, "dilation": 2}, (2, 2)),
                              (6, {"padding": "same", "groups": 2}, (1, 1)),
                              (5, {"padding": "same", "dilation": 3, "kernel_size": 2}, (1, 2)),
                              (4, {"kernel_size": (1,), "padding": "valid"}, (0, 0)),
                              (0, {"padding": 1, "bias": False}, (1, 1))]:
        layer = drawn(nn.Conv1d(4, 6, **({"kernel_size": 3} | options)))
        wanted = by_hand(rows(4, n), layer.state_dict()["weight"], layer.stride, *sides, layer.dilation, layer.groups)
        if options.get("bias", True):
            wanted = wanted + layer.bias.value[:, None]
        assert np.allclose(layer(rows(4, n)), wanted, atol=1e-5), options
    other = nn.Conv1d(4, 6, 1)
    weight = np.arange(24, dtype=np.float32).reshape(6, 4, 1)
    other.load_state_dict({"weight": weight, "bias": np.zeros(6)})
    assert np.array_equal(other(np.eye(4, dtype=np.float32)), weight[:, :, 0])
    other.state_dict()["weight"][...] = 0
    assert not np.any(other(rows(4, 3))) and copy.deepcopy(other).state_dict()["weight"].shape == (6, 4, 1)
    with pytest.raises(ValueError, match="stride of 1"):
        nn.Conv1d(4, 6, 3, stride=2, padding="same")
    with pytest.raises(ValueError, match="no multiples of 3"):
        nn.Conv1d(4, 6, 3, groups=3)
    for name in ("in_channels", "groups", "kernel_size", "dilation"):
        with pytest.raises(ValueError, match=f"{name} is at least 1, not 0"):
            nn.Conv1d(**({"in_channels": 4, "out_channels": 6, "kernel_size": 3} | {name: 0}))
    with pytest.raises(sf.ShapeError, match="a window of 3 does not fit into a sequence of 1"):
        nn.Conv1d(4, 6, 3)(rows(4, 1))
    with pytest.raises(TypeError, match="zeros alone"):
        nn.Conv1d(4, 6, 3, padding_mode="reflect")


def test_pooling():
    x = np.array([[1, 5, 3, 2, 9], [-8, -2, -4, -1, 0]], np.float32)
    assert np.array_equal(nn.MaxPool1d(2)(x), [[5, 3], [-2, -1]])
    assert np.array_equal(nn.MaxPool1d(3, 2, 1)(x), [[5, 5, 9], [-2, -1, 0]])
    assert np.array_equal(nn.AvgPool1d(2, stride=(3,))(x), [[3, 5.5], [-5, -0.5]])
    assert np.array_equal(nn.AvgPool1d(2, padding=1)(x), [[0.5, 4, 5.5], [-4, -3, -0.5]])
