#!/usr/bin/env python3
"""run_draws.py SHEAF draws.sheaf

Compares what the program draws, to the bit, with keys and Philox written anew here, under several
seeds and settings.
"""
import json
import os
import struct
import subprocess
import sys
import tempfile

WORD, LONG = (1 << 32) - 1, (1 << 64) - 1
LENGTHS = [0, 1, 2, 5, 3]


def split(key, *numbers):
    """SplitMix64's output of each number in turn."""
    for number in numbers:
        z = (key + (number + 1) * 0x9E3779B97F4A7C15) & LONG
        z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & LONG
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) & LONG
        key = z ^ z >> 31
    return key


def philox(counter, key):
    """Philox4x32-10."""
    a, b, c, d = counter
    low, high = key
    for _ in range(10):
        first, second = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = second >> 32 ^ b ^ low, second & WORD, first >> 32 ^ d ^ high, first & WORD
        low, high = (low + 0x9E3779B9) & WORD, (high + 0xBB67AE85) & WORD
    return a, b, c, d


assert philox((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0)) == (
    0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)


def draw(key, *shape):
    numbers = [(philox((i, 0, 0, 0), (key & WORD, key >> 32))[0] >> 8) / (1 << 24)
               for i in range(size(shape))]
    for extent in reversed(shape[1:]):
        numbers = [numbers[i:i + extent] for i in range(0, len(numbers), extent)] if extent else []
    return numbers if shape else numbers[0]


def size(shape):
    return shape[0] * size(shape[1:]) if shape else 1


def rounded(value):
    """With f32s for floats: the answer is written in as few digits as tell them apart."""
    if isinstance(value, list):
        return [rounded(x) for x in value]
    return struct.unpack("f", struct.pack("f", value))[0] if isinstance(value, float) else value


def walk(key, n):
    drawn = []
    for _ in range(n):
        drawn.append(draw(split(key, 0), 3))
        key = split(key, 1)
    return drawn


def loop(key, n):
    """What the last of the calls gets: the argument is drawn by the call before it."""
    for _ in range(n - 1):
        key = split(key, 0)
    return draw(split(key, 1), 3)


def calls(key, n):
    # Sites: random, leaf, leaf, walk, loop.
    leaf = lambda site: draw(split(key, site, 0), 3)
    return [draw(split(key, 0), 3), leaf(1), leaf(2), walk(split(key, 3), n),
            loop(split(key, 4), n + 1)]


def loops(key, n):
    # Sites: map, leaf in it, fold, random in it, scan, random in it, filter, walk in it.
    mapped = [draw(split(key, 0, i, 1, 0), 3) for i in range(n)]
    folded = draw(split(key, 2, n - 1, 3), 3) if n else [0, 0, 0]
    scanned = [draw(split(key, 4, i, 5), 3) for i in range(n)]
    return [mapped, folded, scanned, [x for x in range(n) if x != 2]]


def values(key, n):
    # Sites: same, same, random in f, twice, random in its lambda, f, map, run in it, pick.
    lambda_in_twice = draw(split(key, 3, 0, 4), 3)
    return [lambda_in_twice, [n, draw(split(key, 0, 0), 2)], [0.5, draw(split(key, 1, 0), 2)],
            draw(split(key, 5, 2), 3), [draw(split(key, 6, i, 7, 0), 3) for i in range(2)],
            [0, 0, 0] if n == 0 else [1, 1, 1] if n == 1 else draw(split(key, 8, 0), 3)]


def shapes(key, n):
    # Sites: four times random, map, random in it.
    return [draw(split(key, 0)), draw(split(key, 1), n),
            draw(split(key, 2), 2, n) if n else [[], []], draw(split(key, 3), 2, 2, 3),
            [draw(split(key, 4, k, 5), k) for k in range(n)]]


def expected(seed, instance):
    key, n = split(0, seed, 0, instance), LENGTHS[instance]
    return [part(split(key, site), n)
            for site, part in enumerate([calls, loops, values, shapes])]


def main():
    sheaf, program = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    with tempfile.TemporaryDirectory() as directory:
        with open(os.path.join(directory, "d.jsonl"), "w", encoding="utf-8") as stream:
            stream.write("".join(f"{n}\n" for n in LENGTHS))

        def run(*options):
            command = [sheaf, "run", program, "--data", "d.jsonl", *options]
            result = subprocess.run(command, cwd=directory, capture_output=True, text=True)
            if result.returncode:
                sys.exit(f"{' '.join(command)}\n{result.stdout}{result.stderr}")
            return [json.loads(line) for line in result.stdout.splitlines()]

        settings = [["--batch", "1"], ["--batch", "2", "--threads", "2"], ["--hostile"],
                    ["--target-cpu", "x86-64-v2"], ["--dropout"]]
        settings += [["--without", name] for name in
                     ["inline", "specialise", "simplify", "fold-constants", "blocks", "fuse"]]
        for seed, options in [(0, []), (2**64 - 1, []), (5, [])] + [(5, o) for o in settings]:
            lines = run("--sample-seed", str(seed), *options)
            for instance, line in enumerate(lines):
                for site, (a, b) in enumerate(zip(expected(seed, instance), line)):
                    for i, (x, y) in enumerate(zip(a, b)):
                        if rounded(x) != rounded(y):
                            sys.exit(f"seed {seed}, {' '.join(options)}: instance {instance}, "
                                     f"part {site}.{i}: expected {x}, found {y}")
    print("every draw is as expected")


main()
