# Sourced by the bundle's programs, with $home set to its folder: finds LibTorch in the torch of a Python (PYTHON, else
# python3, else python) and puts its folders, the bundle's mpirun and its Open MPI into the environment.

stop() { printf 'shardmark: %s\n' "$@" >&2; exit 2; }

# Prints the version of torch, the folder of libtorch and every folder of NVIDIA's libraries, one a line, without loading torch.
look_for_torch() {
  "$1" - <<'PYTHON'
import glob, importlib.util, os, re, sys
spec = importlib.util.find_spec("torch")
if spec is None or not spec.submodule_search_locations:
    sys.exit("no module named torch")
torch = list(spec.submodule_search_locations)[0]
print(re.search(r"__version__ = '([^']+)'", open(os.path.join(torch, "version.py")).read()).group(1))
print(os.path.join(torch, "lib"))
places = [os.path.dirname(torch)] + sys.path
for pattern in ("nvidia/nccl/lib/libnccl.so.2", "nvidia/cu13/lib/libcudart.so.13"):
    found = [name for place in dict.fromkeys(places) for name in glob.glob(os.path.join(place, pattern))]
    if found:
        print(os.path.dirname(found[0]))
PYTHON
}

wanted=$(cat "$home/share/shardmark/torch-version")
[[ $(uname -m) == x86_64 ]] || stop "this bundle is for x86_64, and this machine is $(uname -m)"
python=${PYTHON:-$(command -v python3 || command -v python || true)}
[[ -n $python ]] || stop "there is no python3 here, and this bundle takes LibTorch $wanted from the torch of a Python." \
  "Install it (python3 -m venv torch && torch/bin/pip install torch==$wanted), then set PYTHON=torch/bin/python3."
found=$(look_for_torch "$python" 2>&1) || stop "$python has no torch: ${found##*$'\n'}" \
  "Name a Python that has torch $wanted: PYTHON=/path/to/python3 $0 ..."
mapfile -t found <<<"$found"
[[ ${found[0]%%+*} == "$wanted" ]] || stop "the torch of $python is ${found[0]}, and this bundle was built with $wanted." \
  "Name a Python that has torch $wanted: PYTHON=/path/to/python3 $0 ..."
[[ -e ${found[1]}/libtorch_cuda.so ]] || stop "the torch of $python (${found[0]}) was built without CUDA (no libtorch_cuda.so in ${found[1]})." \
  "Install the wheel with CUDA 13: pip install torch==$wanted"
folders=("${found[@]:1}")

export LD_LIBRARY_PATH
LD_LIBRARY_PATH=$(IFS=:; echo "${folders[*]}")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export OPAL_PREFIX=$home PMIX_MCA_mca_base_component_path=$home/lib/pmix PATH=$home/bin:$PATH
export PYTHON=$python
missing=$(ldd "$home/bin/shardmark" 2>&1 | grep -E 'not found' || true)
if [[ $missing == *GLIBCXX* || $missing == *libstdc++* || $missing == *libgcc_s* ]]; then  # older than the bundle's
  LD_LIBRARY_PATH=$home/lib/gcc:$LD_LIBRARY_PATH
  missing=$(ldd "$home/bin/shardmark" 2>&1 | grep -E 'not found' || true)
fi
[[ -z $missing ]] || stop "libraries are missing or too old (glibc $(cat "$home/share/shardmark/glibc-version") or newer is needed):" "$missing"
