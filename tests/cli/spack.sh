#!/usr/bin/env bash
# Checks jobs/spack: a repository in the format of Spack 1.0, with a recipe that has every library and option of
# CMakeLists.txt. The recipe is executed with stand-ins for Spack's functions, so Spack need not be installed, and
# nothing is installed.
set -euo pipefail
cd "$(dirname "$0")/../.."
python3 - <<'PYTHON'
import contextlib, pathlib, re, sys, types

# https://spack.readthedocs.io/en/latest/repositories.html: repositories with Spack's API v2 are in
# spack_repo/NAMESPACE.
(folder,) = pathlib.Path("jobs/spack/spack_repo").iterdir()
about = dict(line.split(": ") for line in (folder / "repo.yaml").read_text().splitlines()[1:] for line in [line.strip()])
assert about["namespace"] == folder.name and about["api"] == "v2.0", about
(recipe,) = (folder / "packages").rglob("package.py")

said = {name: [] for name in "version variant depends_on conflicts license generator".split()}
spack = types.ModuleType("spack.package")
for name, calls in said.items(): setattr(spack, name, lambda *words, calls=calls, **more: calls.append((words, more)))
spack.when = lambda condition: contextlib.nullcontext()
cmake = types.ModuleType("spack_repo.builtin.build_systems.cmake")
cmake.CMakePackage, cmake.generator = type("CMakePackage", (), {"define": lambda self, name, value: (name, value)}), spack.generator
for name in ("spack", "spack_repo", "spack_repo.builtin", "spack_repo.builtin.build_systems"): sys.modules[name] = types.ModuleType(name)
sys.modules |= {"spack.package": spack, "spack_repo.builtin.build_systems.cmake": cmake}
space = {"__file__": str(recipe)}
exec(compile(recipe.read_text(), recipe, "exec"), space)
package = space["Shardmark"]()

lists = pathlib.Path("CMakeLists.txt").read_text() + pathlib.Path("src/torch.cmake").read_text()
needs = {re.match("[a-z0-9-]+", words[0])[0] for words, _ in said["depends_on"]}
names = {"Threads": None, "HDF5": "hdf5", "nlohmann_json": "nlohmann-json", "CLI11": "cli11", "MPI": "openmpi", "Torch": "py-torch"}
for name in re.findall(r"find_package\((\w[\w-]*) REQUIRED|find_path\((HWLOC)_", lists):
    name = name[0] or name[1].lower()
    wanted = names.get(name, name)
    assert wanted is None or wanted in needs, f"the recipe lacks {wanted}, which CMake needs"
assert {"py-torch", "cuda", "nccl"} <= needs
tested = re.search(r"^torch==(\d+\.\d+)", pathlib.Path("jobs/requirements.txt").read_text(), re.M)[1]
assert any(words[0].startswith(f"py-torch@{tested}") for words, _ in said["depends_on"]), f"the recipe has another Torch than {tested}"
package.spec = types.SimpleNamespace(satisfies=lambda text: False)
for name, _ in package.cmake_args(): assert f"option({name} " in lists, f"{name} is no option of CMakeLists.txt"
assert space["Shardmark"].git == pathlib.Path.cwd().as_uri(), space["Shardmark"].git
print(f"{len(needs)} dependencies and {len(package.cmake_args())} options: all are those of CMakeLists.txt")
PYTHON
