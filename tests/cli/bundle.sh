#!/usr/bin/env bash
# NEEDS torch
# Unpacks the archive of jobs/bundle.sh and runs it. It uses the torch of a Python and no library of the system except
# those of glibc and gcc, contains no path of this machine, and says in one line what is missing.
# tests/install/bundle_bare_root.sh is the long form of this test.
set -euo pipefail
program=$(realpath "${1:?usage: $(basename "$0") path/to/shardmark}")
repository=$(cd "$(dirname "$0")/../.." && pwd)
skip() { echo "skipped: $*"; exit 77; }
fail() { echo "FAILED: $*"; exit 1; }
source "$(dirname "$0")/without_cuda.bash"
command -v patchelf >/dev/null || skip "patchelf is missing: jobs/bootstrap.sh --bundle installs it"
[[ -x $repository/.venv/bin/python ]] || skip "no .venv: the torch that the bundle takes is there"
[[ $(dirname "$program") == "$repository/build" && -x $repository/build/gpu_tests ]] || skip "the bundle is made of build/ alone"

dir=$(realpath "$(mktemp -d)")
trap 'rm -rf "$dir"' EXIT
XZ_OPT=-0 "$repository/jobs/bundle.sh" "$dir/small bundle.tar.xz" >"$dir/out" 2>&1 || fail "jobs/bundle.sh: $(cat "$dir/out")"
[[ $(stat -c %s "$dir/small bundle.tar.xz") -le 40000000 ]] || fail "larger than 40 MB: $(ls -l "$dir")"
mkdir "$dir/on a node" "$dir/work"
tar -C "$dir/on a node" -xf "$dir/small bundle.tar.xz"
bundle="$dir/on a node/small bundle"
[[ -x $bundle/shardmark && -x $bundle/gpu-check ]] || fail "not in the bundle: $(ls "$bundle")"
cd "$dir/work"

# bare [NAME=VALUE...] COMMAND...: runs the command in an environment with only these variables. Sets `said` and
# `status`.
python=$repository/.venv/bin/python
said='' status=0
bare() { status=0; said=$(env -i HOME="$dir/work" PATH=/usr/bin:/bin PYTHON="$python" "$@" 2>&1) || status=$?; }
has() { local text; for text in "$@"; do [[ $said == *"$text"* ]] || fail "'$text' is not in: $said"; done; }
ends() { [[ $status == "$1" ]] || fail "exit status $status instead of $1: $said"; }
# refuses TEXT: the status is 2, and the output is one line that contains the text.
refuses() { ends 2; has "$1"; [[ $(wc -l <<<"$said") == 1 ]] || fail "not one line: $said"; echo "refuses: $1"; }

# --- what it runs -----------------------------------------------------------------------------------------------------
bare "$bundle/shardmark" list; ends 0; has "gpu-single" "$bundle/share/shardmark/suites" "fsdp"
bare "$bundle/shardmark" plan quick -n 2; ends 0; has "ddp"
cat >tiny.yaml <<'Y'
name: tiny
ranks: [1, 2]
sampling: {warmup_steps: 1, min_steps: 3, max_steps: 3}
training: {model: {mlp: {features: 8, width: 16, layers: 2}}, strategy: ddp, batch_size: 4}
Y
bare "$bundle/shardmark" launch tiny.yaml -n 2 -- --device cpu; ends 0; has "2 points measured"
[[ $said != *PMIx* && $said != *pmix* ]] || fail "PMIx complains: $said"
bare "$bundle/shardmark" report results/tiny.h5; ends 0; has ddp
echo "runs a suite on two ranks: ok"

as_root=()
if [[ $(id -u) == 0 ]]; then as_root=(OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1); fi
cat >inside <<'S'
home=$1; shift
source "$home/share/shardmark/torch.sh"
"$@"
S
if [[ ! -e /dev/nvidiactl ]]; then    # with GPUs, no test would be skipped
  bare "${as_root[@]}" bash inside "$bundle" mpirun -n 1 "$bundle/bin/gpu_tests"; ends 0; has SKIPPED
  [[ $said != *"[  PASSED  ] 0"* || $said != *FAILED* ]] || fail "tests on a GPU that is not there: $said"
  bare "$bundle/gpu-check"; refuses "no GPU here"
fi
if can_hide_cuda; then
  bare_without_cuda() { without_cuda env -i HOME="$dir/work" PATH=/usr/bin:/bin PYTHON="$python" "${as_root[@]}" "$@"; }
  said=$(bare_without_cuda bash inside "$bundle" mpirun -n 1 "$bundle/bin/gpu_tests" --gtest_filter=FusedKernels.AreCompiledByNvrtc 2>&1) ||
    fail "fused kernels are not compiled: $said"
  has "1 test from"
  echo "compiles fused kernels without a CUDA toolkit: ok"
