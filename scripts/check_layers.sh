#!/bin/bash
# check_layers.sh [ROOT]: checks that no room of a source tree (this one) includes what it must not
# know. Prints every offending line. tests/layers plants lines of each kind.
set -euo pipefail
cd "${1:-$(dirname "${BASH_SOURCE[0]}")/..}"

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

# What each room may include beside itself; a name without a slash is a room beside it. A room that
# is not in the list is an error, and so are rooms that may include each other.
rooms='runtime/model:
runtime/measure:
runtime/memory: model measure
runtime/schedule: model memory
runtime/walk: model measure memory schedule
runtime/device: model measure memory schedule
runtime/cpu: model measure memory schedule device
runtime/null: model measure memory schedule device
runtime/devices: device cpu null
runtime/backward: model memory schedule device
runtime/session: model measure memory schedule walk device devices backward
runtime/train: model device backward session
runtime/io: model
runtime/fit: model session train io
runtime/artefact: model io cpu session
runtime/compile: model io artefact
runtime/api: model io artefact session train fit compile
compiler/ir:
compiler/ops: ir
compiler/frontend: ir ops
compiler/reduce: frontend
compiler/oracle: ir ops
compiler/analysis: ir ops
compiler/passes: ir ops analysis
compiler/vendor:
compiler/target:
compiler/codegen: target
compiler/kernels/plan: ir ops
compiler/kernels: ir ops codegen compiler/kernels/plan
compiler/kernels/cpu: ir ops vendor target codegen kernels compiler/kernels/plan
compiler/backends: kernels compiler/kernels/cpu
compiler/model: ir ops analysis kernels compiler/kernels/plan
compiler/host: ir ops analysis kernels compiler/kernels/plan model
compiler/store:
compiler/driver: ir ops analysis passes kernels compiler/kernels/plan backends model target host codegen frontend store
compiler/api: driver frontend store target report
compiler/measure: driver
compiler/report: driver measure
compiler/verify: driver oracle report
compiler/bench: driver kernels measure oracle report verify
compiler/kernelbench: driver measure report target vendor
'
# What the compiler's rooms and the command may include beside that.
below='
  compiler/ir: runtime/model
  compiler/ops: runtime/model runtime/memory
  compiler/frontend: runtime/model
  compiler/oracle: runtime/model runtime/walk runtime/session
  compiler/analysis: runtime/model
  compiler/passes: runtime/model
  compiler/vendor: runtime/model
  compiler/kernels: runtime/model
  compiler/kernels/cpu: runtime/model runtime/cpu
  compiler/kernels/plan: runtime/model
  compiler/backends: runtime/model
  compiler/target: runtime/model runtime/cpu
  compiler/model: runtime/model
  compiler/host: runtime/model
  compiler/codegen: runtime/model runtime/cpu
  compiler/store: runtime/io
  compiler/driver: runtime/model runtime/cpu runtime/io
  compiler/api: runtime/model runtime/io runtime/cpu runtime/artefact runtime/session runtime/compile
  compiler/measure: runtime/model runtime/measure runtime/cpu runtime/session
  compiler/report: runtime/model runtime/schedule runtime/cpu runtime/session runtime/train
  compiler/verify: runtime/model runtime/session runtime/train
  compiler/bench: runtime/model runtime/measure runtime/session runtime/train
  compiler/kernelbench: runtime/model runtime/memory runtime/cpu runtime/session
  python/native: runtime/model runtime/io runtime/artefact runtime/session runtime/api
  tools/sheaf: compiler/driver compiler/reduce compiler/target compiler/store compiler/measure compiler/report compiler/verify compiler/bench compiler/kernelbench runtime/model runtime/memory runtime/schedule runtime/cpu runtime/devices runtime/session runtime/train runtime/io runtime/fit runtime/artefact
