#!/usr/bin/env bash
# Draws the pictures of the READMEs from the studies in results/reference, by shardmark report --plots. `make readmes` calls
# it, and tests/cli/pictures.sh compares what it draws with what is committed.
#   results/pictures.sh build/shardmark [FOLDER]     FOLDER: results/pictures if it is not given
set -euo pipefail

program=$(realpath "${1:?usage: results/pictures.sh path/to/shardmark [FOLDER]}")
home=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
folder=${2:-$home/results/pictures}
plots=$(mktemp -d)
trap 'rm -rf "$plots"' EXIT

# Without rsvg-convert in PATH, report draws the SVG files alone, and says so.
PATH=$plots "$program" report "$home/results/reference/h100-gpu-strategies.h5" --plots "$plots" >/dev/null 2>"$plots/messages" ||
  { cat "$plots/messages" >&2; exit 1; }
mkdir -p "$folder"
# The first setting of the suite is GPT-2 in bf16 under every strategy.
for picture in samples:steps memory:memory phases:phases speed_and_memory:speed-and-memory; do
  cp "$plots/${picture%:*}_1.svg" "$folder/h100-${picture#*:}.svg"
done
