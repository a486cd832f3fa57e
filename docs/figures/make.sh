#!/bin/bash
# Makes the figures of their sources, by graphviz (apt-get install graphviz). Each says of which
# source it was made; scripts/check_docs.sh asks for it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
for source in *.dot; do
  figure=${source%.dot}.svg
  dot -Tsvg "$source" >"$figure"
  echo "<!-- made of $source, SHA-256 $(sha256sum "$source" | cut -d' ' -f1) -->" >>"$figure"
done
