"""Ray Data: a path to a compiled model, and a jitted object, on a cluster of two nodes."""
import ast
import os
import random

import numpy as np
import pytest

ray = pytest.importorskip("ray")
pytest.importorskip("ray.data")

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(HERE, "..", "..", "examples")
WORDS = 50


@pytest.fixture(scope="module")
def cluster():
    from ray.cluster_utils import Cluster
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    made.add_node(num_cpus=1)
    path = os.pathsep.join([HERE, EXAMPLES, os.environ["PYTHONPATH"]])
    ray.init(address=made.address, log_to_driver=False,
             runtime_env={"env_vars": {"PYTHONPATH": path, "SHEAF_STORE": os.environ.get("SHEAF_STORE", "")}})
    yield made
    ray.shutdown()
    made.shutdown()


def tree(draw, leaves):
    """Nested pairs of numbers of words: what a row of Ray holds."""
    if leaves == 1:
        return draw.randrange(WORDS)
    left = draw.randint(1, leaves - 1)
    return [tree(draw, left), tree(draw, leaves - left)]


def rows():
    draw = random.Random(3)
    return [{"tree": repr(tree(draw, draw.randint(1, 12)))} for _ in range(60)]


def built(given, leaf, node):
    return leaf(given) if isinstance(given, int) else node(*(built(part, leaf, node) for part in given))


def scores_of(dataset):
    return sorted((row["tree"], row["scores"].tobytes()) for row in dataset.take_all())


def score(model, text):
    kinds = model.types
    return model([built(ast.literal_eval(text), kinds.Leaf, kinds.Node)])[0].tobytes()


class Loaded:
    """An actor of Ray's: it opens the file once."""

    def __init__(self, path):
        import sheaf as sf
        self.model = sf.load(path)

    def __call__(self, batch):
        kinds = self.model.types
        trees = [built(ast.literal_eval(text), kinds.Leaf, kinds.Node) for text in batch["tree"]]
        return {"tree": batch["tree"], "scores": np.asarray(self.model(trees)), "node": [ray.get_runtime_context().get_node_id()] * len(trees)}


def test_a_compiled_model_by_its_path(cluster, tmp_path):
    import sheaf as sf
    models = os.path.join(HERE, "..", "..", "..", "models")
    model = sf.load(os.path.join(models, "treernn.sheaf"), dims={"hidden": 16}, vocab=WORDS)
    path = str(tmp_path / "model.sheafc")
    model.save(path)
    alone = [(one["tree"], score(model, one["tree"])) for one in rows()]
    data = ray.data.from_items(rows(), override_num_blocks=20)
    pool = ray.data.ActorPoolStrategy(size=2, max_tasks_in_flight_per_actor=1)
    mapped = data.map_batches(Loaded, fn_constructor_args=(path,), batch_size=None, compute=pool).materialize()
    assert scores_of(mapped) == sorted(alone)
    assert len({row["node"] for row in mapped.take_all()}) == 2


def test_a_jitted_object(cluster):
    import sys
    if EXAMPLES not in sys.path:
        sys.path.append(EXAMPLES)
    import sheaf as sf
    import treelstm
    model = treelstm.TreeLSTM(vocab=WORDS, hidden=8)
    fast = sf.jit(model)

    def run(batch):  # goes to the nodes with `fast`, which is compiled there
        trees = [built(ast.literal_eval(text), treelstm.Leaf, treelstm.Node) for text in batch["tree"]]
        return {"tree": batch["tree"], "scores": np.asarray(fast(trees))}

    alone = sorted((one["tree"], run({"tree": [one["tree"]]})["scores"][0].tobytes()) for one in rows())
    data = ray.data.from_items(rows(), override_num_blocks=4)
    assert scores_of(data.map_batches(run, batch_size=16).materialize()) == alone
