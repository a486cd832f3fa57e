"""A matrix-vector recursive network (Socher, Huval, Manning, Ng 2012): a word is a vector and a matrix,
and each of two neighbours transforms the other's vector by its own matrix."""
from sheaf import Float32, Module, Param, concat, glorot, normal, tanh
from treelstm import Leaf, Node, Tree


class MVRNN(Module):
    def __init__(self, vocab, hidden=64, classes=5):
        self.vocab, self.hidden, self.classes = vocab, hidden, classes
        self.vectors = Param(vocab, hidden, init=normal(0.1))
        self.matrices = Param(vocab, hidden, hidden, init=glorot)
        self.w, self.b = Param(2 * hidden, hidden, init=glorot), Param(hidden)
        self.w_m = Param(hidden, 2 * hidden, init=glorot)
        self.out_w, self.out_b = Param(hidden, classes, init=glorot), Param(classes)

    def encode(self, t: Tree) -> tuple[Float32["hidden"], Float32["hidden hidden"]]:
        match t:
            case Leaf(word):
                return self.vectors[word], self.matrices[word]
            case Node(left, right):
                l, l_m = self.encode(left)
                r, r_m = self.encode(right)
                return (tanh(concat(r_m @ l, l_m @ r) @ self.w + self.b),
                        self.w_m @ concat(l_m, r_m))

    def forward(self, t: Tree) -> Float32["classes"]:
        v, _ = self.encode(t)
        return v @ self.out_w + self.out_b
