# Sourced by the programs of the bundle, with $home set to its folder. Finds LibTorch in the torch package of a Python
# (PYTHON, else python3, else python), and adds its folders, and the mpirun and Open MPI of the bundle, to the
# environment.

# shellcheck shell=bash disable=SC2154  # $home
stop() { printf 'shardmark: %s\n' "$*" >&2; exit 2; }

# Prints the version of torch, the folder of libtorch and all folders of NVIDIA's libraries, one per line, without
# loading torch.
look_for_torch() {
  "$1" - <<'PYTHON'
import sys
sys.path = [place for place in sys.path if place]    # not the working directory, which may have another "torch"
import glob, importlib.util, os, re
spec = importlib.util.find_spec("torch")
if spec is None or not spec.origin:
    sys.exit("no module named torch")
torch = os.path.abspath(list(spec.submodule_search_locations)[0])
print(re.search(r"__version__ = ['\"]([^'\"]+)", open(os.path.join(torch, "version.py")).read()).group(1))
print(os.path.join(torch, "lib"))
places = [os.path.dirname(torch)] + sys.path
for pattern in ("nvidia/nccl/lib/libnccl.so.2", "nvidia/cu13/lib/libcudart.so.13"):
    found = [name for place in dict.fromkeys(places) for name in glob.glob(os.path.join(glob.escape(place), pattern))]
    if found:
        print(os.path.dirname(found[0]))
PYTHON
}

wanted=$(cat "$home/share/shardmark/torch-version")
[[ $(uname -m) == x86_64 ]] || stop "this bundle is for x86_64, and this machine is $(uname -m)"
hint="name a Python that has torch $wanted with CUDA 13: PYTHON=/path/to/python3 $0 ..."
python=$(command -v "${PYTHON:-python3}" || { [[ -z ${PYTHON:-} ]] && command -v python; } || true)
[[ -n $python ]] || stop "there is no ${PYTHON:-python3} here, and this bundle takes LibTorch from the torch of a Python; $hint"
[[ $python == /* ]] || python=$PWD/$python    # programs may start in other folders
found=$(look_for_torch "$python" 2>&1) || stop "$python has no torch (${found##*$'\n'}); $hint"
mapfile -t found <<<"$found"
[[ ${found[0]%%+*} == "$wanted" ]] || stop "the torch of $python is ${found[0]}, and this bundle was built with $wanted; $hint"
[[ -e ${found[1]}/libtorch_cuda.so ]] || stop "the torch of $python (${found[0]}) was built without CUDA; $hint"
[[ ${found[0]} != *+cu* || ${found[0]} == *+cu13* ]] || stop "the torch of $python is ${found[0]}, of another CUDA than 13; $hint"
folders=("${found[@]:1}")

export LD_LIBRARY_PATH
LD_LIBRARY_PATH=$(IFS=:; echo "${folders[*]}")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export OPAL_PREFIX=$home PATH=$home/bin:$PATH PYTHON=$python
# PMIx reads its plugins from both of these folders. The system's own plugins may be of another version.
export PMIX_PKGLIBDIR=$home/lib/pmix PMIX_MCA_mca_base_component_path=$home/lib/pmix
# One node needs no ssh, but Open MPI stops if there is neither ssh nor rsh.
if ! command -v ssh >/dev/null && ! command -v rsh >/dev/null; then export OMPI_MCA_plm_rsh_agent=/bin/false; fi
# Prints the libraries that the loader does not find or cannot read (truncated, or for another machine).
not_loaded() { { ldd "$home/bin/shardmark-torch" 2>&1 || echo "unusable libraries: not found"; } | grep -E 'not found|error while loading' || true; }
missing=$(not_loaded)
if [[ $missing == *GLIBCXX* || $missing == *libstdc++* || $missing == *libgcc_s* ]]; then  # the system's are older than the bundle's
  LD_LIBRARY_PATH=$home/lib/gcc:$LD_LIBRARY_PATH
  missing=$(not_loaded)
fi
[[ -z $missing ]] || stop "libraries are missing or too old (glibc $(cat "$home/share/shardmark/glibc-version") or newer is needed):" \
  "$(sed -E 's/^[[:space:]]+//; s/ \(required by .*//; s/^.*error while loading shared libraries: //' <<<"$missing" | sort -u | paste -sd , | sed 's/,/, /g')"
