#!/usr/bin/env python3
"""Gradients against the oracle's, and these against differences: run_gradients.py SHEAF WHAT [PATTERN]

values: what lines of operators.txt say that they give. operators: every line of operators.txt, with params as operands, with rows of params, which differ
from instance to instance, with the first operand a tensor of the instance, which needs no
gradient, and with all of them such tensors, which have one; of these programs one in SHEAF_SHARE,
if that is set, and all with SHEAF_FULL=1. zeros: operators at NaN, infinity and the ends of what they are defined for, behind a
`where` that chooses something else, so that no gradient arrives: none may go on. models: those of
models/ with a loss each, in f32; models-bf16: with products in bf16; models-hostile: with segments of the backward pass as short as can be.
programs: text programs with a loss; inputs: the gradients of their arguments as well.
`sheaf grad-check` does the comparisons, and compares the bits on several threads.
"""
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = os.path.join(HERE, "..", "programs")
sys.path += [PROGRAMS, os.path.join(HERE, "..")]
import programs as text_programs
from models import LOSSES, MODELS as DATA_OF

MODELS = os.path.join(HERE, "..", "..", "models")
FULL = os.environ.get("SHEAF_FULL") == "1"
SHARE = 1 if FULL else int(os.environ.get("SHEAF_SHARE", "1"))

HELPERS = """
fn first((a, b): (f32[n, m], i32[n, m])) -> f32[n, m] = a
fn split_and_join(a: f32[6]) -> f32[4] = { let (x, y, z) = split(a, 3)
  concat(x * z, y) }
"""
DATA = [{"i": i, "k": [i, (i + 2) % 3, 0], "n": n} for i, n in [(0, 3), (1, 4), (2, 2), (1, 5)]]


def cases():
    for line in open(os.path.join(HERE, "operators.txt"), encoding="utf-8"):
        line = line.split("#")[0].rstrip()
        if not line or line.startswith(" "):  # values
            continue
        operands, expression = line.split("|", 1)
        positive = operands.startswith("s:")
        shapes = re.findall(r"\[([^\]]*)\]", operands)
        yield line, shapes, expression.strip(), positive


def examples():
    """(place, extents and expression of a case, its operands, what it gives)."""
    case = None
    for number, line in enumerate(open(os.path.join(HERE, "operators.txt"), encoding="utf-8"), 1):
        line = line.split("#")[0].rstrip()
        if line and not line.startswith(" "):
            operands, expression = line.split("|", 1)
            case = re.findall(r"\[([^\]]*)\]", operands), expression.strip()
        elif line:
            operands, result = line.split(" gives ")
            # Operands stand one behind the other.
            operands = json.loads("[" + re.sub(r"(?<=[\]\d]) +(?=[\[\d-])", ", ", operands.strip()) + "]")
            yield f"operators.txt:{number}", *case, operands, json.loads(result)


def shape_of(value):
    return [len(value)] + shape_of(value[0]) if isinstance(value, list) else []


def differs(got, wanted):
    if isinstance(wanted, list):
        return len(got) != len(wanted) or any(map(differs, got, wanted))
    return not abs(got - wanted) <= 1e-5 * max(1, abs(wanted))


def values(sheaf, directory, pattern):
    """One program of all; then compiled code against the oracle."""
    chosen = [e for e in examples() if pattern in e[2]]
    params, results, calls, data, functions = [], [], [], {}, [HELPERS]
    for number, (place, shapes, expression, operands, result) in enumerate(chosen):
        if [[int(e) for e in shape.split(",") if e.strip()] for shape in shapes] != \
                list(map(shape_of, operands)):
            sys.exit(f"{place}: the operands are not of {shapes}")
        typed = [f"{letter}: f32[{shape}]" if shape else f"{letter}: f32"
                 for letter, shape in zip("abcd", shapes)]
        names = [f"p{number}_{letter}" for letter in "abcd"[:len(shapes)]]
        params += [f"p{number}_{one}" for one in typed]
        data |= dict(zip(names, operands))
        shape = shape_of(result)
        results.append(f"f32[{', '.join(map(str, shape))}]" if shape else "f32")
        functions.append(f"fn example{number}({', '.join(typed + ['i: int', 'k: i32[3]', 'n: int'])}) "
                         f"-> {results[-1]} = {{\n  {expression} }}")
        calls.append(f"example{number}({', '.join(names + ['i', 'k', 'n'])})")
    text = "\n".join(functions) + (
        f"\nfn main({', '.join(params + ['i: int', 'k: i32[3]', 'n: int'])})"
        f" -> ({', '.join(results)}) =\n  ({', '.join(calls)})\n")
    path, source = os.path.join(directory, "v.sheaf"), os.path.join(directory, "v.jsonl")
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(text)
    with open(source, "w", encoding="utf-8") as stream:
        stream.write(json.dumps(data | DATA[0]) + "\n")
    run = [sheaf, "run", path, "--data", source]
    done = subprocess.run(run, capture_output=True, text=True, timeout=600)
    if done.returncode:
        print(done.stderr)
        return False
    bad = 0
    for (place, _, expression, operands, wanted), got in zip(chosen, json.loads(done.stdout)):
        if differs(got, wanted):
            bad += 1
            print(f"{place}: {expression} of {operands} gives {got}, expected {wanted}")
    verified = subprocess.run([*run, "--verify"], capture_output=True, text=True, timeout=600)
    print(f"{len(chosen)} values, {bad} wrong{verified.stdout if verified.returncode else ''}")
    return not bad and not verified.returncode and len(chosen) > 1


