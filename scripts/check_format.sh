#!/bin/bash
# Checks that every source file is formatted, and that the guard of a header is its path; with --fix,
# makes it so.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mapfile -t files < <(find compiler runtime python tools tests include examples \
  -name '*.h' -o -name '*.hpp' -o -name '*.c' -o -name '*.cpp' 2>/dev/null)
bad=0
for file in "${files[@]}"; do
  # dlpack.h is others'.
  [[ $file == *.h || $file == *.hpp ]] && [[ $file != include/sheaf/dlpack.h && $file != examples/* ]] || continue
  path=sheaf/${file#include/}
  guard=${path/#sheaf\/sheaf\//sheaf/}
  guard=${guard//[^a-zA-Z0-9]/_}
  guard=${guard^^}
  there=$(sed -n 's/^#ifndef //p;T;q' "$file")
  [[ $there != "$guard" ]] || continue
  if [[ ${1:-} == --fix && $there ]]; then
    sed -i -E "s/\b$there\b/$guard/" "$file"
  else
    echo "$file: its guard is '$there', not $guard" >&2
    bad=1
  fi
done
if [[ ${1:-} == --fix ]]; then
  clang-format-22 -i "${files[@]}"
else
  clang-format-22 --dry-run -Werror "${files[@]}"
  ((bad == 0)) && echo "${#files[@]} files are formatted"
fi
exit "$bad"
