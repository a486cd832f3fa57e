"""A recurrent network over a directed acyclic graph (DAG-RNN; Shuai and others 2016): a node reads the
states of any number of earlier nodes. The graph's value is the state of its last node."""
from dataclasses import dataclass

from sheaf import Float32, Module, Param, Token, glorot, normal, tanh, zeros


@dataclass(slots=True)
class Node:
    word: Token
    inputs: list[int]


class DAGRNN(Module):
    def __init__(self, vocab, hidden=256, classes=5):
        self.vocab, self.hidden, self.classes = vocab, hidden, classes
        self.embedding = Param(vocab, hidden, init=normal(0.1))
        self.input_w = Param(hidden, hidden, init=glorot)
        self.state_w, self.b = Param(hidden, hidden, init=glorot), Param(hidden)
        self.out_w, self.out_b = Param(hidden, classes, init=glorot), Param(classes)

    def step(self, node: Node, earlier: list[Float32["hidden"]]) -> Float32["hidden"]:
        read = zeros(self.hidden)
        for i in node.inputs:
            read = read + earlier[i]
        return tanh(self.embedding[node.word] @ self.input_w + read @ self.state_w + self.b)

    def forward(self, nodes: list[Node]) -> Float32["classes"]:
        assert len(nodes) > 0, "a graph has at least one node"
        states: list[Float32["hidden"]] = []
        for node in nodes:
            states.append(self.step(node, states))
        return states[-1] @ self.out_w + self.out_b
