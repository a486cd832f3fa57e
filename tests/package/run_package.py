#!/usr/bin/env python3
"""Installs Sheaf into an empty directory and uses it from there: run_package.py BUILD SHEAF

examples/c is compiled with cc, examples/cpp by CMake with find_package(Sheaf); both, and the sheaf
that was installed, have to say the same of the same sentences and models. The runtime's library must
be small and need nothing but the C and C++ libraries; the compiler's shows one symbol, and none of
LLVM.
"""
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
SENTENCES = ["the movie is very good", "bad", "a nobodyknows word"]
MOST_BYTES = 5 << 19
LIBRARIES = {"libstdc++.so.6", "libm.so.6", "libgcc_s.so.1", "libc.so.6", "ld-linux-x86-64.so.2"}


def run(*command, **options):
    result = subprocess.run(command, capture_output=True, text=True, **options)
    if result.returncode:
        sys.exit(f"{' '.join(command)}\nexit code {result.returncode}\n{result.stdout}{result.stderr}")
    return result.stdout


def numbers(line):
    return [float(number) for number in line.replace(",", " ").strip("[]\n ").split()]


def main():
    build, sheaf = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as work:
        prefix = os.path.join(work, "prefix")
        check_unbuilt(build, work)
        run("cmake", "--install", build, "--prefix", prefix)
        check_library(os.path.join(prefix, "lib", "libsheaf_runtime.so"))
        check_compiler(os.path.join(prefix, "lib", "libsheaf_compiler.so"))
        with tempfile.TemporaryDirectory() as elsewhere:  # nothing may lead back into the tree
            examples = shutil.copytree(os.path.join(ROOT, "examples"),
                                       os.path.join(elsewhere, "examples"))
            use(sheaf, prefix, examples, elsewhere)


