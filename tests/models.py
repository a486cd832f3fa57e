"""The models of models/ that tests and benches run, the data that each is for, which its first lines
name, and a loss. Those that read files of others are compared with what these give, in checkpoints."""
import glob
import os

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")


def names():
    """Those that read the data of models/; others read a tokenizer's."""
    found = [os.path.basename(path).removesuffix(".sheaf")
             for path in glob.glob(os.path.join(ROOT, "models", "*.sheaf"))]
    return sorted(name for name in found
                  if not os.path.isdir(os.path.join(ROOT, "tests", "checkpoints", name)))


def path_of(name):
    return os.path.join(ROOT, "models", name + ".sheaf")


def data_of(name):
    """The file that the model's first lines name; trees when they name none."""
    with open(path_of(name), encoding="utf-8") as stream:
        found = [word.rstrip(".,;:") for word in stream.read().split()
                 if word.startswith("models/data/")]
    return os.path.join(ROOT, (found or ["models/data/trees.txt"])[0])


# What of models/data they read.
MODELS = {name: os.path.basename(data_of(name)) for name in names()}

# What is added to the text of one to train it: a function `loss`. Empty: it has one.
LOSSES = {
    "treelstm": "",
    "treegru": "fn loss(t: Tree, label: int) -> f32 = cross_entropy(main(t), label)",
    "treernn": "fn loss(t: Tree, label: int) -> f32 = cross_entropy(main(t), label)",
    "mvrnn": "fn loss(t: Tree, label: int) -> f32 = cross_entropy(main(t), label)",
    "treelstm_childsum": "fn loss(t: Tree, label: int) -> f32 = cross_entropy(main(t), label)",
    "lstm": "fn loss(words: list<token>) -> f32 = cross_entropy(main(words), len(words) % classes)",
    "bilstm":
        "fn loss(words: list<token>) -> f32 =\n"
        "  fold(|s: f32, (i, x)| s + cross_entropy(x, i % tags), f32(0.0), enumerate(main(words)))",
    "dagrnn":
        "fn loss(nodes: list<Node>) -> f32 = cross_entropy(main(nodes), len(nodes) % classes)",
    "ponder":
        "fn loss(words: list<token>) -> f32 = { let (n, y) = main(words)\n"
        "  cross_entropy(y, n % classes) }",
    "nestedrnn":
        "fn loss(words: list<token>) -> f32 = { let (y, n) = main(words)\n"
        "  cross_entropy(y, n % classes) }",
    "stackrnn":
        "fn loss(words: list<token>) -> f32 = { let (_, y) = main(words)\n"
        "  cross_entropy(y, len(words) % classes) }",
    "earlyexit":
        "fn loss(words: token[n]) -> f32 = { let (taken, y) = main(words)\n"
        "  cross_entropy(y, taken % classes) }",
    "berxit":
        "fn loss(words: token[n]) -> f32 = { let (y, taken) = main(words)\n"
        "  cross_entropy(y, taken) }",
    "lattice":
        "fn loss(line: list<(token, list<(int, token<word>)>)>) -> f32 =\n"
        "  fold(|s: f32, (i, x)| s + cross_entropy(x, i % tags), f32(0.0), enumerate(main(line)))",
    "transformer":
        "fn loss(words: token[n]) -> f32 = {\n"
        "  let y = next(words)\n"
        "  mean(cross_entropy(y, words)) + cross_entropy(main(words), 2) }",
}
