#!/usr/bin/env bash
# Who may include whom: a folder of src/ only itself and what stands above it; analysis/ only base, schema and laws.
# The analysis-only build includes neither LibTorch, MPI nor CUDA, and torch's own modules stay out everywhere.
set -euo pipefail
cd "$(dirname "$0")/../.."

layers=(base schema laws plan device comm models data optim strategies workloads runner cli)
status=0
complain() { printf 'FAILED: %s:\n%s\n' "$1" "$2"; status=1; }

# forbid WHAT REGEX FOLDER...: no source in these folders has an include that matches.
forbid() {
  local what=$1 regex=$2 found
  shift 2
  found=$(grep -rnE --include='*.h' --include='*.cpp' "^#include [<\"]($regex)" "$@" || true)
  if [[ -n $found ]]; then complain "$what" "$found"; fi
}

for folder in src/*/; do
  name=$(basename "$folder")
  [[ " ${layers[*]} " == *" $name "* ]] || complain "unknown layer" "$folder (add it to src/README.md and to this test)"
done
for ((i = 0; i < ${#layers[@]} - 1; ++i)); do    # the last, cli, may include everything
  below=$(IFS='|'; echo "${layers[*]:i+1}")
  forbid "${layers[i]} includes a folder below it" "($below|analysis)/" "src/${layers[i]}"
done
forbid "analysis includes more than base, schema and laws" "($(IFS='|'; echo "${layers[*]:3}"))/" analysis
forbid "LibTorch, MPI or CUDA in the analysis-only build" "torch/|ATen/|c10/|mpi.h|cuda|nccl" \
  src/base src/schema src/laws src/plan src/cli/*.cpp analysis
forbid "torch::nn, or the header of everything" "torch/(torch|nn)" src analysis tests
exit "$status"
