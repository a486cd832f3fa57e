#!/usr/bin/env python3
"""Files of Hugging Face, as they are, give what PyTorch computes with them: run_checkpoints.py SHEAF

Each directory here has weights, a config.json and PyTorch's answers (expected.json), made by
bench/compare/checkpoints.py. `sheaf run --verify` compares with the interpreter, one at a time and
many, in every order; words that are drawn as well, which are the likeliest where only one may be.
"""
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = os.path.join(HERE, "..", "..", "models")
TOLERANCE = 2e-5


def numbers(value):
    return [x for one in value for x in numbers(one)] if isinstance(value, list) else [value]


# How words are drawn: those of the first four texts among one word.
DRAWS = [(0.0, 20, 1.0), (1.5, 1, 1.0), (0.7, 20, 1e-6), (0.7, 1, 0.5), (0.8, 5, 1.0), (2.0, 99, 0.9)]


def instances(expected, entry):
    """(arguments, the wanted answer or None) of each instance."""
    if entry == "draw":
        texts, answers = (expected[name] + expected[name][:2] for name in ("texts", "generate"))
        return [({"text": text, "count": len(answer), "temperature": temperature, "top_k": k, "top_p": p},
                 answer if i < len(expected["texts"]) else None)
                for i, (text, answer, (temperature, k, p)) in enumerate(zip(texts, answers, DRAWS, strict=True))]
    return [({"text": text, "count": len(answer)} if entry == "generate" else text, answer)
            for text, answer in zip(expected["texts"], expected[entry])]


def check(sheaf, name, entry):
    directory = os.path.join(HERE, name)
    with open(os.path.join(directory, "expected.json")) as stream:
        rows = instances(json.load(stream), entry)
    with tempfile.TemporaryDirectory() as place:
        data = os.path.join(place, "data.jsonl")
        with open(data, "w") as stream:
            stream.writelines(json.dumps(given) + "\n" for given, _ in rows)
        command = [sheaf, "run", os.path.join(MODELS, name + ".sheaf"), "--entry", entry, "--data", data,
                   "--weights", directory + "/"]
        outputs = [subprocess.run(command + more, capture_output=True, text=True)
                   for more in ([], ["--verify", "--hostile"])]
    for done in outputs:
        if done.returncode:
            return f"{name}, {entry}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    answers = [json.loads(line) for line in outputs[0].stdout.splitlines()]
    if len(answers) != len(rows):
        return f"{name}, {entry}: {len(answers)} answers"
    for (given, wanted), found in zip(rows, answers):
        if wanted is None:
            continue
        found, wanted = numbers(found), numbers(wanted)
        if len(found) != len(wanted) or any(abs(a - b) > TOLERANCE * max(1, abs(b))
                                            for a, b in zip(found, wanted)):
            return f"{name}, {entry}: of {given}\n  {found}\n  instead of {wanted}"
    return None


def entries(name):
    with open(os.path.join(HERE, name, "expected.json")) as stream:
        found = [entry for entry in json.load(stream) if entry not in ("by", "texts")]
    return found + ["draw"] if "generate" in found else found


def main(sheaf):
    jobs = [(name, entry) for name in sorted(os.listdir(HERE))
            if os.path.exists(os.path.join(HERE, name, "expected.json")) for entry in entries(name)]
    assert len(jobs) == 10, jobs
    with ThreadPoolExecutor(2) as pool:
        wrong = [text for text in pool.map(lambda job: check(sheaf, *job), jobs) if text]
    sys.exit("\n".join(wrong) or 0)


main(sys.argv[1])
