"""all-MiniLM-L6-v2 by ONNX Runtime (PyPI onnxruntime, onnx), of the operators that its transformer optimiser
makes of a BERT: embeddings, attention with all heads, norms with their residuals, and GELU are one each."""
import os

import numpy as np
import onnx
import onnxruntime
import torch
from common import read_weights
from onnx import TensorProto, helper, numpy_helper

HIDDEN, HEADS, LAYERS, EPSILON = 384, 12, 6, 1e-12


class Graph:
    def __init__(self, directory):
        self.w = read_weights(os.path.join(directory, "model.safetensors"))
        self.nodes, self.constants = [], []

    def constant(self, value, name):
        value = value.numpy() if isinstance(value, torch.Tensor) else value
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def weight(self, name):
        return self.constant(self.w[name], name)

    def matrix(self, name):
        """Of what stands as [output, input]."""
        return self.constant(self.w[name + ".weight"].T, name + ".weight")

    def apply(self, kind, inputs, output, domain="com.microsoft", **attributes):
        self.nodes.append(helper.make_node(kind, inputs, output if isinstance(output, list) else [output],
                                           domain=domain, **attributes))
        return output

    def plain(self, kind, inputs, output, **attributes):
        return self.apply(kind, inputs, output, "", **attributes)

    def residual(self, x, y, dense, norm, output):
        """A norm of x + y + the bias of `dense`."""
        return self.apply("SkipLayerNormalization", [x, y, self.weight(norm + ".weight"), self.weight(norm + ".bias"),
                                                     self.weight(dense + ".bias")], output, epsilon=EPSILON)

    def layer(self, x, i):
        name = f"encoder.layer.{i}."
        parts = [f"{name}attention.self.{part}" for part in ("query", "key", "value")]
        qkv = self.constant(torch.cat([self.w[part + ".weight"] for part in parts]).T, name + "qkv.weight")
        bias = self.constant(torch.cat([self.w[part + ".bias"] for part in parts]), name + "qkv.bias")
        seen = self.apply("Attention", [x, qkv, bias, "lengths"], name + "seen", num_heads=HEADS)
        y = self.plain("MatMul", [seen, self.matrix(name + "attention.output.dense")], name + "projected")
        x = self.residual(x, y, name + "attention.output.dense", name + "attention.output.LayerNorm", name + "middle")
        y = self.plain("MatMul", [x, self.matrix(name + "intermediate.dense")], name + "up")
        y = self.apply("BiasGelu", [y, self.weight(name + "intermediate.dense.bias")], name + "gelu")
        y = self.plain("MatMul", [y, self.matrix(name + "output.dense")], name + "down")
        return self.residual(x, y, name + "output.dense", name + "output.LayerNorm", name + "out")

    def model(self):
        places = self.w["embeddings.position_embeddings.weight"] + self.w["embeddings.token_type_embeddings.weight"][0]
        x = self.apply("EmbedLayerNormalization",
                       ["ids", "", self.weight("embeddings.word_embeddings.weight"),
                        self.constant(places, "places"), "", self.weight("embeddings.LayerNorm.weight"),
                        self.weight("embeddings.LayerNorm.bias"), "mask"], ["embedded", "lengths"], epsilon=EPSILON)[0]
        for i in range(LAYERS):
            x = self.layer(x, i)
        kept = self.plain("Cast", ["mask"], "kept", to=TensorProto.FLOAT)
        row = self.plain("Unsqueeze", [kept, self.constant(np.array([1]), "one")], "row")
        total = self.plain("MatMul", [row, x], "total")  # a mean's length is nothing to what is of length 1
        flat = self.plain("Squeeze", [total, "one"], "flat")
        self.plain("LpNormalization", [flat], "answer", axis=1, p=2)
        graph = helper.make_graph(
            self.nodes, "minilm",
            [helper.make_tensor_value_info(name, TensorProto.INT32, ["b", "n"]) for name in ("ids", "mask")],
            [helper.make_tensor_value_info("answer", TensorProto.FLOAT, ["b", HIDDEN])], self.constants)
        return helper.make_model(graph, ir_version=10,
                                 opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)])


def minilm(directory):
    """A function of a batch of texts, on one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    model = Graph(directory).model()
    onnx.checker.check_model(model)
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])

    def run(batch):
        size = max(map(len, batch))
        ids = np.array([text + [0] * (size - len(text)) for text in batch], np.int32)
        mask = np.array([[1] * len(text) + [0] * (size - len(text)) for text in batch], np.int32)
        return torch.from_numpy(session.run(None, {"ids": ids, "mask": mask})[0])

    return run
