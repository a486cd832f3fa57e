"""The text programs: reading them, running them, comparing what they give.

A program is a .sheaf file whose first lines may hold directives:

    //: run --dim h=8         options of every run
    //: no-verify             only run it: the oracle is too slow for it
    //: long                  not under sanitizers, and under settings only with SHEAF_FULL=1
    //: file NAME TEXT        a file beside the program (\\n is a line break)
    //: data JSON             an instance, as a JSON line
    //: trees LINE            an instance, as a bracket tree; likewise `text LINE`, `tagged LINE`
    //: eval PYTHON           a directive that a Python expression makes, for large data: such as
                              instance(x=matrix(9, 4, lambda i, j: i * j), n=3), a `data`
    //: expect JSON           what the next instance gives, to 1e-5 of its largest number
    //: python EXPRESSION     the same, computed from the instance's JSON value X
    //: error MESSAGE         the next instance fails with this message; {{regex}} matches a part
    //: same OPTION ...       with these options beside those of every run, all results have the
                              same bits; not asked of libraries, whose bits depend on the batch
    //: launches N OPTION ... kernels are called N times for all instances together, with these
                              options beside those of every run

Instances and results are paired in order. A program without results is verified only.
"""
import json
import math
import os
import re
import subprocess
import tempfile

FORMATS = {"data": "jsonl", "trees": "trees", "text": "text", "tagged": "tagged"}


def matrix(rows, columns, element):
    """Its rows, of numbers of three digits."""
    return [[round(element(i, j), 3) for j in range(columns)] for i in range(rows)]


def instance(**arguments):
    return "data " + json.dumps(arguments)


class Program:
    def __init__(self, path):
        self.path = path
        self.name = os.path.splitext(os.path.basename(path))[0]
        self.options, self.files, self.lines, self.results = [], {}, [], []
        self.launches, self.same = [], []
        self.verify, self.long, self.format = True, False, None
        with open(path, encoding="utf-8") as stream:
            for number, line in enumerate(stream, 1):
                if line.startswith("//: "):
                    self.directive(line[4:].rstrip("\n"), f"{path}:{number}")
        if self.results and len(self.results) != len(self.lines):
            raise SystemExit(f"{path}: {len(self.lines)} instances, {len(self.results)} results")

    def directive(self, text, place):
        kind, _, rest = text.partition(" ")
        if kind == "eval":
            self.directive(eval(rest, {"math": math, "matrix": matrix, "instance": instance}), place)
        elif kind == "run":
            self.options += rest.split()
        elif kind == "no-verify":
            self.verify = False
        elif kind == "long":
            self.long = True
        elif kind == "file":
            name, _, content = rest.partition(" ")
            self.files[name] = content.replace("\\n", "\n")
        elif kind in FORMATS:
            self.format = FORMATS[kind]
            self.lines.append(rest)
        elif kind == "same":
            self.same.append(rest.split())
        elif kind == "launches":
            count, *options = rest.split()
            self.launches.append((int(count), options))
        elif kind == "expect":
            self.results.append(("value", json.loads(rest)))
        elif kind == "error":
            self.results.append(("error", rest))
        elif kind == "python":
            value = json.loads(self.lines[len(self.results)]) if self.lines else None
            self.results.append(("python", (rest, value)))
        else:
            raise SystemExit(f"{place}: unknown directive '{kind}'")

    def expected(self, i):
        """The result of instance i: ("value", json) or ("error", message)."""
        kind, what = self.results[i]
        if kind != "python":
            return kind, what
        expression, value = what
        if value is None:
            value = json.loads(self.lines[i])
        return "value", eval(expression, {"math": math, "X": value})


def magnitude(value):
    if isinstance(value, dict):
        return max([0] + [magnitude(v) for v in value.values()])
    if isinstance(value, list):
        return max([0] + [magnitude(v) for v in value])
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return 0
    return abs(value)


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def difference(expected, actual, scale=None, where="$"):
    """Empty when the values agree. Numbers may differ by 1e-5 of the largest of their array."""
    stack = [(expected, actual, where, None)]
    while stack:
        a, b, at, scale = stack.pop()
        if is_number(a) and is_number(b):
            if isinstance(a, int) and isinstance(b, int):
                if a != b:
                    return f"{at}: expected {a}, found {b}"
                continue
            if not abs(a - b) <= 1e-5 * max(1.0, scale or abs(a)):
                return f"{at}: expected {a}, found {b}"
        elif isinstance(a, list) and isinstance(b, list):
            if len(a) != len(b):
                return f"{at}: expected {len(a)} elements, found {len(b)}: {str(b)[:200]}"
            inner = magnitude(a) if all(is_number(x) for x in a) else None
            for i, (x, y) in enumerate(zip(a, b)):
                stack.append((x, y, f"{at}[{i}]", inner))
        elif isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
            for key in a:
                stack.append((a[key], b[key], f"{at}.{key}", None))
        elif a != b or type(a) is not type(b):
            return f"{at}: expected {str(a)[:200]}, found {str(b)[:200]}"
    return ""


def message_matches(expected, actual):
    pattern = "".join(
        part[2:-2] if part.startswith("{{") else re.escape(part)
        for part in re.split(r"(\{\{.*?\}\})", expected)
    )
    return re.fullmatch(pattern, actual) is not None


