#!/bin/bash
# Checks that no room includes what it must not know. Prints every offending line.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bad=0

# forbid PATTERN REASON FILE ...
forbid() {
  local pattern=$1 reason=$2 found
  shift 2
  found=$(grep -n -H -E "^ *# *include *[<\"]($pattern)" "$@" /dev/null || true)
  if [[ -n $found ]]; then
    printf '%s\n%s\n' "$reason:" "$found" >&2
    bad=1
  fi
}

sources() { find "$@" -name '*.h' -o -name '*.cpp' -o -name '*.inc' 2>/dev/null; }

# What each room may include beside itself. A room that is not in the list is an error.
rooms='
runtime/model:
runtime/measure:
runtime/memory: model measure
runtime/schedule: model memory
runtime/walk: model measure memory schedule
runtime/device: model measure memory schedule
runtime/cpu: model measure memory schedule device
runtime/null: model measure memory schedule device
runtime/devices: device cpu null
runtime/backward: model memory device
runtime/session: model measure memory schedule walk device devices backward
runtime/train: model backward session
runtime/io: model
runtime/artefact: model io cpu session
runtime/api: model io artefact
compiler/ir: ops
compiler/ops: ir
compiler/frontend: ir ops
compiler/oracle: ir ops
compiler/analysis: ir ops
compiler/passes: ir ops analysis
compiler/kernels: ir ops vendor
compiler/kernels/plan: ir ops
compiler/target:
compiler/model: ir ops analysis kernels
compiler/host: ir ops analysis passes kernels model
compiler/codegen: target
compiler/store:
compiler/vendor:
compiler/driver: ir analysis passes kernels model target host codegen frontend store
compiler/measure: driver
compiler/report: driver measure
compiler/verify: driver oracle report
compiler/bench: driver kernels measure oracle report verify
compiler/kernelbench: driver measure report target vendor
'
for room in runtime/*/ compiler/*/ compiler/kernels/*/; do
  room=${room%/}
  if ! allowed=$(grep -E "^$room:" <<<"$rooms"); then
    echo "$room is not in the list of scripts/check_layers.sh" >&2
    bad=1
    continue
  fi
  mapfile -t files < <(sources "$room")
  known=$(sed -E 's/^[^:]*: *//; s/ /|/g' <<<"$allowed")
  mapfile -t found < <(grep -n -H -E "^ *# *include *\"${room%/*}/" "${files[@]}" /dev/null |
    grep -v -E "include *\"(${room%/*}/(${room##*/}|${known:-${room##*/}})/)" || true)
  if ((${#found[@]})); then
    echo "$room may include only: ${allowed#*:}" >&2
    printf '%s\n' "${found[@]}" >&2
    bad=1
  fi
done
mapfile -t loose < <(find runtime compiler -maxdepth 1 \( -name '*.h' -o -name '*.cpp' \))
if ((${#loose[@]})); then
  printf 'belongs in a room: %s\n' "${loose[@]}" >&2
  bad=1
fi

mapfile -t runtime < <(sources runtime include)
forbid 'mlir/|mlir-c/|llvm/|llvm-c/|clang/' 'the runtime knows no compiler' "${runtime[@]}"
forbid 'compiler/|tools/|tests/' 'the runtime stands below everything else' "${runtime[@]}"

mapfile -t plan < <(sources compiler/kernels/plan)
forbid 'compiler/vendor/|runtime/cpu/' 'what a block is does not follow from who computes it' "${plan[@]}"
if grep -n -i -E '\b(tile|panel|register|lane|cache)s?\b' "${plan[@]}"; then
  echo "compiler/kernels/plan knows nothing of a CPU" >&2
  bad=1
fi

mapfile -t installed < <(find include -type f)
forbid 'runtime/|compiler/|tools/' 'installed headers stand alone' "${installed[@]}"

mapfile -t compiler < <(sources compiler)
forbid 'tools/|tests/' 'the compiler stands below the tools' "${compiler[@]}"
forbid 'runtime/(train|artefact|api)/' 'the compiler trains and loads nothing' \
  $(sources compiler/{ir,ops,frontend,oracle,analysis,passes,kernels,model,target,host,codegen,vendor})

mapfile -t vendor < <(sources compiler/vendor compiler/store)
forbid 'mlir/|llvm/' 'libraries and store know no compiler' "${vendor[@]}"

mapfile -t syntax < <(find compiler/frontend \( -name 'Source.*' -o -name 'Diagnostics.*' \
  -o -name 'Lexer.*' -o -name 'Parser*' -o -name 'AST*' -o -name 'Ast*' \))
forbid 'mlir/|llvm/|compiler/ir/' 'parsing and diagnostics know no MLIR' "${syntax[@]}"

mapfile -t command < <(sources tools/sheaf)
forbid 'mlir/|llvm/|compiler/(ir|ops|oracle|analysis|passes|kernels|model|host|codegen)/' \
  'the command sees no part of the compiler but driver and reports' "${command[@]}"

((bad == 0)) && echo "layers are in order"
exit "$bad"
