#!/bin/bash
# Checks that no layer includes what it must not know. Prints every offending line.
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

mapfile -t runtime < <(sources runtime include)
forbid 'mlir/|mlir-c/|llvm/|llvm-c/|clang/' 'the runtime knows no compiler' "${runtime[@]}"
forbid 'compiler/|tools/|tests/' 'the runtime stands below everything else' "${runtime[@]}"

mapfile -t installed < <(find include -type f)
forbid 'runtime/|compiler/|tools/' 'installed headers stand alone' "${installed[@]}"

mapfile -t below_io < <(find runtime -maxdepth 1 -name '*.h' -o -maxdepth 1 -name '*.cpp')
forbid 'runtime/(io|artefact|api)/' 'sessions know nothing of files' "${below_io[@]}"

mapfile -t compiler < <(sources compiler)
forbid 'tools/|tests/' 'the compiler stands below the tools' "${compiler[@]}"

mapfile -t vendor < <(sources compiler/vendor)
forbid 'mlir/|llvm/|compiler/(driver|frontend|host|ir|kernels|ops|oracle|passes|store)/' \
  'libraries know no compiler' "${vendor[@]}"

mapfile -t syntax < <(find compiler/frontend \( -name 'Source.*' -o -name 'Diagnostics.*' \
  -o -name 'Lexer.*' -o -name 'Parser*' -o -name 'AST*' -o -name 'Ast*' \))
forbid 'mlir/|llvm/|compiler/(ir|passes|kernels|host|driver|oracle)/' \
  'parsing and diagnostics know no MLIR' "${syntax[@]}"

mapfile -t oracle < <(sources compiler/oracle)
forbid 'compiler/(passes|kernels|host|driver)/' \
  'the oracle shares no code with the compiled path' "${oracle[@]}"

mapfile -t command < <(sources tools/sheaf)
forbid 'mlir/|llvm/' 'the command sees the compiler through compiler/driver only' "${command[@]}"

((bad == 0)) && echo "layers are in order"
exit "$bad"