class Runner:
    def __init__(self, sheaf, timeout=300):
        self.sheaf, self.timeout = os.path.abspath(sheaf), timeout

    def execute(self, program, directory, extra, subcommand="run"):
        command = [self.sheaf, subcommand, os.path.abspath(program.path), "--data",
                   "data.jsonl" if program.format == "jsonl" else "data.txt"]
        if program.format != "jsonl":
            command += ["--data-format", program.format]
        command += self.without_replaced(program.options, extra) + extra
        try:
            result = subprocess.run(command, cwd=directory, capture_output=True, text=True,
                                    errors="replace", timeout=self.timeout,
                                    stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return command, None
        return command, result

    ONCE = ("--batch", "--fibers", "--forks", "--memory-limit", "--policy", "--precision",
            "--seed", "--target-cpu", "--threads")

    @classmethod
    def without_replaced(cls, options, extra):
        """The words of `options` without what stands in `extra` and can be given only once."""
        def replaced(i):
            name = options[i] if options[i].startswith("--") else options[i - 1]
            return name in cls.ONCE and name in extra
        return [word for i, word in enumerate(options) if not replaced(i)]

    def run(self, program, extra=(), verify=None, results=True):
        """Runs a program with further options; returns what is wrong with it, or nothing."""
        extra = list(extra)
        verify = program.verify if verify is None else verify and program.verify
        with tempfile.TemporaryDirectory() as directory:
            for name, text in program.files.items():
                with open(os.path.join(directory, name), "w", encoding="utf-8") as stream:
                    stream.write(text)
            name = "data.jsonl" if program.format == "jsonl" else "data.txt"
            with open(os.path.join(directory, name), "w", encoding="utf-8") as stream:
                stream.write("".join(line + "\n" for line in program.lines))
            problems = ""
            if verify:
                problems += self.verify(program, directory, extra)
            if results and program.results or not verify:
                problems += self.compare(program, directory, extra)
            for options in program.same if "--numeric-class" not in extra else []:
                problems += self.same_bits(program, directory, extra, options)
            if not extra:
                problems += "".join(self.count_launches(program, directory, *launches)
                                    for launches in program.launches)
            return problems

    def count_launches(self, program, directory, expected, options):
        command, result = self.execute(program, directory, options + [
            "--batch", str(len(program.lines)), "--engine", "batched", "--repetitions", "1",
            "--seconds", "0", "--format", "json"], "bench")
        if result is None or result.returncode != 0:
            return self.failed(command, result, f"exit code {result and result.returncode}")
        launches = json.loads(result.stdout)[0]["launches"]
        if launches == expected:
            return ""
        return self.failed(command, result, f"{launches} launches, expected {expected}")

    def same_bits(self, program, directory, extra, options):
        command, plain = self.execute(program, directory, extra)
        if plain is None or plain.returncode not in (0, 1):
            return self.failed(command, plain, f"exit code {plain and plain.returncode}")
        command, result = self.execute(program, directory,
                                       self.without_replaced(extra, options) + options)
        if result is None or (result.returncode, result.stdout) != (plain.returncode, plain.stdout):
            return self.failed(command, result, "other bits than without " + " ".join(options))
        return ""

    @staticmethod
    def failed(command, result, why):
        text = " ".join(command)
        if result is None:
            return f"{text}\ntimed out\n"
        return f"{text}\n{why}\n{result.stdout[-2000:]}{result.stderr[-3000:]}\n"

    def verify(self, program, directory, extra):
        command, result = self.execute(program, directory, extra + ["--verify"])
        if result is None or result.returncode != 0:
            return self.failed(command, result, f"exit code {result and result.returncode}")
        return ""

    def compare(self, program, directory, extra):
        command, result = self.execute(program, directory, extra)
        if result is None:
            return self.failed(command, result, "")
        if result.returncode not in (0, 1):
            return self.failed(command, result, f"exit code {result.returncode}")
        lines = result.stdout.splitlines()
        if len(lines) != len(program.lines):
            return self.failed(command, result,
                               f"{len(program.lines)} instances, {len(lines)} results")
        # What comes before the message tells the place in the program.
        errors = dict(re.findall(r"error: instance (\d+): (?:\S+\.sheaf:[0-9:]+ )?(.*)",
                                 result.stderr))
        problems, wanted = "", 0
        for i in range(len(program.results)):
            kind, what = program.expected(i)
            if kind == "error":
                wanted = 1
                if str(i) not in errors:
                    problems += f"instance {i} gave {lines[i][:200]}, not the error '{what}'\n"
                elif not message_matches(what, errors[str(i)]):
                    problems += f"instance {i}: the error '{errors[str(i)]}', not '{what}'\n"
            elif str(i) in errors:
                problems += f"instance {i}: {errors[str(i)]}\n"
            else:
                found = difference(what, json.loads(lines[i]))
                if found:
                    problems += f"instance {i}: {found}\n"
        if program.results and result.returncode != wanted:
            problems += f"exit code {result.returncode}, expected {wanted}\n"
        return problems and self.failed(command, result, problems)
