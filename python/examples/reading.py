"""Data files of models/data as Python objects, with words as numbers of a vocabulary."""
import collections
import json
import re


def vocabulary(words):
    """{word: number}: `<unk>`, then words by falling frequency, as `sheaf vocab` numbers them."""
    counts = collections.Counter(words)
    return {word: number for number, (word, _) in enumerate([("<unk>", 0), *counts.most_common()])}


def lines(path):
    with open(path, encoding="utf-8") as stream:
        return [line.strip() for line in stream if line.strip()]


def sentences(path):
    """(sentences as lists of numbers, the vocabulary). Tags, as in `film|NOUN`, are left out."""
    split = [[word.split("|")[0] for word in line.split()] for line in lines(path)]
    words = vocabulary(word for sentence in split for word in sentence)
    return [[words[word] for word in sentence] for sentence in split], words


def trees(path, leaf, node):
    """(bracket trees, the vocabulary): leaf(label, word) and node(label, subtrees) make them."""
    texts = [re.findall(r"[()]|[^()\s]+", line) for line in lines(path)]
    words = vocabulary(part for text in texts for part, after in zip(text, text[1:])
                       if after == ")" and part not in "()")
    return [_tree(text, words, leaf, node) for text in texts], words


def _tree(parts, words, leaf, node):
    stack = [[]]
    for part in parts:
        if part == "(":
            stack.append([])
        elif part == ")":
            label, *inside = stack.pop()
            made = leaf(int(label), words[inside[0]]) if isinstance(inside[0], str) else node(
                int(label), inside)
            stack[-1].append(made)
        else:
            stack[-1].append(part)
    return stack[0][0]


def objects(path):
    """Lines of JSON."""
    return [json.loads(line) for line in lines(path)]
