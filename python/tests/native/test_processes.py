"""Interrupts, forks, threads, pickles."""

import copy
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import pytest
import sheaf as sf

LOOP = """
fn go(x: f32[64], n: int) -> f32[64] = if n == 0 { x } else { go(tanh(x) * 1.01, n - 1) }
fn main(n: int) -> f32[64] = go(zeros(64) + 0.5, n)
"""
TREES = """
dim vocab
data Tree = Leaf(word: token) | Node(left: Tree, right: Tree)
param embedding : f32[vocab, 4] = normal(1.0)
fn main(t: Tree) -> f32[4] = match t {
  Leaf(word) => embedding[word]
  Node(l, r) => tanh(main(l) + main(r))
}
"""


@pytest.fixture(scope="module")
def loop():
    return sf.compile(LOOP)


@pytest.fixture(scope="module")
def trees():
    return sf.compile(TREES, vocab=10, threads=2)


def some(model):
    Leaf, Node = model.types.Leaf, model.types.Node
    return [Node(Leaf(i % 10), Node(Leaf(1), Leaf(2))) for i in range(8)]


def interrupted(work):
    """Seconds from Ctrl-C to the end of the work, which lasts longer."""
    sent = []

    def send():
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.3, send)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            work()
    finally:
        timer.join()
    return time.monotonic() - sent[0]


def test_a_run_is_interrupted(loop):
    expected = loop([10]).tobytes()
    times = [interrupted(lambda: loop([3_000_000] * 4)) for _ in range(2)]
    assert min(times) < 0.3, times
    assert loop([10]).tobytes() == expected  # it is as good as before


def test_a_compilation_is_interrupted():
    times = [interrupted(lambda: [sf.compile(TREES, vocab=10, store="none") for _ in range(500)])
             for _ in range(2)]
    assert min(times) < 0.3, times


def test_a_handler_of_the_program_runs_and_the_run_goes_on(loop):
    told = []
    before = signal.signal(signal.SIGALRM, lambda *_: told.append(time.monotonic()))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        begin = time.monotonic()
        assert loop([400_000] * 4).shape == (4, 64)
        took = time.monotonic() - begin
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)  # a run that was short must not leave it behind
        signal.signal(signal.SIGALRM, before)
    assert not told or told[0] - begin < max(0.3, took)


def test_a_child_of_fork_uses_the_models_of_its_parent(trees):
    expected = trees(some(trees)).tobytes()
    data = trees.encode(some(trees))
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            ok = trees(some(trees)).tobytes() == expected == trees(data).tobytes()
            os.write(write, b"yes" if ok else b"no")
        finally:
            os._exit(0)
    assert os.read(read, 3) == b"yes"
    assert os.waitpid(child, 0)[1] == 0
    assert trees(data).tobytes() == expected


def test_models_are_pickled(trees, tmp_path):
    expected = trees(some(trees)).tobytes()
    again = pickle.loads(pickle.dumps(trees))
    assert again(some(again)).tobytes() == expected and again._again == trees._again
    assert copy.deepcopy(trees) is trees
    path = tmp_path / "trees.sheafc"
    trees.save(path)
    loaded = sf.load(path)
    kept = pickle.dumps(loaded)
    assert len(kept) < 1000 and pickle.loads(kept)(some(trees)).tobytes() == expected
    training = sf.compile(TREES, vocab=10, training=True)
    again = pickle.loads(pickle.dumps(training))
    assert again._about["training"] and again(some(again)).tobytes() == training(some(training)).tobytes()


def _run(model, data):
    return model(data)


def test_other_processes_take_models_and_data(trees):
    data = trees.encode(some(trees))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.apply(_run, (trees, data))
    assert found.tobytes() == trees(data).tobytes()


def test_threads_share_a_model(trees):
    given = some(trees)
    expected = trees(given).tobytes()
    wrong = []

    def work():
        for _ in range(30):
            if trees(given).tobytes() != expected:
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_end_of_a_process_waits_for_what_was_interrupted():
    done = subprocess.run([sys.executable, "-c", f"""
import os, signal, threading, sheaf as sf
model = sf.compile({LOOP!r})
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    model([3_000_000] * 4)
except KeyboardInterrupt:
    print("interrupted")
"""], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted\n", "")


def run(program, *arguments):
    return subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True,
                          timeout=60)


def test_weights_in_a_child_while_the_parent_runs():
    done = run("""
import os, sys, threading, time
import sheaf as sf
model = sf.compile("param w: f32[2] = ones\\n" + sys.argv[1].replace("fn main", "fn other")
                   + "fn main(n: int) -> f32[64] = go(zeros(64) + w[0], n)")
model([1])
thread = threading.Thread(target=lambda: model([3_000_000]))
thread.start()
time.sleep(0.1)
assert thread.is_alive()
pid = os.fork()
if pid == 0:
    os._exit(0 if model.parameters["w"][0] == 1 else 1)
end = time.monotonic() + 20
while time.monotonic() < end:
    ended, status = os.waitpid(pid, os.WNOHANG)
    if ended:
        break
    time.sleep(0.01)
else:
    os.kill(pid, 9)
    status = "hangs"
thread.join()
print(status)
""", LOOP)
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stdout + done.stderr


def test_the_interpreter_ends_while_a_daemon_thread_runs():
    done = run("""
import sys, threading, time
import sheaf as sf
model = sf.compile(sys.argv[1])
def work():
    while True:
        model([2000])
for _ in range(2):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.3)
""", LOOP)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