'
house() { # ROOM: its line with whole names
  local name
  for name in $(sed -n "s#^ *$1:##p" <<<"$rooms$below"); do
    [[ $name == */* ]] || name=${1%%/*}/$name
    echo "$name"
  done
}
order=$(for room in $(sed -n 's/^ *//; s/:.*//p' <<<"$rooms$below" | sort -u); do
  house "$room" | sed "s#^#$room #"
done)
if ! loop=$(tsort <<<"$order" 2>&1 >/dev/null); then
  printf 'rooms include each other:\n%s\n' "$loop" >&2
  bad=1
fi
# Rooms inside of rooms: who may include the outer one may not so include them.
inner=$(for room in compiler/kernels/*/; do echo "${room%/}"; done)
for room in runtime/*/ compiler/*/ $inner python/native/ tools/sheaf/; do
  room=${room%/}
  if ! grep -q "^ *$room:" <<<"$rooms$below"; then
    echo "$room is not in the list of scripts/check_layers.sh" >&2
    bad=1
    continue
  fi
  mapfile -t files < <(sources "$room")
  [[ $inner != *"$room/"* ]] || mapfile -t files < <(printf '%s\n' "${files[@]}" | grep -v "^$room/.*/")
  known=$(printf '%s|' "$room" $(house "$room"))
  mapfile -t found < <(grep -n -H -E '^ *# *include *"(runtime|compiler|python|tools|tests)/' "${files[@]}" /dev/null |
    grep -v -E "include *\"(${known%|})/" || true)
  for hidden in $inner; do # an inner room that only its outer one is named of
    [[ $known == *"${hidden%/*}|"* && "|$known" != *"|$hidden|"* ]] || continue
    mapfile -t -O "${#found[@]}" found < <(grep -n -H -E "^ *# *include *\"$hidden/" "${files[@]}" /dev/null |
      grep -v "^$hidden/" || true)
  done
  if ((${#found[@]})); then
    echo "$room may include only: $(house "$room" | tr '\n' ' ')" >&2
    printf '%s\n' "${found[@]}" >&2
    bad=1
  fi
done
mapfile -t loose < <(find runtime compiler -maxdepth 1 \( -name '*.h' -o -name '*.cpp' \))
if ((${#loose[@]})); then
  printf 'belongs in a room: %s\n' "${loose[@]}" >&2
  bad=1
fi

mapfile -t all < <(sources runtime include compiler python tools tests)
forbid '\.\.?/' 'a file is named from the root, so that its room shows' "${all[@]}"

mapfile -t runtime < <(sources runtime include python)
forbid 'mlir/|mlir-c/|llvm/|llvm-c/|clang/' 'the runtime knows no compiler' "${runtime[@]}"

mapfile -t plan < <(sources compiler/kernels/plan)
forbid 'compiler/vendor/|runtime/cpu/' 'what a block is does not follow from who computes it' "${plan[@]}"
mapfile -t general < <(sources runtime/model)
if grep -n -E '\b([Pp]anel|[Ll]ane|[Tt]ile)s?\b' "${general[@]}"; then
  echo "runtime/model knows nothing of how a machine computes" >&2
  bad=1
fi
if grep -n -i -E '\b(tile|panel|register|lane|cache)s?\b' "${plan[@]}"; then
  echo "compiler/kernels/plan knows nothing of a CPU" >&2
  bad=1
fi

mapfile -t records < <(sources compiler/passes compiler/analysis compiler/oracle compiler/host compiler/model)
if grep -n -H -E '(applyOne|ops::apply|reduceAxis)\(\w+, *"|ApplyOp::create\([^"]*"|getOp\(\) *[!=]= *"|ops::(find|get|record)[A-Za-z]*\("|[nN]ame(\(\))? *[!=]= *"[a-z]' \
  "${records[@]}"; then
  echo "a pass or an interpreter names an operator: ask its record, make it by compiler/ops/Make.h" >&2
  bad=1
fi

mapfile -t installed < <(find include -type f)
forbid 'runtime/|compiler/|python/|tools/|tests/' 'installed headers stand alone' "${installed[@]}"

mapfile -t vendor < <(sources compiler/vendor compiler/store)
forbid 'mlir/|llvm/' 'libraries and store know no compiler' "${vendor[@]}"

mapfile -t syntax < <(find compiler/frontend \( -name 'Source.*' -o -name 'Diagnostics.*' \
  -o -name 'Lexer.*' -o -name 'Parser*' -o -name 'AST*' -o -name 'Ast*' \))
forbid 'mlir/|llvm/|compiler/ir/' 'parsing and diagnostics know no MLIR' "${syntax[@]}"

mapfile -t command < <(sources tools/sheaf)
forbid 'mlir/|llvm/' 'the command knows no MLIR' "${command[@]}"

((bad == 0)) && echo "layers are in order"
exit "$bad"
