#!/usr/bin/env bash
# QUICK
# The pictures in results/pictures equal, byte for byte, those that results/pictures.sh draws from the studies in this
# repository.
set -euo pipefail

cd "$(dirname "$0")/../.."
drawn=$(mktemp -d)
trap 'rm -rf "$drawn"' EXIT
results/pictures.sh "$1" "$drawn"
[[ $(ls results/pictures) == "$(ls "$drawn")" ]] ||
  { echo "FAILED: other pictures are drawn ($(ls "$drawn" | tr '\n' ' ')) than committed ($(ls results/pictures | tr '\n' ' '))"; exit 1; }
for picture in "$drawn"/*.svg; do
  cmp "$picture" "results/pictures/${picture##*/}" || { echo "FAILED: ${picture##*/} is drawn otherwise now: look at it, then make readmes"; exit 1; }
done
# GitHub shows an SVG as a picture, so it must not need other files and must not depend on the background colour of the
# page.
for picture in results/pictures/*.svg; do
  ! grep -qE "<script|<image|@import|url\((https?|file|data):" "$picture" || { echo "FAILED: $picture needs more than itself"; exit 1; }
  grep -q "<rect width='100%' height='100%' fill='#fff'/>" "$picture" || { echo "FAILED: $picture has no background"; exit 1; }
done
echo "$(ls results/pictures | wc -l) pictures are as they are drawn"
