#!/usr/bin/env python3
"""Files of Hugging Face, as they are, give what PyTorch computes with them: run_checkpoints.py SHEAF

Each directory here has weights, a config.json and PyTorch's answers (expected.json), made by
bench/compare/checkpoints.py. `sheaf run --verify` compares with the interpreter, one at a time and
many, in every order; words that are drawn as well, which are the likeliest where only one may be.
"""
import json
import os
import shutil
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


# Members of a config.json that its model does not compute with, and what is said of them.
REFUSED = [("llama", {"rope_parameters": {"rope_theta": 500.0, "rope_type": "linear"}},
            "'rope_parameters.rope_type' is the string 'linear', but the model computes with 'default'"),
           ("llama", {"rope_scaling": {"factor": 4}}, "'rope_scaling.factor' is 4, but the model computes with 1"),
           ("llama", {"rope_scaling": {"type": "longrope", "long_factor": [1.0, 1.5]}}, "is the string 'longrope'"),
           ("llama", {"hidden_act": "gelu", "attention_bias": True}, "'hidden_act' is the string 'gelu', but "),
           ("llama", {"hidden_act": "gelu", "attention_bias": True}, "'attention_bias' is true, but "),
           ("llama", {"rms_norm_eps": "small"}, "'rms_norm_eps' is the string 'small', but 'eps' is a number"),
           ("llama", {"num_hidden_layers": 0}, "'num_hidden_layers' is 0, but dim 'layers' is a whole number from 1"),
           ("llama", {"sliding_window": 3}, "instance 0: "), ("llama", {"sliding_window": 4, "rope_scaling": None}, None),
           ("minilm", {"layer_norm_eps": 1e-6}, None), ("minilm", {"is_decoder": True}, "'is_decoder' is true, but"),
           ("minilm", {"1_Pooling/config.json": {"pooling_mode_cls_token": True}},
            "1_Pooling/config.json: the member 'pooling_mode_cls_token' is true, but the model computes with false"),
           ("minilm", {"1_Pooling/config.json": {"pooling_mode_mean_tokens": True}}, None),
           ("gpt2", {"activation_function": "relu"}, "computes with 'gelu_new' or 'gelu_pytorch_tanh'"),
           ("gpt2", {"activation_function": "gelu_pytorch_tanh", "tie_word_embeddings": None}, None)]


def refusals(sheaf):
    """What goes wrong of the configs of REFUSED, with three words and two more, the last of which is not read."""
    with tempfile.TemporaryDirectory() as place:
        data = os.path.join(place, "data.jsonl")
        with open(data, "w") as stream:
            stream.write('{"text": [1, 2, 3], "count": 2}\n')
        for i, (name, members, wanted) in enumerate(REFUSED):
            directory = shutil.copytree(os.path.join(HERE, name), os.path.join(place, str(i)))
            config = os.path.join(directory, "config.json")
            with open(config) as stream:
                plain = json.load(stream)
            for file in [file for file in members if file.endswith(".json")]:
                os.makedirs(os.path.dirname(os.path.join(directory, file)))
                with open(os.path.join(directory, file), "w") as stream:
                    json.dump(members[file], stream)
            with open(config, "w") as stream:
                json.dump(plain | members, stream)
            done = subprocess.run([sheaf, "run", os.path.join(MODELS, name + ".sheaf"), "--data", data, "--weights",
                                   directory + "/", "--entry", "main" if name == "minilm" else "generate"],
                                  capture_output=True, text=True)
            if (done.returncode != 0) != (wanted is not None) or (wanted or "") not in done.stderr:
                return f"{name} with {members}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    return eps(sheaf)


def eps(sheaf):
    """The epsilon of a config.json is computed with, also by weights that were saved with it elsewhere."""
    with tempfile.TemporaryDirectory() as place:
        directory = shutil.copytree(os.path.join(HERE, "gpt2"), os.path.join(place, "gpt2"))
        data, saved = os.path.join(place, "data.jsonl"), os.path.join(place, "saved.safetensors")
        with open(data, "w") as stream:
            stream.write('{"text": [1, 2, 3]}\n')
        model, answers = os.path.join(MODELS, "gpt2.sheaf"), []
        for value in (1e-5, 0.5):
            config = os.path.join(directory, "config.json")
            with open(config) as stream:
                plain = json.load(stream)
            with open(config, "w") as stream:
                json.dump(plain | {"layer_norm_epsilon": value}, stream)
            subprocess.run([sheaf, "init", model, "--init-from", directory, "-o", saved], check=True,
                           capture_output=True)
            for weights in (directory, saved):
                answers.append(subprocess.run([sheaf, "run", model, "--data", data, "--weights", weights],
                                              check=True, capture_output=True, text=True).stdout)
        if answers[0] != answers[1] or answers[2] != answers[3] or answers[0] == answers[2]:
            return f"gpt2 with two epsilons: {answers}"
    return None


def entries(name):
    with open(os.path.join(HERE, name, "expected.json")) as stream:
        found = [entry for entry in json.load(stream) if entry not in ("by", "texts")]
    return found + ["draw"] if "generate" in found else found


def main(sheaf):
    jobs = [(name, entry) for name in sorted(os.listdir(HERE))
            if os.path.exists(os.path.join(HERE, name, "expected.json")) for entry in entries(name)]
    assert len(jobs) == 10, jobs
    one_in = int(os.environ.get("SHEAF_CASES", "1"))  # where everything takes long
    with ThreadPoolExecutor(2) as pool:
        wrong = [*pool.map(lambda job: check(sheaf, *job), jobs[::one_in])]
    wrong = [text for text in wrong + ([refusals(sheaf)] if one_in == 1 else []) if text]
    sys.exit("\n".join(wrong) or 0)


if __name__ == "__main__":
    main(sys.argv[1])
