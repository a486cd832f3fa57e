#!/usr/bin/env python3
"""Plants lines that break the layers, one of each kind, and expects that scripts/check_layers.sh
finds each of them. It sees a copy of the tree that has the include lines only."""
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(sys.argv[1])

# File (one that is there, or a new one), what is included in it, and a part of what is said then.
PLANTED = [
    ("compiler/ir/GradientBlock.cpp", "compiler/ops/Op.h", "compiler/ir may include only"),
    ("compiler/host/Host.cpp", "compiler/passes/Pipeline.h", "compiler/host may include only"),
    ("compiler/oracle/Oracle.cpp", "compiler/kernels/Kernel.h", "compiler/oracle may include only"),
    ("compiler/kernels/plan/Plan.h", "compiler/kernels/cpu/Cpu.h", "compiler/kernels/plan may include only"),
    ("compiler/kernels/plan/Plan.h", "compiler/kernels/Kernel.h", "compiler/kernels/plan may include only"),
    ("compiler/kernels/Kernel.h", "compiler/kernels/cpu/Cpu.h", "compiler/kernels may include only"),
    ("compiler/kernels/plan/Views.h", "compiler/target/Caches.h", "compiler/kernels/plan may include only"),
    ("compiler/store/Store.cpp", "runtime/artefact/artefact.h", "compiler/store may include only"),
    ("compiler/passes/Pass.cpp", "runtime/train/trainer.h", "compiler/passes may include only"),
    ("compiler/driver/Compiler.cpp", "tools/sheaf/load.h", "compiler/driver may include only"),
    ("compiler/frontend/Parser.h", "compiler/ir/Program.h", "parsing and diagnostics know no MLIR"),
    ("compiler/store/Store.h", "llvm/ADT/StringRef.h", "libraries and store know no compiler"),
    ("runtime/cpu/cpu_device.h", "runtime/null/null_device.h", "runtime/cpu may include only"),
    ("runtime/null/null_device.cpp", "runtime/cpu/cpu_device.h", "runtime/null may include only"),
    ("runtime/session/session.h", "runtime/train/trainer.h", "runtime/session may include only"),
    ("runtime/io/read.cpp", "runtime/session/session.h", "runtime/io may include only"),
    ("runtime/train/trainer.h", "runtime/fit/training.h", "runtime/train may include only"),
    ("runtime/fit/training.cpp", "runtime/artefact/artefact.h", "runtime/fit may include only"),
    ("runtime/model/model.h", "compiler/ops/Op.h", "runtime/model may include only"),
    ("runtime/memory/rows.cpp", "llvm/Support/Error.h", "the runtime knows no compiler"),
    ("include/sheaf/sheaf.h", "runtime/model/model.h", "installed headers stand alone"),
    ("tools/sheaf/load.cpp", "compiler/frontend/Checker.h", "tools/sheaf may include only"),
    ("tools/sheaf/run.cpp", "mlir/IR/BuiltinOps.h", "the command knows no MLIR"),
    ("compiler/passes/Pass.h", "../ir/Program.h", "a file is named from the root"),
    ("compiler/attic/Old.cpp", "compiler/ir/Program.h", "compiler/attic is not in the list"),
    ("runtime/loose.h", "runtime/model/model.h", "belongs in a room"),
]
# Lines that name an operator where records are asked.
NAMES = [("compiler/passes/Pass.cpp", 'Value sum = ops::applyOne(b, "add", {x, y});'),
         ("compiler/passes/Simplify.cpp", 'return ir::ApplyOp::create(builder, type, "full", extents, attrs);'),
         ("compiler/analysis/Casts.h", 'return apply.getOp() == "reshape";'),
         ("compiler/oracle/Interpreter.cpp", 'if (step.record->name != "detach")'),
         ("compiler/passes/Pass.cpp", 'bool isIt = name == "softmax";'),
         ("compiler/passes/Pass.cpp", 'auto *tanh = ops::find("tanh");')]


def copy(to):
    for top in ("runtime", "compiler", "include", "tools", "tests"):
        for file in sorted((ROOT / top).rglob("*")):
            if file.suffix in (".h", ".hpp", ".cpp", ".c", ".inc"):
                lines = [line for line in file.read_text().splitlines() if "include" in line]
                place = to / file.relative_to(ROOT)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text("\n".join(lines) + "\n")


def check(script, tree):
    done = subprocess.run([script, tree], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def main():
    script = ROOT / "scripts" / "check_layers.sh"
    wrong = []
    with tempfile.TemporaryDirectory() as scratch:
        tree = pathlib.Path(scratch)
        copy(tree)
        status, said = check(script, tree)
        if status != 0:
            sys.exit(f"the tree itself:\n{said}")
        for name, included, message in PLANTED:
            file = tree / name
            before = file.read_text() if file.exists() else None
            if before is None and "attic" not in name and "loose" not in name:
                wrong.append(f"{name}: there is no such file")
                continue
            file.parent.mkdir(exist_ok=True)
            file.write_text((before or "") + f'#include "{included}"\n')
            status, said = check(script, tree)
            if status == 0 or message not in said or (included not in said and before is not None):
                wrong.append(f"{name} includes {included}: exit code {status}\n{said}")
            if before is None:
                file.unlink()
                if not any(file.parent.iterdir()):
                    file.parent.rmdir()
            else:
                file.write_text(before)
        for name, line in NAMES:
            before = (tree / name).read_text()
            (tree / name).write_text(before + line + "\n")
            status, said = check(script, tree)
            if status == 0 or "names an operator" not in said or line not in said:
                wrong.append(f"{name} has {line}: exit code {status}\n{said}")
            (tree / name).write_text(before)
        # Two rooms that may include each other.
        loop = tree / "check_layers.sh"
        loop.write_text(script.read_text().replace("runtime/model:", "runtime/model: io"))
        loop.chmod(0o755)
        status, said = check(loop, tree)
        if status == 0 or "rooms include each other" not in said:
            wrong.append(f"a loop in the list: exit code {status}\n{said}")
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"{len(PLANTED) + len(NAMES) + 1} violations were found")


main()
