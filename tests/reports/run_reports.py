#!/usr/bin/env python3
"""Checks reports against what is documented of them.

    run_reports.py SHEAF ROOT CASE

CASE is `schemas`: JSON reports of models of every kind against docs/schemas; `page`: the page of
`explain --html` is well-formed, needs nothing but itself, and holds user text as text; `trace`:
slices of a thread lie inside one another, and their sums are what is counted; `sums`: what a report
says in several places agrees.
"""
import html.parser
import json
import os
import subprocess
import sys
import tempfile

import jsonschema

SHEAF, ROOT, CASE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3]
MODELS = os.path.join(ROOT, "models")
# Recursion, reads and forks, loops with reads, per-instance extents, lists, phases.
RUNS = [("treelstm", "trees.txt"), ("stackrnn", "sentences.txt"), ("drnn", "sentences.txt"),
        ("transformer", "sentences.txt"), ("lattice", "lattices.jsonl"), ("ponder", "sentences.txt")]


def sheaf(*arguments, cwd=None):
    done = subprocess.run([SHEAF, *arguments], text=True, capture_output=True, timeout=250, cwd=cwd)
    if done.returncode:
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
            import re
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
    # A chain has one row a step and nothing can be done; a leaf of each is one launch.
    with tempfile.TemporaryDirectory() as directory:
        with open(os.path.join(directory, "m.sheaf"), "w") as out:
            out.write("param w : f32[64, 64] = glorot\n"
                      "fn main(n: int, x: f32[64]) -> f32[64] =\n"
                      "  if n == 0 { x }\n"
                      "  else { main(n - 1, tanh(x @ w)) }\n")
        with open(os.path.join(directory, "d.jsonl"), "w") as out:
            for n in (40, 2, 2, 2, 2, 2, 2, 2, 2, 2):
                out.write(json.dumps({"n": n, "x": [0.1 * n] * 64}) + "\n")
        batch = json.loads(sheaf("explain", "m.sheaf", "--data", "d.jsonl", "--format", "json",
                                 cwd=directory).stdout)["mini_batch"]
        few = batch["few_rows"]
        assert few and few[0]["why"] == "recursion" and few[0]["place"] == "m.sheaf:4", few
        assert few[0]["rows_min"] == 1 and batch["least_launches"] == len(batch["launches"]) == 40


{"schemas": schemas, "page": page, "trace": trace, "sums": sums}[CASE]()
