"""A shift-reduce parser with stack LSTMs (Dyer and others 2015): the likelier of the two actions is read
and done until one tree is left, whose meaning is classified as in SPINN (Bowman and others 2016). A stack
LSTM is a list of states: to pop is to go on from the state below."""
from dataclasses import dataclass

from cells import LSTM
from sheaf import Float32, Module, Param, Token, concat, glorot, normal, relu, tanh


@dataclass(slots=True)
class Word:
    word: Token


@dataclass(slots=True)
class Pair:
    left: "Tree"
    right: "Tree"


Tree = Word | Pair


@dataclass(slots=True)
class Entry:
    """What is on the stack: a tree, the vector of its meaning, and the state of the stack's LSTM there."""
    tree: Tree
    meaning: Float32["hidden"]
    h: Float32["hidden"]
    c: Float32["hidden"]


class Parser(Module):
    def __init__(self, vocab, hidden=256, classes=5):
        self.vocab, self.hidden, self.classes = vocab, hidden, classes
        self.stacked, self.waiting = LSTM(hidden, hidden), LSTM(hidden, hidden)
        self.done = LSTM(hidden, hidden)
        self.embedding = Param(vocab, hidden, init=normal(2.0))
        self.actions = Param(2, hidden, init=normal(2.0))
        self.pair_w, self.pair_b = Param(2 * hidden, hidden, init=glorot), Param(hidden)
        self.state_w, self.state_b = Param(3 * hidden, hidden, init=glorot), Param(hidden)
        self.action_w = Param(hidden, 2, init=glorot)
        self.out_w = Param(hidden, classes, init=glorot)

    def push(self, tree: Tree, meaning: Float32["hidden"],
             below: list[Entry]) -> list[Entry]:
        """The top of the stack stands first."""
        match below:
            case []:
                state = self.stacked.start()
            case [top, *_]:
                state = (top.h, top.c)
        h, c = self.stacked.step(state, meaning)
        return [Entry(tree, meaning, h, c)] + below

    def join(self, left: Float32["hidden"], right: Float32["hidden"]) -> Float32["hidden"]:
        return tanh(concat(left, right) @ self.pair_w + self.pair_b)

    def reduces(self, stack: list[Entry], ahead: Float32["hidden"], past: Float32["hidden"]) -> bool:
        """Whether the two on top become one; there are two."""
        state = relu(concat(stack[0].h, ahead, past) @ self.state_w + self.state_b)
        return (state @ self.action_w).argmax().item() == 1

    def forward(self, words: list[Token]) -> tuple[Tree, Float32["classes"]]:
        """The tree, and the scores of the classes by what it means."""
        assert len(words) > 0, "a sentence has at least one word"
        # What an LSTM that has read the sentence from its end to there says of each word.
        ahead = list(reversed(self.waiting([self.embedding[word] for word in reversed(words)])))
        stack: list[Entry] = []
        history, place = self.done.start(), 0
        while place < len(words):
            if len(stack) >= 2 and self.reduces(stack, ahead[place], history[0]):
                right, left = stack[0], stack[1]
                stack = self.push(Pair(left.tree, right.tree), self.join(left.meaning, right.meaning),
                                  stack[2:])
                history = self.done.step(history, self.actions[1])
            else:
                stack = self.push(Word(words[place]), self.embedding[words[place]], stack)
                history = self.done.step(history, self.actions[0])
                place += 1
        # Without words to come only one way is left.
        tree, meaning = stack[0].tree, stack[0].meaning
        for left in stack[1:]:
            tree, meaning = Pair(left.tree, tree), self.join(left.meaning, meaning)
        return tree, meaning @ self.out_w