def program(chosen, kind):
    """One program for several cases; `kind` of operands: params, rows (of params), inputs (the first
    is the instance's), or given (all are). And its data."""
    out, losses, inputs = [HELPERS], [], []
    data = [dict(line) for line in DATA]
    values = random.Random(len(chosen))
    for number, (_, shapes, expression, positive) in enumerate(chosen):
        params, args = [], []
        for letter, shape in zip("abcd", shapes):
            name = f"p{number}_{letter}"
            init = "uniform(0.5, 1.5)" if positive else "uniform(-1, 1)"
            if kind == "given" or kind == "inputs" and letter == "a":
                inputs.append(f", {name}: f32[{shape}]")
                args.append(name)
                for line in data:
                    extents = [line["n"] if e.strip() == "n" else int(e)
                               for e in shape.split(",") if e.strip()]
                    line[name] = tensor(values, extents, 0.5 if positive else -1,
                                        1.5 if positive else 1)
            elif kind == "rows" and shape:
                out.append(f"param {name} : f32[3, {shape}] = {init}")
                args.append(f"{name}[i]")
            else:
                out.append(f"param {name} : f32[{shape}] = {init}")
                args.append(name)
            params.append(f"{letter}: f32[{shape}]")
        out.append(f"fn example{number}({', '.join(params)}, i: int, k: i32[3], n: int) -> f32 = {{\n"
                   f"  let y = {expression}\n  sum(sin(y + 0.3)) }}")
        losses.append(f"example{number}({', '.join(args)}, i, k, n)")
    out.append(f"fn loss(i: int, k: i32[3], n: int{''.join(inputs)}) -> f32 = "
               + " + ".join(losses))
    return "\n".join(out) + "\n", "".join(json.dumps(line) + "\n" for line in data)


def tensor(values, extents, low, high):
    if not extents:
        return values.uniform(low, high)
    return [tensor(values, extents[1:], low, high) for _ in range(extents[0])]


def check(sheaf, directory, name, text, source, options):
    path = os.path.join(directory, name)
    with open(path + ".sheaf", "w", encoding="utf-8") as stream:
        stream.write(text)
    result = subprocess.run([sheaf, "grad-check", path + ".sheaf", "--data", source, *options],
                            capture_output=True, text=True, timeout=600)
    return result.returncode == 0, result.stdout + result.stderr


