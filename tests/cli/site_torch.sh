#!/usr/bin/env bash
# NEEDS torch
# Uses a Torch and an Open MPI of the site in place of .venv and Debian's packages. In a mount namespace where .venv,
# Debian's Open MPI and every CUDA toolkit are hidden, CMake finds them by CMAKE_PREFIX_PATH and PATH, as modules set
# them, and says what is missing.
# usage: site_torch.sh PROGRAM [build]     build: compiles and installs the program there, too, and runs two ranks (half an hour)
set -euo pipefail
skip() { echo "skipped: $*"; exit 77; }
fail() { echo "FAILED: $*"; exit 1; }

home=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
tests=$home/build/rank_tests
python=$(echo "$home"/.venv/lib/python3*/site-packages)
[[ $(id -u) == 0 ]] || skip "files are hidden by root only"
unshare --mount true 2>/dev/null || skip "this machine lets nobody make mounts"
[[ -e $python/torch/lib/libtorch_cuda.so && -d $python/nvidia ]] || skip "no torch in .venv, which is to be the site's"
plugins=$(ompi_info --parsable --path libdir 2>/dev/null | sed -n 's/^path:libdir://p')
[[ $plugins == /usr/lib/*/openmpi/lib ]] || skip "no Open MPI of Debian, which is to be the site's"
# The mounts are in a mount namespace and read-only, and they disappear with it. The folder is removed by a process
# outside of the namespace.
if [[ -z ${SITE_FOLDER:-} ]]; then
  dir=$(realpath "$(mktemp -d)")
  trap 'rm -rf "$dir"' EXIT
  status=0
  SITE_FOLDER=$dir unshare --mount --propagation private "${BASH_SOURCE[0]}" "$@" || status=$?
  exit $status
fi
dir=$SITE_FOLDER
shows() { mount --bind "$1" "$2" && mount -o remount,bind,ro "$2"; }

# The site has a Python with a torch and the CUDA packages of pip, the same torch with CUDA and NCCL in separate
# prefixes, one without CUDA, and Open MPI. Bind mounts avoid copies of 4 GB.
mkdir -p "$dir"/python/site-packages/{torch,nvidia} "$dir/alone/torch" "$dir"/{cuda,nccl}/lib "$dir/cpu/torch/lib"
shows "$python/torch" "$dir/python/site-packages/torch"
shows "$python/torch" "$dir/alone/torch"
shows "$python/nvidia" "$dir/python/site-packages/nvidia"
nvidia=$dir/python/site-packages/nvidia
for part in cuda:cu13 nccl:nccl; do
  ln -s "$nvidia/${part#*:}/include" "$dir/${part%:*}/include"
  for library in "$nvidia/${part#*:}"/lib/*.so.*; do ln -s "$library" "$dir/${part%:*}/lib/$(basename "${library%.so.*}").so"; done
done
cp -r "$python/torch/share" "$dir/cpu/torch/share"
debian=${plugins%/openmpi/lib}
mpi=$dir/openmpi
mkdir -p "$mpi/bin" "$mpi${debian#/usr}"
cp -a "$debian/openmpi" "$debian"/lib{mpi,open-rte,open-pal,mca_common_}*.so.* "$mpi${debian#/usr}/"
cp -r /usr/share/openmpi "$mpi/" && mkdir "$mpi/share" && mv "$mpi/openmpi" "$mpi/share/"
cp /usr/bin/{opal_wrapper,orterun,orted} "$mpi/bin/"
ln -s opal_wrapper "$mpi/bin/mpicc" && ln -s orterun "$mpi/bin/mpirun" && ln -s orterun "$mpi/bin/mpiexec"

# Hides what must not be used unnoticed.
mount -t tmpfs none "$home/.venv"
mount -t tmpfs none "$debian/openmpi"
for folder in /usr/local/cuda*; do [[ ! -d $folder || -L $folder ]] || mount -t tmpfs none "$folder"; done
for file in "$debian"/libmpi.so.40 /usr/bin/{opal_wrapper,orterun,orted}; do mount --bind /dev/null "$(realpath "$file")"; done
unset CUDA_HOME CUDA_PATH CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH
export OPAL_PREFIX=$mpi PATH=$mpi/bin:$PATH LD_LIBRARY_PATH=$mpi${debian#/usr}

# configures PREFIXES: configures $dir/build from scratch.
configures() {
  rm -rf "$dir/build"
  CMAKE_PREFIX_PATH=$1 cmake -S "$home" -B "$dir/build" -G Ninja -DSHARDMARK_TESTS=OFF >"$dir/said" 2>&1
}
refused() {
  ! configures "$1" || fail "configured with '$1'"
  [[ $(tr -s ' \n' ' ' <"$dir/said") == *"$2"* ]] || fail "'$2' is not in: $(cat "$dir/said")"
}
refused "" "no Torch in CMAKE_PREFIX_PATH and none in $home/.venv"
refused "$dir/cpu/torch" "the Torch in $dir/cpu/torch was built without CUDA"
refused "$dir/alone/torch" "cuda_runtime_api.h and its library cudart are neither beside $dir/alone/torch nor in CMAKE_PREFIX_PATH"
refused "$dir/alone/torch:$dir/cuda" "nccl.h and its library nccl are neither"

# of_the_site PREFIX...: the headers and libraries of Torch, CUDA, NCCL and MPI are below these prefixes.
of_the_site() {
  local name value
  while IFS== read -r name value; do
    [[ $value == "$dir"/* ]] || fail "${name%:*} is $value, which is not the site's"
  done < <(grep -E '^(SHARDMARK_(TORCH_CMAKE|CUDART_INCLUDE|CUDART_LIBRARY|NCCL_INCLUDE|NCCL_LIBRARY)|MPI_mpi_LIBRARY):' "$dir/build/CMakeCache.txt")
  ! grep -qE "/usr/local/cuda|$home/\.venv|$debian/openmpi" "$dir/build/build.ninja" ||
    fail "the build reads what is not the site's: $(grep -oE "[^ ]*(/usr/local/cuda|$home/\.venv|$debian/openmpi)[^ ]*" "$dir/build/build.ninja" | sort -u)"
}
configures "$dir/alone/torch:$dir/cuda:$dir/nccl" || fail "not configured: $(cat "$dir/said")"
of_the_site
configures "$dir/python/site-packages/torch/share/cmake" || fail "not configured: $(cat "$dir/said")"    # this is torch.utils.cmake_prefix_path
of_the_site
! grep -q 'shardmark is tested with' "$dir/said" || fail "another version of Torch: $(cat "$dir/said")"

# A program with the run path of this build compiles fused kernels with the NVRTC of the site's CUDA, which is next to
# Torch or in a prefix that Torch's own libraries do not name. The cache of the loader is hidden, because it has the
# toolkits of this machine.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
if [[ -x $tests ]] && command -v patchelf >/dev/null; then
  mount --bind /dev/null /etc/ld.so.cache
  path=$(grep -oE "rpath,[^ ]*$dir/python/site-packages/torch/lib[^ ]*" "$dir/build/build.ninja" | sed -n 1p)
  path=${path#rpath,}
  cp "$tests" "$dir/rank_tests"
  toolkit=$dir/toolkit/lib64 && mkdir -p "$toolkit" && ln -s "$nvidia/cu13/lib/libnvrtc.so.13" "$toolkit/"
  beside=$nvidia/cu13/lib
  [[ $path == *"$beside"* ]] || fail "no run path of the build names $beside: $path"
  for folder in "$beside" "$toolkit"; do
    patchelf --set-rpath "${path//"$beside"/"$folder"}:$beside" "$dir/rank_tests"
    "$dir/rank_tests" --gtest_filter=FusedKernels.AreCompiledByNvrtc >"$dir/said" 2>&1 ||
      fail "NVRTC of $folder does not compile: $(cat "$dir/said")"
    grep -q '1 test from' "$dir/said" || fail "no such test: $(cat "$dir/said")"
  done
  echo "fused kernels are compiled with the site's CUDA: ok"
else
  echo "left out: fused kernels with the site's CUDA, which need build/rank_tests and patchelf (jobs/bootstrap.sh --bundle)"
fi
[[ ${2:-} == build ]] || { echo "configured with the site's Torch and Open MPI; not built (usage: see above)"; exit 0; }

ninja -C "$dir/build" shardmark
cmake --install "$dir/build" --prefix "$dir/installed" >/dev/null
PATH=$dir/installed/bin:$PATH
shardmark --version
ldd "$dir/installed/bin/shardmark-torch" | grep -E 'libmpi|torch|nccl|cudart' | tee "$dir/libraries"
! grep -vF "$dir/" "$dir/libraries" || fail "the program loads libraries that are not the site's (above)"
cat >"$dir/tiny.yaml" <<'Y'
name: tiny
ranks: [2]
sampling: {warmup_steps: 1, min_steps: 5, max_steps: 5}
training: {model: {mlp: {features: 8, width: 16, layers: 2}}, strategy: [ddp, fsdp], batch_size: 4}
Y
mpirun --oversubscribe -n 2 shardmark run "$dir/tiny.yaml" -o "$dir/tiny.h5" --device cpu
shardmark report "$dir/tiny.h5" | tee "$dir/report"
grep -q '2 points: 2 ok' "$dir/report" || fail "not both points are ok"
