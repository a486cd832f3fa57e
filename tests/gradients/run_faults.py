#!/usr/bin/env python3
"""`sheaf grad-check` finds what is wrong: run_faults.py SHEAF_FAULTY

With a compiler that breaks when it is told (tests/reports/faults.cpp): one that computes something
else than the program says, which the oracle shows, and one whose gradient record of tanh is off by
1e-5 of it, compiled and in the oracle alike, which only differences in f64 show, at a kink as well.
"""
import json
import os

from trainings import expect, main

PROGRAM = """
dim n = 70
param a : f32[n] = uniform(-1, 1)
param b : f32[n] = uniform(-1, 1)
param tied : f32[2] = zeros
fn loss(x: f32[n]) -> f32 = sum(tanh(a * x)) + sum(sin(b * x)) + max(tanh(tied))
"""


def check(runner, fault, code):
    os.environ["SHEAF_FAULT"] = fault
    report = json.loads(runner.run("grad-check", "p.sheaf", "--data", "d.jsonl", "--seed", "3",
                                   "--directions", "1", "--steps", "3", "--optimizer", "sgd",
                                   "--store", "none", "--format", "json", code=code,
                                   stderr=False))
    expect(report["ok"] == (code == 0), f"{fault}: ok is {report['ok']}")
    return report, {param["name"]: param for param in report["params"]}


def faults(runner):
    runner.write("p.sheaf", PROGRAM)
    x = [(-1) ** i * (0.5 + i / 100) for i in range(70)]
    runner.write("d.jsonl", json.dumps({"x": x}) + "\n")

    report, params = check(runner, "none", 0)
    for name, param in params.items():
        expect(param["largest_error"] < 1e-6 and param["largest_oracle_error"] < 1e-8,
               f"{name}: {param}")
    expect(report["training"]["ok"] and len(report["training"]["steps"]) == 3,
           "training without a fault")

    report, params = check(runner, "miscompile", 1)
    a, b = params["a"], params["b"]
    expect(a["wrong_elements"] > 60 and len(a["wrong"]) == 8, f"a as sigmoid: {a}")
    expect(not a["wrong_oracle"] and not b["wrong"] and not b["wrong_oracle"],
           f"the oracle does not follow the compiler: {a} {b}")
    expect(not report["training"]["ok"] and report["training"]["largest_error"] > 1e-3,
           "training as sigmoid")

    report, params = check(runner, "gradient", 1)
    a, b = params["a"], params["b"]
    expect(not a["wrong"] and len(a["wrong_oracle"]) == 1, f"a with a wrong rule: {a}")
    expect(1e-6 < a["largest_oracle_error"] < 1e-2, f"a with a wrong rule: {a}")
    for wrong in a["wrong_oracle"]:
        expect(abs(wrong["gradient"] / wrong["difference"] - 1 - 1e-5) < 1e-7,
               f"the element to blame: {wrong}")
    expect(not b["wrong_oracle"], f"b is right: {b}")
    expect(len(params["tied"]["wrong_oracle"]) == 1,
           f"a gradient that is not between the slopes of a kink: {params['tied']}")
    expect(report["training"]["ok"], "both train alike by a wrong rule")


if __name__ == "__main__":
    main(faults)
