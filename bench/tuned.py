#!/usr/bin/env python3
"""What the tuner gains over the defaults: tuned.py BUILD [SECONDS [MODEL ...]]

Each model of models/ is tuned on its data of models/data, for so many seconds each (20), with
hidden sizes 64 and 256, mini-batches of 64 instances and of 1. A line says how many times as fast
all its kernels together are with the choices, by interleaved pairs, with the interval of 95 %, and
which kernel gains most; how many trials were made of each, and how many there was no time for.
Nothing is kept.
"""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests"))
import models

# Heads must divide the hidden size.
MORE = {"berxit": ["--dim", "heads=4"]}


def main():
    sheaf = os.path.join(sys.argv[1], "bin", "sheaf")
    seconds = sys.argv[2] if len(sys.argv) > 2 else "20"
    names = sys.argv[3:] or models.names()
    print(f"{'':24} {'hidden':>6} {'batch':>5} {'trials':>6} {'left':>5}  {'all kernels':24} largest gain")
    with tempfile.TemporaryDirectory() as store:
        for name in names:
            for hidden in (64, 256):
                for batch in (1, 64):
                    done = subprocess.run(
                        [sheaf, "tune", models.path_of(name), "--data", models.data_of(name),
                         "--dim", f"hidden={hidden}", "--batch", str(batch), "--seconds", seconds, "--store", store,
                         "--format", "json", *MORE.get(name, [])],
                        text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
                    report = json.loads(done.stdout)
                    chosen = [k for k in report["kernels"] if k["outcome"] == "chosen"]
                    every = report.get("ratio")
                    text = f"{every['median']:.3f} ({every['low']:.3f} to {every['high']:.3f})" \
                        if every else "1"
                    most = max(chosen, key=lambda k: k["ratio"]["median"], default=None)
                    gain = f"{most['ratio']['median']:.3f}, {most['share']:.0%} of the time: " \
                           f"{most['names'][0]}, {most['default']} -> {most['tiling']}" \
                        if most else ""
                    left = max((k["left"] for k in report["kernels"]), default=0)
                    print(f"{name:24} {hidden:6} {batch:5} {report['trials']:6} {left:5}  "
                          f"{text:24} {gain}", flush=True)


main()
