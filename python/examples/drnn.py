"""Generates a tree from a sentence (doubly recurrent networks; Alvarez-Melis, Jaakkola 2017). One state
comes to a node from its parent, another from the sibling before it; both together say what the node is
called, whether it has children and whether a sibling follows. The children of a node and its next
siblings grow side by side."""
from dataclasses import dataclass

from sheaf import Float32, Module, Param, Token, Tokens, concat, glorot, normal, sigmoid, tanh, zeros


@dataclass(slots=True)
class Node:
    word: Token
    children: "list[Node]"


class DRNN(Module):
    def __init__(self, vocab, hidden=256, depth=5, width=4):
        self.vocab, self.hidden, self.depth, self.width = vocab, hidden, depth, width
        self.embedding = Param(vocab, hidden, init=normal(1.0))
        self.ancestor_w, self.ancestor_b = Param(2 * hidden, hidden, init=glorot), Param(hidden)
        self.sibling_w, self.sibling_b = Param(2 * hidden, hidden, init=glorot), Param(hidden)
        self.both_w = Param(2 * hidden, hidden, init=glorot)
        self.grow_w, self.word_w = Param(hidden, 2, init=glorot), Param(hidden, vocab, init=glorot)
        self.has_child, self.has_next = Param(vocab, init=normal(0.1)), Param(vocab, init=normal(0.1))

    def family(self, h_a: Float32["hidden"], h_s: Float32["hidden"], x: Float32["hidden"], level: int,
               place: int) -> list[Node]:
        """A node whose parent's state is `h_a` and whose elder sibling's is `h_s`, with all the siblings
        that follow it. `x` is the word of the elder sibling, or of the parent for a first child."""
        h_s2 = tanh(concat(x, h_s) @ self.sibling_w + self.sibling_b)
        state = tanh(concat(h_a, h_s2) @ self.both_w)
        grows = sigmoid(state @ self.grow_w)
        scores = state @ self.word_w + grows[0] * self.has_child + grows[1] * self.has_next
        word = Token(scores.argmax().item())
        children: list[Node] = []
        if level != self.depth and grows[0].item() >= 0.48:
            children = self.children_of(self.embedding[word], h_a, level + 1)
        following: list[Node] = []
        if place != self.width and grows[1].item() >= 0.48:
            following = self.family(h_a, h_s2, self.embedding[word], level, place + 1)
        return [Node(word, children)] + following

    def children_of(self, x: Float32["hidden"], h_a: Float32["hidden"], level: int) -> list[Node]:
        return self.family(tanh(concat(x, h_a) @ self.ancestor_w + self.ancestor_b), zeros(self.hidden), x,
                           level, 1)

    def forward(self, words: Tokens["n"]) -> list[Node]:
        return self.children_of(self.embedding[words].mean(axis=0), zeros(self.hidden), 1)
