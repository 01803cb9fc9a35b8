#!/usr/bin/env bash
# Makes an archive that runs on machines with GPUs but without network, compiler or packages. It has the program, the
# GPU tests, the suites, Open MPI and all other libraries except glibc and LibTorch. The latter comes from the torch
# package of a Python, in the same version.
#   jobs/bundle.sh [ARCHIVE]        (after make tests; default: build/shardmark-gpu-bundle.tar.xz; XZ_OPT=-0 packs faster)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() { printf 'bundle: %s\n' "$@" >&2; exit 2; }

archive=${1:-build/shardmark-gpu-bundle.tar.xz}
command -v patchelf >/dev/null || fail "patchelf is missing: jobs/bootstrap.sh --bundle installs it"
[[ -x build/shardmark-torch && -x build/gpu_tests ]] || fail "no build/shardmark-torch and build/gpu_tests: run make tests first"
plugins=$(ompi_info --parsable --path libdir | sed -n 's/^path:libdir://p')/openmpi3
[[ -d $plugins ]] || fail "no Open MPI 4 of this Debian in ${plugins%/*} (ompi_info --path libdir)"
texts=$(ompi_info --parsable --path pkgdatadir | sed -n 's/^path:pkgdatadir://p')

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
name=$(basename "$archive"); name=${name%.tar.*}
root=$work/$name
inside=$root/${plugins#/usr/}    # Open MPI looks for its plugins in the same place under OPAL_PREFIX as under /usr
mkdir -p "$root"/{bin,lib/gcc,share/shardmark,share/openmpi} "$inside"

cp build/shardmark build/shardmark-torch build/gpu_tests "$root/bin/"
cp "$(command -v orterun)" "$root/bin/mpirun"
cp "$(command -v orted)" "$root/bin/orted"
cp -r "$texts"/. "$root/share/openmpi/"
for plugin in "$plugins"/*.so; do    # NCCL moves the data of GPUs, so MPI only needs TCP and shared memory
  needs=$(ldd "$plugin")
  [[ $needs =~ not\ found|libucp|libucs|libfabric|libpsm|libibverbs|librdmacm|liboshmem ]] || cp "$plugin" "$inside/"
done

mkdir "$root/lib/pmix"    # so that Open MPI's PMIx finds its own plugins instead of those of another version
for plugin in "$(dirname "$(ldd "$plugins/mca_pmix_ext3x.so" | awk '/libpmix/ {print $3}' | xargs readlink -f)")"/pmix/*.so; do
  [[ $plugin == *munge* || $plugin == *slurm* ]] || cp "$plugin" "$root/lib/pmix/"
done

# Copies all libraries that these load, except glibc's and those of the wheels. gcc's libraries go to a folder of their
# own, which is used only on systems with older ones.
wheels=$(ldd "$root/bin/shardmark-torch" | awk '$1 == "libtorch_cpu.so" {print $3}' | xargs -r readlink -f)
wheels=${wheels%/torch/lib/*}    # .venv may be a link
[[ -d $wheels ]] || fail "build/shardmark-torch finds no LibTorch (ldd build/shardmark-torch shows what is missing): run make build first"
find "$root/bin" "$inside" "$root/lib/pmix" -type f -print0 | xargs -0 ldd 2>/dev/null | awk '$3 ~ /^\// {print $3}' | sort -u |
  while read -r library; do
    case $(basename "$library") in
      libc.so.* | libm.so.* | libdl.so.* | librt.so.* | libpthread.so.* | libutil.so.* | libresolv.so.* | libanl.so.*) ;;
      libstdc++.so.* | libgcc_s.so.*) cp -L "$library" "$root/lib/gcc/" ;;
      *) if [[ $(readlink -f "$library") != "$wheels"/* ]]; then cp -L "$library" "$root/lib/"; fi ;;
    esac
  done
# RPATH is searched before LD_LIBRARY_PATH, in which modules may have another Open MPI. RUNPATH would be searched after
# it.
find "$root" -type f \( -name '*.so*' -o -path '*/bin/*' \) -print0 | while IFS= read -r -d '' file; do
  chmod u+w "$file"
  strip --strip-unneeded "$file"
  patchelf --force-rpath --set-rpath "\$ORIGIN/$(realpath --relative-to "$(dirname "$file")" "$root/lib")" "$file"
done

cp -r suites "$root/share/shardmark/suites"
cp jobs/gpu_check.sh jobs/kernel_list.py jobs/bundle/torch.sh "$root/share/shardmark/"
cp jobs/bundle/shardmark jobs/bundle/gpu-check "$root/"
sed -n 's/^torch==//p' jobs/requirements.txt >"$root/share/shardmark/torch-version"
ldd --version | sed -n '1s/.* //p' >"$root/share/shardmark/glibc-version"
cp LICENSE "$root/"
cp jobs/bundle/README.md "$root/README.md"
tar -C "$work" --owner=0 --group=0 --sort=name -cJf "$archive.part" "$name"
size=$(stat -c %s "$archive.part")
[[ $size -le 40000000 ]] || fail "$archive.part has $((size / 1000000)) MB, and 40 MB is the most: see what it holds with tar tvf"
mv "$archive.part" "$archive"
echo "bundle: $archive ($((size / 1000000)) MB); there: tar xf, then ./gpu-check (PYTHON=... names the Python with torch)"
