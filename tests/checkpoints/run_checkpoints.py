#!/usr/bin/env python3
"""Files of Hugging Face, as they are, give what PyTorch computes with them: run_checkpoints.py SHEAF

Each directory here has weights, a config.json and PyTorch's answers (expected.json), made by
bench/compare/checkpoints.py. `sheaf run --verify` compares with the interpreter, one at a time and
many, in every order.
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


def check(sheaf, name, entry):
    directory = os.path.join(HERE, name)
    with open(os.path.join(directory, "expected.json")) as stream:
        expected = json.load(stream)
    with tempfile.TemporaryDirectory() as place:
        data = os.path.join(place, "data.jsonl")
        with open(data, "w") as stream:
            for text, answer in zip(expected["texts"], expected[entry]):
                line = {"text": text, "count": len(answer)} if entry == "generate" else text
                stream.write(json.dumps(line) + "\n")
        command = [sheaf, "run", os.path.join(MODELS, name + ".sheaf"), "--entry", entry, "--data", data,
                   "--weights", directory + "/"]
        outputs = [subprocess.run(command + more, capture_output=True, text=True)
                   for more in ([], ["--verify", "--hostile"])]
    for done in outputs:
        if done.returncode:
            return f"{name}, {entry}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    answers = [json.loads(line) for line in outputs[0].stdout.splitlines()]
    if len(answers) != len(expected[entry]):
        return f"{name}, {entry}: {len(answers)} answers"
    for text, found, wanted in zip(expected["texts"], answers, expected[entry]):
        found, wanted = numbers(found), numbers(wanted)
        if len(found) != len(wanted) or any(abs(a - b) > TOLERANCE * max(1, abs(b))
                                            for a, b in zip(found, wanted)):
            return f"{name}, {entry}: of {text}\n  {found}\n  instead of {wanted}"
    return None


def main(sheaf):
    jobs = [(name, entry) for name in sorted(os.listdir(HERE)) if os.path.isdir(os.path.join(HERE, name))
            and os.path.exists(os.path.join(HERE, name, "expected.json"))
            for entry in json.load(open(os.path.join(HERE, name, "expected.json"))) if entry not in ("by", "texts")]
    assert len(jobs) == 8, jobs
    with ThreadPoolExecutor(2) as pool:
        wrong = [text for text in pool.map(lambda job: check(sheaf, *job), jobs) if text]
    sys.exit("\n".join(wrong) or 0)


main(sys.argv[1])