def operators(sheaf, directory, pattern):
    chosen = [c for c in cases() if pattern in c[0]]
    several = [c for c in chosen if len(c[1]) > 1 and c[1][0]]
    # With shares, what is left out of one kind is taken of the next.
    groups = [(f"{kind}{i}", some[i:i + 12], kind)
              for turn, (kind, some) in enumerate((("params", chosen), ("rows", chosen),
                                                   ("inputs", several), ("given", chosen)))
              for i in range(0, len(some), 12) if (i // 12 + turn) % SHARE == 0]
    options = ["--directions", "1", "--dropout"]

    def attempt(name, some, kind):
        text, data = program(some, kind)
        source = os.path.join(directory, name + ".jsonl")
        with open(source, "w", encoding="utf-8") as stream:
            stream.write(data)
        return check(sheaf, directory, name, text, source,
                     options + ["--inputs"] * (kind == "given"))

    def run(group):
        name, some, kind = group
        ok, together = attempt(name, some, kind)
        if ok:
            return []
        bad = []
        for i, case in enumerate(some):  # which of them?
            ok, output = attempt(f"{name}_{i}", [case], kind)
            if not ok:
                bad.append(f"{case[0]} ({kind}):\n{output}")
        return bad or [f"{name}: only together:\n{together}"]

    with ThreadPoolExecutor(2) as pool:
        bad = [text for texts in pool.map(run, groups) for text in texts]
    print(f"{sum(len(some) for _, some, _ in groups)} cases, {len(bad)} failures")
    for text in bad:
        print(text)
    return bool(groups) and not bad


# Of a and b, vectors of numbers at which derivatives are infinite or NaN.
BEHIND_WHERE = """
a + b; a - b; a * b; a / b; pow(a, b); pow(a, 0.5); pow(2.0, a); maximum(a, b); minimum(a, b);
clamp(a, b, 2.0); clamp(0.5, a, b); -a; abs(a); square(a); exp(a); log(a); sqrt(a); rsqrt(a); sin(a);
cos(a); erf(a); tanh(a); sigmoid(a); relu(a); leaky_relu(a); silu(a); gelu(a); gelu_tanh(a);
softplus(a); log1p(a); expm1(a); xlogy(a, b); log_sigmoid(a); bce_with_logits(a, b); huber(a, b);
cumsum(where(ok, log(a), 0.0)); sorted(where(ok, sqrt(a), 0.5)); flip(flip(log(a)));
kl_div(expand_dims(a, 1), expand_dims(b, 1)); entropy(expand_dims(a, 1)); where(b > 0, log(a), sqrt(b)); log(exp(a) - exp(b)); sqrt(a) * log(b) / (a - b);
1.0 / (1.0 / a); sqrt(1.0 - a * a); log(1.0 - a); exp(exp(a)); f32(bf16(log(a)));
dropout(log(a), 0.5); deeper(2, a); through(a, b); each(a); picked(sqrt(a)); seen(a, b, ok); earlier(a, b)
""".replace("\n", " ").split(";")
BEHIND_HELPERS = """
fn deeper(k: int, a: f32[n]) -> f32[n] =
  if k == 0 { sqrt(a) } else { let y = deeper(k - 1, exp(a))
    log(y) / y }
fn through(a: f32[n], b: f32[n]) -> f32[n] = {
  let whole = stack([sqrt(a), log(b)])
  let rest = reshape(concat(whole[1], whole[0]), 2, n)
  rest[0] + transpose(rest)[:, 1] + max(rest, axis=0)
}
fn each(a: f32[n]) -> f32[n] = {
  let y: f32[m, 1] = stack(map(|x| log(x) / x, rows(expand_dims(a, 1))))
  check m == n
  reshape(y, n)
}
fn sorted(a: f32[n]) -> f32[n] = { let (y, _) = sort(a, descending=1)
  y }
fn seen(a: f32[n], b: f32[n], ok: bool[n]) -> f32[n] =
  reshape(masked_attention(expand_dims(b, 1), expand_dims(a, 1), expand_dims(b, 1), ok), n)
fn earlier(a: f32[n], b: f32[n]) -> f32[n] =
  reshape(attention(expand_dims(b, 1), expand_dims(a, 1), expand_dims(b, 1), causal=1), n)
fn picked(a: f32[n]) -> f32[n] = take_along(a, iota(n))
"""


def zeros(sheaf, directory, pattern):
    special = ["NaN", "Infinity", "-Infinity", 0, -0.0, -1, 1, 1e30, 1e-40]
    pairs = [(0.75, 0.25)] + [(x, y) for x in special for y in special]
    n = len(pairs)
    data = {"x": [x for x, _ in pairs], "y": [y for _, y in pairs],
            "ok": [i == 0 for i in range(n)]}
    source = os.path.join(directory, "zeros.jsonl")
    with open(source, "w", encoding="utf-8") as stream:
        stream.write(json.dumps(data) + "\n")

    def run(case):
        number, expression = case
        text = f"""{HELPERS}{BEHIND_HELPERS}
param w : f32[{n}] = ones
param v : f32[{n}] = ones
fn loss(x: f32[{n}], y: f32[{n}], ok: bool[{n}]) -> f32 = {{
  let a = x * w
  let b = v * y
  let result = {expression}
  sum(where(ok, result, 0.0))
}}
"""
        ok, output = check(sheaf, directory, f"zero{number}", text, source,
                           ["--directions", "1", "--dropout"])
        return "" if ok and "NaN" not in output else f"{expression}:\n{output}"

    chosen = [(i, e.strip()) for i, e in enumerate(BEHIND_WHERE) if pattern in e]
    with ThreadPoolExecutor(2) as pool:
        bad = [text for text in pool.map(run, chosen) if text]
    print(f"{len(chosen)} expressions, {len(bad)} failures")
    for text in bad:
        print(text)
    return not bad


def programs(sheaf, directory, pattern):
    """As they are, and under one of the settings, each in its turn; with SHEAF_FULL=1 under all."""
    ok = True
    settings = [["--without", "hoist-products,hoist-invariants"], ["--without", "fold-weights"],
                ["--hostile"], ["--precision", "bf16"]]
    for turn, name in enumerate((
            "hoist_products", "hoist_captured", "hoist_invariants", "hoist_matrices",
            "weights_picked", "weights_views", "weights_of_weights", "loops_growing",
            "ops_index_tensors", "any_rank", "attention_gradients", "products_large_gradients",
            "products_large_read")):
        path = os.path.join(PROGRAMS, name + ".sheaf")
        program = text_programs.Program(path)
        source = os.path.join(directory, name + ".jsonl")
        with open(source, "w", encoding="utf-8") as stream:
            stream.write("".join(line + "\n" for line in program.lines))
        with open(path, encoding="utf-8") as stream:
            text = stream.read()
        for more in [[]] + (settings if FULL else [settings[turn % len(settings)]]):
            good, output = check(sheaf, directory, name, text, source,
                                 [*program.options, "--directions", "1", *more])
            print(f"{name} {' '.join(more)}: {'ok' if good else 'FAILED'}")
            if not good:
                print(output)
                ok = False
    return ok


def inputs(sheaf, directory, pattern):
    ok = True
    for name in ("inputs_in_trees", "inputs_in_lists", "inputs_that_are_read", "hoist_products",
                 "weights_views"):
        if pattern not in name:
            continue
        path = os.path.join(PROGRAMS, name + ".sheaf")
        program = text_programs.Program(path)
        source = os.path.join(directory, name + ".jsonl")
        with open(source, "w", encoding="utf-8") as stream:
            stream.write("".join(line + "\n" for line in program.lines))
        with open(path, encoding="utf-8") as stream:
            text = stream.read()
        settings = [[], ["--hostile"], ["--precision", "bf16"]]
        if not name.startswith("inputs"):
            settings = [["--without", "fold-weights"]]
        for more in settings:
            good, output = check(sheaf, directory, name, text, source,
                                 [*program.options, "--directions", "1", "--inputs", *more])
            good = good and re.search(r"^input \w+: ", output, re.MULTILINE)
            print(f"{name} {' '.join(more)}: {'ok' if good else 'FAILED'}")
            if not good:
                print(output)
                ok = False
    return ok


def models_in_bf16(sheaf, directory, pattern):
    return models(sheaf, directory, pattern, ["--precision", "bf16"], turn=1)


def models_hostile(sheaf, directory, pattern):
    """Segments of the backward pass are as short as can be, and what they gave back is poisoned."""
    return models(sheaf, directory, pattern, ["--hostile"])


def models(sheaf, directory, pattern, more=(), turn=0):
    """Every one as it is; under a setting one in three, another one at each turn."""
    chosen = [e for e in LOSSES.items() if pattern in e[0]]
    if more and not FULL and not pattern:
        chosen = chosen[turn::3]

    def run(entry):
        name, loss = entry
        data = DATA_OF[name]
        with open(os.path.join(MODELS, name + ".sheaf"), encoding="utf-8") as stream:
            text = stream.read() + "\n" + loss + "\n"
        options = ["--dim", "hidden=8", "--limit", "4", "--directions", "1", *more]
        if name in ("transformer", "berxit"):
            options += ["--dim", "heads=2"]
        source = os.path.join(MODELS, "data", data)
        return name, *check(sheaf, directory, name, text, source, options)

    ok = True
    with ThreadPoolExecutor(2) as pool:
        for name, good, output in pool.map(run, chosen):
            print(f"{name}: {'ok' if good else 'FAILED'}")
            if not good:
                print(output)
                ok = False
    return ok


def main():
    sheaf, what = os.path.abspath(sys.argv[1]), sys.argv[2]
    pattern = sys.argv[3] if len(sys.argv) > 3 else ""
    with tempfile.TemporaryDirectory() as directory:
        run = {"operators": operators, "values": values, "zeros": zeros, "models": models,
               "models-bf16": models_in_bf16, "models-hostile": models_hostile,
               "programs": programs, "inputs": inputs}[what]
        sys.exit(0 if run(sheaf, directory, pattern) else 1)


if __name__ == "__main__":
    main()
