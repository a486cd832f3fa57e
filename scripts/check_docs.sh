#!/bin/bash
# Checks the texts: links resolve, paragraphs are short, each room says what it may include, the index
# has all of docs, figures are those of their sources. Prints every place that is wrong; with --fix,
# first writes into the rooms' READMEs what they may include, the tables that the built command lists
# (the test docs.tables checks them), and what follows from the package for Python (python.front does).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if [[ ${1-} == --fix ]]; then
  sheaf=$(ls -t build*/bin/sheaf 2>/dev/null | head -n 1 || true)
  if [[ $sheaf ]]; then
    scripts/doc_tables.py "$sheaf" --fix
    package=${sheaf%/bin/sheaf}/python
    if compgen -G "$package/sheaf/_native*" >/dev/null; then
      PYTHONPATH=$package /usr/bin/python3 -B python/reference.py
    fi
  else
    echo "no sheaf is built: tables that it lists stay as they are" >&2
  fi
fi
exec python3 - "$@" <<'END'
import glob
import hashlib
import os
import re
import sys
import textwrap

ROOM_LINES = 10  # of a room's README, but for empty ones
PARAGRAPH_WORDS = 120
WORDS = {"docs/architecture.md": 2500}
DESIGN_NOTE_WORDS = 1200
FOLDERS = "bench compiler examples lib models python runtime tests tools".split()

problems = []


def complain(path, line, text):
    problems.append(f"{path}:{line}: {text}")


def slug(heading):
    """The anchor that GitHub gives a heading."""
    heading = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def blocks(lines):
    """(number of the first line, text) of paragraphs and items of lists, without code and tables."""
    number, block, code = 0, [], False
    for i, line in enumerate(lines + [""], 1):
        text = line.strip()
        if text.startswith("```"):
            code = not code
            text = ""
        item = re.match(r"([-*+]|\d+\.) ", text)
        if code or not text or text[0] in "#|" or item:
            if block:
                yield number, " ".join(block)
            block = []
        if not code and text and text[0] not in "#|":
            number = number if block else i
            block.append(text[item.end():] if item else text)


def words(text):
    return len(text.split())


# The rooms, as scripts/check_layers.sh has them.
table = open("scripts/check_layers.sh", encoding="utf-8").read()
rooms = dict(re.findall(r"^((?:runtime|compiler)/[\w/]+):(.*)$", table, re.M))


def includes(room):
    names = ", ".join(f"`{name}`" for name in rooms[room].split())
    return f"May include: {names or 'no other room'}."


def write_includes(path, room):
    paragraphs = open(path, encoding="utf-8").read().rstrip("\n").split("\n\n")
    for i, text in enumerate(paragraphs):
        if text.startswith("May include: "):
            text = re.sub(r"^May include: .*?\.(?=\s|$)", includes(room), text, flags=re.S)
            paragraphs[i] = "\n".join(textwrap.wrap(text, 100, break_long_words=False,
                                                    break_on_hyphens=False))
    with open(path, "w", encoding="utf-8") as stream:
        stream.write("\n\n".join(paragraphs) + "\n")


if sys.argv[1:] == ["--fix"]:
    for room in rooms:
        if os.path.exists(room + "/README.md"):
            write_includes(room + "/README.md", room)

folders = FOLDERS + ["docs", "include"]
paths = sorted(glob.glob("*.md") + [path for folder in folders
                                    for path in glob.glob(folder + "/**/*.md", recursive=True)])
texts = {path: open(path, encoding="utf-8").read().split("\n") for path in paths}
anchors = {}
for path, lines in texts.items():
    anchors[path] = {slug(line.lstrip("#")) for line in lines if line.startswith("#")}

for path, lines in texts.items():
    code = False
    for number, line in enumerate(lines, 1):
        code ^= line.startswith("```")
        for target in [] if code else re.findall(r"\]\(([^)\s]+)\)", line):
            if re.match(r"[a-z]+:", target):
                continue
            file, _, anchor = target.partition("#")
            file = os.path.normpath(os.path.join(os.path.dirname(path), file)) if file else path
            if not os.path.exists(file):
                complain(path, number, f"links to {target}, which is not there")
            elif anchor and anchor not in anchors.get(file, ()):
                complain(path, number, f"links to {target}, and {file} has no such heading")
    for number, text in blocks(lines):
        if words(text) > PARAGRAPH_WORDS:
            complain(path, number, f"a paragraph of {words(text)} words: at most {PARAGRAPH_WORDS}")
    most = DESIGN_NOTE_WORDS if path.startswith("docs/design/") else WORDS.get(path)
    # Tables that the command fills are as long as what there is.
    count = words(re.sub(r"<!-- sheaf help \S+ -->\n\n(\|.*\n)*", "", "\n".join(lines)))
    if most and count > most:
        complain(path, 1, f"{count} words: at most {most}")

for folder in FOLDERS + sorted(rooms):
    if folder + "/README.md" not in texts:
        complain(folder, 1, "has no README.md")
for room in rooms:
    if includes(room) not in " ".join(texts.get(room + "/README.md", [])):
        complain(room + "/README.md", 1, f"does not say '{includes(room)}'")
    lines = sum(bool(line) for line in texts.get(room + "/README.md", []))
    if lines > ROOM_LINES:
        complain(room + "/README.md", 1, f"{lines} lines: at most {ROOM_LINES}")

# The index names all that is in docs.
index = os.path.normpath("docs/index.md")
named = {os.path.normpath(os.path.join("docs", target.partition("#")[0]))
         for target in re.findall(r"\]\(([^)\s]+)\)", "\n".join(texts.get(index, [])))}
for path in sorted(glob.glob("docs/**/*.md", recursive=True) + glob.glob("docs/schemas/*.json")):
    if path != index and path not in named:
        complain(index, 1, f"does not link {path}")

# A figure says of which source it was made.
everything = "\n".join("\n".join(lines) for lines in texts.values())
for source in sorted(glob.glob("docs/figures/*.dot")):
    figure = source.removesuffix(".dot") + ".svg"
    digest = hashlib.sha256(open(source, "rb").read()).hexdigest()
    if not os.path.exists(figure) or digest not in open(figure, encoding="utf-8").read():
        complain(source, 1, f"{figure} is not made of it: run docs/figures/make.sh")
    if "figures/" + os.path.basename(figure) + ")" not in everything:
        complain(figure, 1, "no text shows it")
pipeline = open("docs/figures/pipeline.dot", encoding="utf-8").read()
for phase in re.findall(r'Phase::\w+, "(\w+)"', open("compiler/driver/Phases.h", encoding="utf-8").read()):
    if f"<b>{phase}</b>" not in pipeline:
        complain("docs/figures/pipeline.dot", 1, f"has no phase '{phase}'")

for problem in problems:
    print(problem, file=sys.stderr)
if problems:
    sys.exit(1)
print(f"{len(texts)} texts are in order")
END
