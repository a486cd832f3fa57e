"""What the tests of `sheaf train` share: a directory to run it in, and what it leaves there."""
import filecmp
import json
import os
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = os.path.join(HERE, "..", "..", "models")
failures = []


def expect(condition, what):
    if not condition:
        failures.append(what)
        print("FAILED:", what)


class Runner:
    def __init__(self, sheaf, directory):
        self.sheaf, self.directory = sheaf, directory

    def path(self, name):
        return os.path.join(self.directory, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as stream:
            stream.write(text)

    def run(self, *arguments, code=0, stderr=True):
        result = subprocess.run([self.sheaf, *arguments], cwd=self.directory, capture_output=True,
                                text=True, timeout=300)
        expect(result.returncode == code,
               f"{' '.join(arguments)}: exit {result.returncode}, not {code}: {result.stderr}")
        return result.stdout + (result.stderr if stderr else "")

    def tensors(self, name):
        with open(self.path(name), "rb") as stream:
            data = stream.read()
        size, = struct.unpack("<Q", data[:8])
        header = json.loads(data[8:8 + size])
        out = {}
        for key, entry in header.items():
            if key != "__metadata__":
                begin, end = entry["data_offsets"]
                raw = data[8 + size + begin:8 + size + end]
                out[key] = list(struct.unpack(f"<{len(raw) // 4}f", raw))
        return out

    def config(self, directory):
        with open(self.path(directory + "/config.json"), encoding="utf-8") as stream:
            return json.load(stream)

    def same(self, one, other):
        """Whether two trainings ended with the same weights, to the bit."""
        files = [self.path(directory + "/last.safetensors") for directory in (one, other)]
        return filecmp.cmp(*files, shallow=False)

    def log(self, directory):
        with open(self.path(directory + "/log.jsonl"), encoding="utf-8") as stream:
            return [json.loads(line) for line in stream]


def main(*tests):
    """Runs tests with the command of the first argument, of several every second where everything takes
    long; ends the process. No test needs what another leaves."""
    if os.environ.get("SHEAF_FEW"):
        tests = tests[1::2] or tests
    with tempfile.TemporaryDirectory() as directory:
        runner = Runner(os.path.abspath(sys.argv[1]), directory)
        for test in tests:
            test(runner)
    print(f"{len(failures)} failures")
    sys.exit(1 if failures else 0)
