"""The examples by name: how each is made for tests, and what of models/data it reads."""
import importlib
import os
from dataclasses import dataclass, field

import reading

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "models", "data")


@dataclass
class Example:
    name: str
    model: str                     # the class
    data: str                      # the file
    hidden: int = 16
    renamed: dict = field(default_factory=dict)   # attributes that models/NAME.sheaf calls otherwise
    dims: dict = field(default_factory=dict)      # what tests make smaller, by its name there
    twin: bool = True              # whether there is a models/NAME.sheaf

    def load(self):
        """(the model with the weights that the command gives the twin, its inputs)."""
        module = importlib.import_module(self.name)
        inputs, sizes = read(self.data, module)
        model = getattr(module, self.model)(**sizes, hidden=self.hidden, **self.dims)
        for name, param in model.named_parameters():
            head, *rest = name.split(".")
            param.draw(".".join([self.renamed.get(head, head), *rest]))
        return model, inputs


def read(name, module):
    """(arguments of each instance, sizes of vocabularies)."""
    path = os.path.join(DATA, name)
    if name == "trees.txt":
        if hasattr(module, "Leaf") and "label" in module.Leaf.__annotations__:
            made = (module.Leaf, lambda label, kids: module.Node(label, *kids))
        else:
            made = (lambda label, word: module.Leaf(word), lambda label, kids: module.Node(*kids))
        inputs, words = reading.trees(path, *made)
    elif name == "nary_trees.txt":
        inputs, words = reading.trees(path, lambda label, word: module.Leaf(word),
                                      lambda label, kids: module.Node(kids))
    elif name == "dags.jsonl":
        graphs = [[node["Node"] for node in graph] for graph in reading.objects(path)]
        words = reading.vocabulary(word for graph in graphs for word, _ in graph)
        inputs = [[module.Node(words[word], inputs) for word, inputs in graph] for graph in graphs]
    elif name == "lattices.jsonl":
        texts = reading.objects(path)
        words = reading.vocabulary(character for text in texts for character, _ in text)
        longer = reading.vocabulary(word for text in texts for _, ending in text for _, word in ending)
        inputs = [[(words[character], [(start, longer[word]) for start, word in ending])
                   for character, ending in text] for text in texts]
        return inputs, {"vocab": len(words), "word_vocab": len(longer)}
    else:
        inputs, words = reading.sentences(path)
    return inputs, {"vocab": len(words)}


SIDES = {"ahead": "forward", "back": "backward"}
EXAMPLES = {example.name: example for example in [
    Example("beam", "Beam", "sentences.txt"),
    Example("berxit", "BERxiT", "sentences.txt", dims={"heads": 4}),
    Example("bilstm", "Tagger", "tagged.txt", renamed=SIDES),
    Example("birnn", "Tagger", "sentences.txt", renamed=SIDES),
    Example("dagrnn", "DAGRNN", "dags.jsonl"),
    Example("drnn", "DRNN", "sentences.txt"),
    Example("earlyexit", "EarlyExit", "sentences.txt"),
    Example("generate", "Writer", "sentences.txt"),
    Example("lattice", "Lattice", "lattices.jsonl"),
    Example("lstm", "Classifier", "sentences.txt"),
    Example("mvrnn", "MVRNN", "trees.txt"),
    Example("nestedrnn", "Nested", "sentences.txt"),
    Example("ponder", "Ponder", "sentences.txt"),
    Example("sentiment", "Sentiment", "trees.txt"),
    Example("stackrnn", "Parser", "sentences.txt"),
    Example("transformer", "Transformer", "sentences.txt"),
    Example("treegru", "TreeGRU", "trees.txt"),
    Example("treelstm", "TreeLSTM", "trees.txt"),
    Example("treelstm_childsum", "ChildSum", "nary_trees.txt"),
    Example("treernn", "TreeRNN", "trees.txt"),
    Example("decoder", "Decoder", "sentences.txt", twin=False),
    Example("encoder", "Encoder", "sentences.txt", twin=False),
    Example("minilm", "MiniLM", "sentences.txt", twin=False,
            dims={"heads": 4, "layers": 2, "inner": 32, "length": 64}),
]}
# Those that read directories as Hugging Face has them; tests/checkpoints has a small one of each.
PRETRAINED = {"bert": "Classifier", "bert_masked": "MaskedBert", "char_cnn": "CharCNN", "gpt2": "GPT2",
              "llama": "Llama", "minilm": "MiniLM"}


def pretrained(name, directory):
    return getattr(importlib.import_module(name), PRETRAINED[name]).from_pretrained(directory)
