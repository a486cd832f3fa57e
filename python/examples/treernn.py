"""A recursive network (Socher and others 2011): one matrix joins two children."""
from sheaf import Float32, Module, Param, concat, glorot, normal, tanh
from treelstm import Leaf, Node, Tree


class TreeRNN(Module):
    def __init__(self, vocab, hidden=256, classes=5):
        self.vocab, self.hidden, self.classes = vocab, hidden, classes
        self.embedding = Param(vocab, hidden, init=normal(0.1))
        self.w, self.b = Param(2 * hidden, hidden, init=glorot), Param(hidden)
        self.out_w, self.out_b = Param(hidden, classes, init=glorot), Param(classes)

    def encode(self, t: Tree) -> Float32["hidden"]:
        match t:
            case Leaf(word):
                return tanh(self.embedding[word])
            case Node(left, right):
                return tanh(concat(self.encode(left), self.encode(right)) @ self.w + self.b)

    def forward(self, t: Tree) -> Float32["classes"]:
        return self.encode(t) @ self.out_w + self.out_b
