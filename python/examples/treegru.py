"""A binary TreeGRU (Kokkinos, Potamianos 2017): a GRU whose past is two children."""
from sheaf import Float32, Module, Param, concat, glorot, normal, sigmoid, split, tanh
from treelstm import Leaf, Node, Tree


class TreeGRU(Module):
    def __init__(self, vocab, hidden=256, classes=5):
        self.vocab, self.hidden, self.classes = vocab, hidden, classes
        self.embedding = Param(vocab, hidden, init=normal(0.1))
        self.leaf_w, self.leaf_b = Param(hidden, 2 * hidden, init=glorot), Param(2 * hidden)
        self.gates_w, self.gates_b = Param(2 * hidden, 3 * hidden, init=glorot), Param(3 * hidden)
        self.new_w, self.new_b = Param(2 * hidden, hidden, init=glorot), Param(hidden)
        self.out_w, self.out_b = Param(hidden, classes, init=glorot), Param(classes)

    def encode(self, t: Tree) -> Float32["hidden"]:
        match t:
            case Leaf(word):
                z, n = split(self.embedding[word] @ self.leaf_w + self.leaf_b, 2)
                return (1 - sigmoid(z)) * tanh(n)
            case Node(left, right):
                l, r = self.encode(left), self.encode(right)
                # Update gate, and one reset gate for each child.
                z, rl, rr = split(sigmoid(concat(l, r) @ self.gates_w + self.gates_b), 3)
                new = tanh(concat(rl * l, rr * r) @ self.new_w + self.new_b)
                return z * (l + r) + (1 - z) * new

    def forward(self, t: Tree) -> Float32["classes"]:
        return self.encode(t) @ self.out_w + self.out_b
