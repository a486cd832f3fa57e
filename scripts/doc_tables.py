#!/usr/bin/env python3
"""Tables of docs that follow from what the command lists: doc_tables.py SHEAF [--fix]

A line `<!-- sheaf help NAME -->` in a text stands in front of the table that `sheaf help NAME` fills.
Prints each that says something else, or with --fix writes it.
"""
import json
import os
import re
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")


def first_sentence(text):
    return re.match(r".*?\.(?= |$)", text).group().rstrip(".")


def code(text):
    return "`" + text.replace("|", "\\|") + "`"


def passes(rows):
    yield "pass", "does"
    for row in rows:
        yield code(row["name"]), first_sentence(row["description"])


def formats(rows):
    yield "format", "files", "or begins with", "holds", "for example"
    for row in rows:
        begins = row["begins"].replace("|", "\\|")
        yield (code(row["name"]), " ".join(map(code, row["extensions"])), begins,
               row["description"], " ".join(map(code, row["example"].replace("\t", "⇥").split("\n"))))


def operators(rows):
    yield "operator", "gives"
    for row in rows:
        yield code(row["signature"]), row["description"].replace("|", "\\|")


def targets(rows):
    yield "target", "makes kernels for"
    for row in rows:
        yield code(row["name"]), first_sentence(row["description"])


def optimisers(rows):
    yield "optimiser", "a step", "options"
    for row in rows:
        yield code(row["name"]), row["description"], " ".join(map(code, row["options"]))


# Where a table stands, what it lists, and its lines, the first of which is the head.
TABLES = [("docs/design/passes.md", "passes", passes),
          ("docs/design/backends.md", "targets", targets),
          ("docs/language.md", "operators", operators),
          ("docs/data.md", "formats", formats),
          ("docs/training.md", "optimisers", optimisers)]


def lines_of(sheaf, name, lines):
    listed = subprocess.run([sheaf, "help", name, "--json"], capture_output=True, text=True)
    if listed.returncode:
        sys.exit(f"{sheaf} is older than this script: build it first")
    head, *rest = lines(json.loads(listed.stdout)["rows"])
    text = [f"| {' | '.join(cells)} |\n" for cells in [head, *rest]]
    return "".join([text[0], "|---" * len(head) + "|\n", *text[1:]])


def main():
    sheaf, fix = os.path.abspath(sys.argv[1]), sys.argv[2:] == ["--fix"]
    wrong = 0
    for document, name, lines in TABLES:
        path = os.path.join(ROOT, document)
        with open(path, encoding="utf-8") as stream:
            text = stream.read()
        marker = f"<!-- sheaf help {name} -->\n"
        before, found, after = text.partition(marker)
        if not found:
            sys.exit(f"{document}: has no line {marker}")
        table = re.match(r"\n(?:\|.*\n)*", after).group()
        want = "\n" + lines_of(sheaf, name, lines)
        if table == want:
            continue
        if fix:
            with open(path, "w", encoding="utf-8") as stream:
                stream.write(before + marker + want + after[len(table):])
            print(f"{document}: wrote the table of {name}")
            continue
        wrong += 1
        print(f"{document}: the table of {name} is not what 'sheaf help {name}' lists; "
              "'scripts/check_docs.sh --fix' writes it")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
