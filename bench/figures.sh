#!/bin/bash
# Prints the figures that Sheaf is held to, one `sheaf bench` line each.
#
#   bench/figures.sh TREES     TREES: binary bracket trees, such as those of the Stanford Sentiment
#                              Treebank; mini-batches are its first lines
#
# Needs build/bin/sheaf (./demo makes it) and an otherwise idle machine.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
trees=${1:?usage: bench/figures.sh TREES}
sheaf=$root/build/bin/sheaf
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

line() {
  local title=$1 model=$2
  shift 2
  printf '\n%s\n' "$title"
  "$sheaf" bench "$root/models/$model.sheaf" --data "$trees" --seed 1 --seconds 3 \
    --engine batched "$@" 2>/dev/null | grep -v '^memory'
}

# Shares of the peak are of programs all of whose records run.
all=(--without memoise-records)
line "treelstm, hidden 256, batch 64" treelstm --batch 64 --dim hidden=256 "${all[@]}"
line "treelstm, hidden 512, batch 64" treelstm --batch 64 --dim hidden=512 "${all[@]}"
line "treelstm, hidden 32, batch 64" treelstm --batch 64 --dim hidden=32 "${all[@]}"
line "mvrnn, hidden 64, batch 64" mvrnn --batch 64 --dim hidden=64 "${all[@]}"
line "mvrnn, hidden 128, batch 64" mvrnn --batch 64 --dim hidden=128 "${all[@]}"
line "treelstm, hidden 512, batch 256, one and two threads" treelstm --batch 256 \
  --dim hidden=512 --threads 1,2 "${all[@]}"
line "treelstm, hidden 256, batch 64, memoised records run once" treelstm --batch 64 \
  --dim hidden=256

printf '\nmemory, treelstm, hidden 512, batch 256\n'
"$sheaf" bench "$root/models/treelstm.sheaf" --data "$trees" --seed 1 --engine batched \
  --batch 256 --dim hidden=512 "${all[@]}" --repetitions 3 --seconds 0 2>/dev/null | grep '^memory'

head -n 64 "$trees" >"$work/trees.txt"
# first_result STORE: from typing to the first result
first_result() {
  local begin
  begin=$(date +%s%N)
  "$sheaf" run "$root/models/treelstm.sheaf" --data "$work/trees.txt" --dim hidden=256 --seed 1 \
    --store "$1" -o "$work/out.jsonl" 2>/dev/null
  printf '%d ms\n' $((($(date +%s%N) - begin) / 1000000))
}
printf '\ncold: from typing to the first result, treelstm, hidden 256, 64 trees\n'
for _ in 1 2 3; do first_result none; done
printf '\nthe second start: the same, with the code of the first in a store\n'
first_result "$work/store" >/dev/null
for _ in 1 2 3; do first_result "$work/store"; done