fi

# --- whose libraries --------------------------------------------------------------------------------------------------
# The same holds if a module has put other libraries with the same names first.
mkdir modules
for library in libmpi.so.40 libpmix.so.2 libhdf5_serial.so.103; do echo >"modules/$library"; done
cat >libraries <<'S'
find "$1/bin" "$1/lib" -type f | while IFS= read -r file; do ldd "$file" 2>&1; done
S
bare LD_LIBRARY_PATH="$dir/work/modules" bash inside "$bundle" bash libraries "$bundle"; ends 0
[[ $said != *"modules/"* && $said != *"not found"* ]] || fail "libraries of others, or missing: $(grep -E 'modules/|not found' <<<"$said")"
others=$(sed -nE 's|^.* => (/.*) \(0x.*|\1|p' <<<"$said" | sort -u | while IFS= read -r library; do
  [[ $library == "$bundle"/* || $library == */site-packages/* ||
    $library =~ /lib(c|m|dl|rt|pthread|util|resolv|anl|stdc\+\+|gcc_s)\.so\.[0-9]+$ ]] || echo "$library"
done)
[[ -z $others ]] || fail "taken from the system: $others"
find "$bundle/bin" "$bundle/lib" -type f -print0 | while IFS= read -r -d '' file; do
  path=$(patchelf --print-rpath "$file")
  # shellcheck disable=SC2016  # $ORIGIN is the loader's
  [[ $path == '$ORIGIN'/* && $path != *:* ]] || fail "the RPATH of $file is '$path'"
done
echo "libraries: ok"

# If the system has another version of PMIx, its plugins are not even read.
theirs=$(dirname "$(readlink -f /usr/lib/x86_64-linux-gnu/libpmix.so.2)")/pmix
if unshare --mount true 2>/dev/null && [[ -d $theirs ]]; then
  mkdir plugins
  for plugin in "$theirs"/*.so; do echo >"plugins/$(basename "$plugin")"; done
  cat >another_pmix <<'S'
mount --bind plugins "$1"; shift
exec "$@"
S
  bare "${as_root[@]}" unshare --mount --propagation private bash another_pmix "$theirs" bash inside "$bundle" mpirun --oversubscribe -n 2 true
  ends 0
  [[ -z $said ]] || fail "beside another PMIx mpirun says: $said"
  echo "beside another PMIx: ok"
fi

# --- no path of this machine ------------------------------------------------------------------------------------------
# The programs in bin/ are exempt, because the compiler stores names of source files in them.
for place in "$repository" "$(realpath "$repository/.venv")"; do
  found=$(grep -rlaF -- "$place" "$bundle" | grep -vxF -e "$bundle/bin/shardmark" -e "$bundle/bin/shardmark-torch" -e "$bundle/bin/gpu_tests" || true)
  [[ -z $found ]] || fail "'$place' is in $found"
done
echo "no path of this machine: ok"

# --- what is missing --------------------------------------------------------------------------------------------------
bare PYTHON="$dir/nowhere/python3" "$bundle/shardmark" list; refuses "there is no $dir/nowhere/python3 here"
mkdir commands
for name in bash cat dirname env grep ldd readlink sed sort paste uname; do ln -s "$(command -v "$name")" commands/; done
bare PYTHON= PATH="$dir/work/commands" "$bundle/shardmark" list; refuses "there is no python3 here"
system_python=$(command -v /usr/bin/python3 || true)
if [[ -n $system_python ]]; then
  printf '#!/bin/sh\nexec %s -I -S "$@"\n' "$system_python" >without; chmod +x without
  mkdir torch    # a folder with that name is not the package
  bare PYTHON=./without "$bundle/shardmark" list; refuses "has no torch (no module named torch)"
  mkdir -p fake/torch/lib
  echo >fake/torch/__init__.py
  # another VERSION TEXT: with a torch of this version, the program refuses and prints the text.
  another() { echo "__version__ = '$1'" >fake/torch/version.py; bare PYTHON="$system_python" PYTHONPATH="$dir/work/fake" "$bundle/shardmark" list; refuses "$2"; }
  wanted=$(cat "$bundle/share/shardmark/torch-version")
  another 2.3.1 "is 2.3.1, and this bundle was built with $wanted"
  another "$wanted+cpu" "was built without CUDA"
  echo >fake/torch/lib/libtorch_cuda.so
  another "$wanted+cu128" "of another CUDA than 13"
  another "$wanted+cu130" "libraries are missing or too old"
  bare PYTHON="$system_python" PYTHONPATH="$dir/work/fake" "$bundle/gpu-check"; refuses "libraries are missing or too old"
fi
