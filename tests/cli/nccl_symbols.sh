#!/usr/bin/env bash
# NEEDS torch
# The program needs no function of NCCL that a site's older library lacks. ncclAlltoAll, ncclGather and ncclScatter came
# with 2.28, and all others that it names are in 2.19.
set -euo pipefail
fail() { echo "FAILED: $*"; exit 1; }

names=$(nm -D --undefined-only "$(dirname "$1")/shardmark-torch" | grep -o 'nccl[A-Z][A-Za-z]*' | sort -u)
grep -qx ncclAllReduce <<<"$names" || fail "no function of NCCL was found: $names"
for name in ncclAlltoAll ncclGather ncclScatter; do
  if grep -qx "$name" <<<"$names"; then fail "$name is asked for by the loader"; fi
done
