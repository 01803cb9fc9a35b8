#!/usr/bin/env bash
# NEEDS torch
# Compiles the kernels of src/kernels on a machine without a CUDA toolkit. NVRTC and its second library are found in
# LibTorch's packages, from the build folder and from an installed program. cli/bundle.sh and cli/site_torch.sh check
# the same in a bundle and with a site's own Torch.
set -euo pipefail
program=$(realpath "${1:?usage: $(basename "$0") path/to/shardmark}")
build=$(dirname "$program")
skip() { echo "skipped: $*"; exit 77; }
fail() { echo "FAILED: $*"; exit 1; }
source "$(dirname "$0")/without_cuda.bash"
can_hide_cuda || skip "files are hidden by root only, where it may make mounts"

dir=$(realpath "$(mktemp -d)")
trap 'rm -rf "$dir"' EXIT
# compiles PROGRAM FORM: compiles a kernel with PROGRAM, which is rank_tests.
compiles() {
  without_cuda "$1" --gtest_filter='FusedKernels.AreCompiledByNvrtc' >"$dir/said" 2>&1 || fail "$2: $(cat "$dir/said")"
  grep -q '1 test from' "$dir/said" || fail "$2: no such test: $(cat "$dir/said")"
  echo "$2: ok"
}
compiles "$build/rank_tests" "from the build folder"

command -v patchelf >/dev/null || { echo "left out: an installed program (jobs/bootstrap.sh --bundle installs patchelf)"; exit 0; }
cmake --install "$build" --prefix "$dir/installed" >/dev/null
cp "$build/rank_tests" "$dir/"
patchelf --set-rpath "$(patchelf --print-rpath "$dir/installed/bin/shardmark-torch")" "$dir/rank_tests"
compiles "$dir/rank_tests" "with the run path of an installed program"
