"""Models of models/ in PyTorch, one instance at a time, written as the formulas say."""
import torch

from common import parse_tree

cross_entropy = torch.nn.functional.cross_entropy


class Model:
    """`source`: what the model's text needs beside; `data`: of models/data; `w`: its weights."""
    source = ""
    dims = {}

    def __init__(self, weights, dtype):
        self.w = {name: value.to(dtype).clone().requires_grad_() for name, value in weights.items()}

    def zeros(self, *shape):
        return torch.zeros(*shape, dtype=next(iter(self.w.values())).dtype)

    def loss(self, instances, words):
        """The mean over instances."""
        return torch.stack([self.loss_of(each, words) for each in instances]).mean()

    @staticmethod
    def parse(line):
        return line.split(" ")


class TreeLstm(Model):
    name, data = "treelstm", "trees.txt"
    parse = staticmethod(parse_tree)

    def encode(self, tree, words):
        w = self.w
        if len(tree) == 2:
            row = w["embedding"][words.get(tree[1], 0)]
            i, o, u = (row @ w["leaf_w"] + w["leaf_b"]).chunk(3)
            c = i.sigmoid() * u.tanh()
        else:
            (hl, cl), (hr, cr) = (self.encode(child, words) for child in tree[1:])
            i, o, u, fl, fr = (torch.cat([hl, hr]) @ w["node_w"] + w["node_b"]).chunk(5)
            c = i.sigmoid() * u.tanh() + fl.sigmoid() * cl + fr.sigmoid() * cr
        return o.sigmoid() * c.tanh(), c

    def loss_of(self, tree, words):
        scores = self.encode(tree, words)[0] @ self.w["out_w"] + self.w["out_b"]
        return cross_entropy(scores, torch.tensor(tree[0]))


class MatrixVector(Model):
    name, data = "mvrnn", "trees.txt"
    source = "fn loss(t: Tree, label: int) -> f32 = cross_entropy(main(t), label)\n"
    parse = staticmethod(parse_tree)

    def encode(self, tree, words):
        w = self.w
        if len(tree) == 2:
            word = words.get(tree[1], 0)
            return w["vectors"][word], w["matrices"][word]
        (l, l_m), (r, r_m) = (self.encode(child, words) for child in tree[1:])
        vector = torch.tanh(torch.cat([r_m @ l, l_m @ r]) @ w["w"] + w["b"])
        return vector, w["w_m"] @ torch.cat([l_m, r_m])

    def loss_of(self, tree, words):
        scores = self.encode(tree, words)[0] @ self.w["out_w"] + self.w["out_b"]
        return cross_entropy(scores, torch.tensor(tree[0]))


class Tagger(Model):
    name, data = "bilstm", "tagged.txt"
    source = ("fn loss(words: list<token>) -> f32 =\n"
              "  fold(|s: f32, (i, x)| s + cross_entropy(x, i % tags), f32(0.0), "
              "enumerate(main(words))) / float(len(words))\n")

    @staticmethod
    def parse(line):
        return [word.rsplit("|", 1)[0] for word in line.split(" ")]

    def lstm(self, which, xs):
        w, b = self.w[which + ".w"], self.w[which + ".b"]
        h = c = self.zeros(w.shape[1] // 4)
        states = []
        for x in xs:
            i, f, o, u = (torch.cat([x, h]) @ w + b).chunk(4)
            c = f.sigmoid() * c + i.sigmoid() * u.tanh()
            h = o.sigmoid() * c.tanh()
            states.append(h)
        return states

    def loss_of(self, sentence, words):
        xs = [self.w["embedding"][words.get(word, 0)] for word in sentence]
        forward = self.lstm("forward", xs)
        backward = self.lstm("backward", xs[::-1])[::-1]
        scores = [torch.cat(states) @ self.w["out_w"] + self.w["out_b"]
                  for states in zip(forward, backward)]
        tags = scores[0].shape[0]
        return sum(cross_entropy(x, torch.tensor(i % tags))
                   for i, x in enumerate(scores)) / len(scores)


class EarlyExit(Model):
    name, data = "earlyexit", "sentences.txt"
    source = ("fn loss(words: token[n]) -> f32 = { let (taken, y) = main(words)\n"
              "  cross_entropy(y, taken % classes) }\n")

    def loss_of(self, sentence, words):
        w = self.w
        y = w["embedding"][[words.get(word, 0) for word in sentence]].mean(0)
        left, answer, layers = 1.0, self.zeros(y.shape[0]), 12
        for layer in range(layers):
            y = y + torch.relu(y @ w[f"layers.{layer}.w"] + w[f"layers.{layer}.b"])
            # What a program reads is constant to gradients.
            p = torch.sigmoid(2 * (y @ w[f"layers.{layer}.halt_w"]).squeeze() - 2).item()
            if p >= left or layer == layers - 1:
                answer = answer + left * y
                break
            answer, left = answer + p * y, left - p
        scores = answer @ w["out_w"] + w["out_b"]
        return cross_entropy(scores, torch.tensor((layer + 1) % scores.shape[0]))


ALL = [TreeLstm, MatrixVector, Tagger, EarlyExit]
