#!/bin/bash
# Checks that every source file is formatted; with --fix, formats them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mapfile -t files < <(find compiler runtime python tools tests include examples \
  -name '*.h' -o -name '*.hpp' -o -name '*.c' -o -name '*.cpp' 2>/dev/null)
if [[ ${1:-} == --fix ]]; then
  clang-format-22 -i "${files[@]}"
else
  clang-format-22 --dry-run -Werror "${files[@]}"
  echo "${#files[@]} files are formatted"
fi