def use(sheaf, prefix, examples, work):
    model = os.path.join(work, "tree.sheafc")
    words = os.path.join(work, "words")
    with open(words, "w", encoding="utf-8") as stream:
        stream.write("\n".join(SENTENCES[:2]) + "\n")
    vocabulary = os.path.join(work, "vocab.txt")
    run(sheaf, "vocab", words, "--data-format", "text", "-o", vocabulary)
    run(sheaf, "build", os.path.join(ROOT, "models", "treelstm.sheaf"), "--vocab", vocabulary,
        "--seed", "1", "--dim", "hidden=32", "-o", model, "--emit-header",
        os.path.join(examples, "cpp", "treelstm.h"))

    trees = os.path.join(work, "trees.txt")
    with open(trees, "w", encoding="utf-8") as stream:
        for sentence in SENTENCES:
            *rest, last = [f"(0 {word})" for word in sentence.split()]
            for leaf in reversed(rest):
                last = f"(0 {leaf} {last})"
            stream.write(last + "\n")
    expected = [numbers(line) for line in
                run(os.path.join(prefix, "bin", "sheaf"), "run", model, "--data", trees).splitlines()]

    decoder = os.path.join(work, "decode.sheafc")
    sentences = os.path.join(work, "sentences.txt")
    with open(sentences, "w", encoding="utf-8") as stream:
        stream.write("\n".join(SENTENCES) + "\n")
    run(sheaf, "build", os.path.join(examples, "decode.sheaf"), "--vocab", vocabulary, "--seed",
        "1", "-o", decoder, "--emit-header", os.path.join(examples, "cpp", "decode.h"))

    # The layers that models use are installed, and found from anywhere.
    uses = os.path.join(work, "uses.sheaf")
    with open(uses, "w", encoding="utf-8") as stream:
        stream.write('use "lib/lstm.sheaf"\nlet reader = LSTM(2, 3)\n'
                     "fn main(xs: list<f32[2]>) -> f32[3] = reader.last(xs)\n")
    with open(os.path.join(work, "xs.jsonl"), "w", encoding="utf-8") as stream:
        stream.write("[[1, 2], [3, 4]]\n")
    found = run(os.path.join(prefix, "bin", "sheaf"), "run", uses, "--data",
                os.path.join(work, "xs.jsonl"), cwd=work)
    assert len(numbers(found)) == 3, found

    library = os.path.join(prefix, "lib")
    program = os.path.join(work, "classify")
    run("cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-I",
        os.path.join(prefix, "include"), os.path.join(examples, "c", "classify.c"), "-o", program,
        "-L", library, "-lsheaf_runtime", f"-Wl,-rpath,{library}")
    found = [numbers(run(program, model, *sentence.split())) for sentence in SENTENCES]
    compare("examples/c", expected, found)

    output = os.path.join(work, "build")
    run("cmake", "-S", os.path.join(examples, "cpp"), "-B", output,
        f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror")
    run("cmake", "--build", output)
    lines = run(os.path.join(output, "classify"), model, input="\n".join(SENTENCES) + "\n")
    compare("examples/cpp", expected, [numbers(line) for line in lines.splitlines()])
    use_compiler(prefix, examples, output, work)
    compare_stream(run(os.path.join(output, "stream"), decoder, input="\n".join(SENTENCES) + "\n"),
                   run(os.path.join(prefix, "bin", "sheaf"), "run", decoder, "--data", sentences))


def use_compiler(prefix, examples, built, work):
    """Both libraries, found by pkg-config where there is one: compiled in process and by sheaf."""
    model = os.path.join(work, "model.sheaf")
    with open(model, "w", encoding="utf-8") as stream:
        stream.write('use "lib/lstm.sheaf"\ndim n = 3, m = 2\nparam w : f32[n, m] = glorot\n'
                     "let cell = LSTM(2, 4)\n"
                     "fn main(x: f32[n]) -> f32[4] = cell.last([tanh(x @ w), x @ w])\n")
    vector = os.path.join(work, "x.jsonl")
    with open(vector, "w", encoding="utf-8") as stream:
        stream.write("[1, 2.5, -4]\n")
    sheaf, library = os.path.join(prefix, "bin", "sheaf"), os.path.join(prefix, "lib")
    flags = ["-I", os.path.join(prefix, "include"), "-L", library, "-lsheaf_runtime"]
    if shutil.which("pkg-config"):
        environment = dict(os.environ, PKG_CONFIG_PATH=os.path.join(library, "pkgconfig"))
        flags = run("pkg-config", "--cflags", "--libs", "sheaf-compiler", env=environment).split()
    program = os.path.join(work, "compile")
    run("cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers",
        "-pedantic", os.path.join(examples, "c", "compile.c"), "-o", program, *flags,
        f"-Wl,-rpath,{library}")
    expected = run(sheaf, "run", model, "--data", vector, "--seed", "1")
    found = run(program, model, "1", "2.5", "-4")
    compare("examples/c/compile", [numbers(expected)], [numbers(found)])

    use_builders(sheaf, built, flags, library, examples, work)

    trainer = os.path.join(work, "train")
    run("cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers",
        "-pedantic", os.path.join(examples, "c", "train.c"), "-o", trainer, *flags,
        f"-Wl,-rpath,{library}")
    told = run(trainer)
    if not re.fullmatch(r"(epoch \d+: loss [\d.]+\n){4}trained: loss 0\.[012]\d*\n"
                        r"at \(0\.5, 0\.5\) the score \w+ with x0 and \w+ with x1\n", told):
        sys.exit(f"examples/c/train says\n{told}")

    wrong = os.path.join(work, "wrong.sheaf")
    with open(wrong, "w", encoding="utf-8") as stream:
        stream.write("fn main(x: f32[3]) -> f32[3] = x + y\n")
    told = subprocess.run([program, wrong, "1"], capture_output=True, text=True)
    by_sheaf = subprocess.run([sheaf, "check", wrong], capture_output=True, text=True)
    if (told.returncode, told.stdout, told.stderr) != (
            1, f"{wrong}, line 1, columns 36 to 36\n", by_sheaf.stderr):
        sys.exit(f"examples/c/compile says of an error\n{told.stdout}{told.stderr}")

    source = 'use "squash.sheaf"\nfn main(x: f32[3]) -> f32[3] = squash(x)\n'
    saved = os.path.join(work, "saved.sheafc")
    run(os.path.join(built, "compile"), saved, input=source)
    found = run(sheaf, "run", saved, "--data", vector)
    compare("examples/cpp/compile", [[0.5, 2.5 / 3.5, -0.8]], [numbers(found)])
    use_training(sheaf, built, work)

    # Without the compiler's library it is said what is missing, and artefacts still run.
    for name in os.listdir(library):
        if name.startswith("libsheaf_compiler"):
            os.remove(os.path.join(library, name))
    told = subprocess.run([program, model, "1"], capture_output=True, text=True)
    if told.returncode != 1 or "compiling needs libsheaf_compiler" not in told.stderr:
        sys.exit(f"without a compiler examples/c/compile says\n{told.stdout}{told.stderr}")


def use_builders(sheaf, built, flags, library, examples, work):
    """Models that programs build, in C and in C++, against the same as texts."""
    program = os.path.join(work, "postfix")
    run("cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers",
        "-pedantic", os.path.join(examples, "c", "build.c"), "-o", program, *flags,
        f"-Wl,-rpath,{library}")
    model = os.path.join(work, "postfix.sheaf")
    with open(model, "w", encoding="utf-8") as stream:
        stream.write("param w : f32[3, 3] = glorot\n"
                     "fn main(x: f32[3]) -> f32[3] = tanh(x @ w) + x * 0.5\n")
    with open(os.path.join(work, "x.jsonl"), "w", encoding="utf-8") as stream:
        stream.write("[1, 2.5, -4]\n")
    expected = run(sheaf, "run", model, "--data", os.path.join(work, "x.jsonl"), "--seed", "1")
    found = run(program, "x w @ tanh x 0.5 * +", "1", "2.5", "-4")
    compare("examples/c/build", [numbers(expected)], [numbers(found)])
    told = subprocess.run([program, "x yy", "1"], capture_output=True, text=True)
    if told.returncode != 1 or not told.stderr.startswith(
            "line:1:3: error: ") or "\nx yy\n  ^~\n" not in told.stderr:
        sys.exit(f"examples/c/build says of a wrong line\n{told.stdout}{told.stderr}")

    artefact = os.path.join(work, "sum.sheafc")
    text = run(os.path.join(built, "build"), artefact)
    with open(os.path.join(work, "sum.sheaf"), "w", encoding="utf-8") as stream:
        stream.write(text)
    trees = os.path.join(work, "trees.jsonl")
    with open(trees, "w", encoding="utf-8") as stream:
        stream.write('{"Node": [{"Leaf": [[1, 2, 3]]}, {"Leaf": [[3, 2, 1]]}]}\n'
                     '{"Leaf": [[1, 2, 3]]}\n')
    for of in (artefact, os.path.join(work, "sum.sheaf")):
        found = run(sheaf, "run", of, "--data", trees).splitlines()
        compare("examples/cpp/build", [[2, 2, 2], [1, 2, 3]], [numbers(line) for line in found])
    told = subprocess.run([os.path.join(built, "build"), "--wrong"], capture_output=True, text=True)
    source = os.path.join(examples, "cpp", "build.cpp")
    with open(source, encoding="utf-8") as stream:
        line = 1 + next(i for i, line in enumerate(stream) if "wrong ?" in line)
    if told.returncode != 1 or f"build.cpp:{line}:" not in told.stderr:
        sys.exit(f"examples/cpp/build --wrong says\n{told.stdout}{told.stderr}")


def compare_stream(streamed, expected):
    """Words of sentences that come in any order, and scores, with what sheaf prints at the end."""
    words, scores = {}, {}
    for line in streamed.splitlines():
        sentence, *rest = line.split()
        if rest[0] == "=":
            scores[sentence] = float(rest[1])
        else:
            assert sentence not in scores, streamed
            words.setdefault(sentence, []).append(rest[0])
    outcomes = [json.loads(line) for line in expected.splitlines()]
    assert len(words) > 1 and [words.get(str(i), []) for i in range(len(outcomes))] == \
        [outcome["emitted"] for outcome in outcomes], (streamed, expected)
    compare("examples/cpp/stream", [[outcome["result"]] for outcome in outcomes],
            [[scores[str(i)]] for i in range(len(outcomes))])


def compare(name, expected, found):
    # sheaf prints the shortest decimal that is the same f32, the examples print nine digits.
    same = len(expected) == len(found) and all(
        struct.pack(f"{len(a)}f", *a) == struct.pack(f"{len(b)}f", *b)
        for a, b in zip(expected, found))
    if not same:
        sys.exit(f"{name} prints {json.dumps(found)}, not {json.dumps(expected)}")


def check_unbuilt(build, work):
    """What cmake --install does where a target is not built, which it has to name."""
    with open(os.path.join(build, "cmake_install.cmake"), encoding="utf-8") as stream:
        script = stream.read()
    copy = os.path.join(work, "cmake_install.cmake")
    with open(copy, "w", encoding="utf-8") as stream:
        stream.write(script.replace("libsheaf_runtime.so", "libsheaf_runtime_not_built.so"))
    result = subprocess.run(["cmake", f"-DCMAKE_INSTALL_PREFIX={work}/none", "-P", copy],
                            capture_output=True, text=True)
    if not result.returncode or "--target sheaf_package" not in result.stderr or \
            os.path.exists(os.path.join(work, "none")):
        sys.exit(f"installing what is not built says\n{result.stdout}{result.stderr}")


def use_training(sheaf, built, work):
    """Trained by a program and by the command: the same files."""
    with open(os.path.join(work, "m.sheaf"), "w", encoding="utf-8") as stream:
        stream.write("dim hidden = 6\n"
                     "param w : f32[2, hidden] = glorot\nparam v : f32[hidden, 2] = glorot\n"
                     "fn scores(x: f32[2]) -> f32[2] = dropout(tanh(x @ w), 0.1) @ v\n"
                     "fn loss(x: f32[2], y: int) -> f32 = cross_entropy(scores(x), y)\n"
                     "fn right(x: f32[2], y: int) -> bool = read(argmax(scores(x))) == y\n")
    points = [(i * 7 % 11 / 5 - 1, i * 4 % 13 / 6 - 1) for i in range(60)]
    for name, some in (("train.jsonl", points[:40]), ("dev.jsonl", points[40:])):
        with open(os.path.join(work, name), "w", encoding="utf-8") as stream:
            stream.writelines(f'{{"x": [{x}, {y}], "y": {int(x * y > 0)}}}\n' for x, y in some)
    told = run(os.path.join(built, "train"), "m.sheaf", "train.jsonl", "dev.jsonl", "program",
               cwd=work).splitlines()
    run(sheaf, "train", "m.sheaf", "--data", "train.jsonl", "--dev", "dev.jsonl", "--metric",
        "right", "--epochs", "20", "--batch", "8", "--seed", "7", "--lr", "0.05", "-o", "command",
        cwd=work)
    if len(told) != 21:
        sys.exit("examples/cpp/train prints\n" + "\n".join(told))
    for name in ("last.safetensors", "best.safetensors", "checkpoint-100.safetensors"):
        files = [open(os.path.join(work, which, name), "rb").read()
                 for which in ("program", "command")]
        if files[0] != files[1]:
            sys.exit(f"examples/cpp/train and sheaf train differ in {name}")
    found = run(sheaf, "eval", "m.sheaf", "--weights", "program", "--data", "dev.jsonl", "--metric",
                "right", cwd=work)
    if found.split()[1] != told[-1].split()[-1]:
        sys.exit(f"examples/cpp/train says {told[-1]}, sheaf eval {found}")


def check_compiler(path):
    symbols = [line.split() for line in run("nm", "-D", "--defined-only", path).splitlines()]
    if [symbol[-1] for symbol in symbols] != ["sheaf_compiler_library"]:
        sys.exit(f"{path} shows {symbols[:5]} ...")
    needed = set(re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", path)))
    if any("LLVM" in name or "MLIR" in name for name in needed):
        sys.exit(f"{path} needs {sorted(needed)}")


def check_library(path):
    if os.path.getsize(path) > MOST_BYTES:
        sys.exit(f"{path} has {os.path.getsize(path)} bytes, more than {MOST_BYTES}")
    needed = set(re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", path)))
    if needed - LIBRARIES:
        sys.exit(f"{path} needs {sorted(needed - LIBRARIES)}")
    symbols = run("nm", "-D", path)
    if re.search(r"llvm|mlir", symbols, re.IGNORECASE):
        sys.exit(f"{path} has symbols of LLVM or MLIR")
    # It neither prints nor reads the environment, and it ends and interrupts no one. (What fmt has for
    # failed assertions takes stderr, fprintf and fputc.)
    forbidden = set(re.findall(r" U ((?:secure_)?getenv|v?printf|puts|fputs|perror|exit|signal|sigaction)\b",
                               symbols))
    if forbidden:
        sys.exit(f"{path} takes {sorted(forbidden)} from others")
    exported = [line.split()[-1] for line in symbols.splitlines() if " T " in line]
    include = os.path.join(os.path.dirname(path), "..", "include", "sheaf")
    header = "".join(open(os.path.join(include, name), encoding="utf-8").read()
                     for name in ("sheaf.h", "builder.h", "compiler.h", "gradients.h", "train.h"))
    declared = set(re.findall(r"\b(sheaf_\w+)\(", re.sub(r"/\*.*?\*/", "", header, flags=re.S)))
    if set(exported) != declared:
        sys.exit(f"exported and declared differ in {sorted(set(exported) ^ declared)}")


main()
