"""The models of models/ that tests run: each once. Those that read files of others are compared with
what these give, in checkpoints."""

# What of models/data they read.
MODELS = {
    "treelstm": "trees.txt", "sentiment": "trees.txt", "treelstm_childsum": "nary_trees.txt",
    "treegru": "trees.txt", "treernn": "trees.txt", "mvrnn": "trees.txt", "lstm": "sentences.txt",
    "bilstm": "tagged.txt", "transformer": "sentences.txt", "dagrnn": "dags.jsonl",
    "ponder": "sentences.txt", "drnn": "sentences.txt", "generate": "sentences.txt",
    "beam": "sentences.txt", "berxit": "sentences.txt", "birnn": "sentences.txt",
    "earlyexit": "sentences.txt", "nestedrnn": "sentences.txt", "stackrnn": "sentences.txt",
    "lattice": "lattices.jsonl",
}

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
