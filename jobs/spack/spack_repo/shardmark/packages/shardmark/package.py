"""The recipe of Spack (1.0 or newer) for the clone of the repository that it lies in; jobs/README.md says how to use it."""

from pathlib import Path

from spack_repo.builtin.build_systems.cmake import CMakePackage, generator

from spack.package import *


class Shardmark(CMakePackage):
    """How fast a cluster trains: training strategies proven equal and timed, collectives, and reports on them."""

    git = Path(__file__).resolve().parents[6].as_uri()
    license("MIT")

    version("main", branch="main")

    variant("ranks", default=True, description="commands that run on ranks; without: plan, launch, report, predict ...")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("git", type="build")
    depends_on("fmt@9:")
    depends_on("hdf5@1.10:~mpi")  # with MPI its headers include mpi.h, which folders without MPI do not find
    depends_on("yaml-cpp@0.7:")
    depends_on("nlohmann-json@3.11:")
    depends_on("cli11@2.3:")

    with when("+ranks"):
        depends_on("openmpi@4.1:")  # `launch` uses the flags of Open MPI's mpirun
        depends_on("hwloc@2:")
        depends_on("xxhash@0.8:")
        depends_on("py-torch@2.11+cuda", type=("build", "link", "run"))
        depends_on("cuda@12:")
        depends_on("nccl")

    conflicts("%gcc@:11", msg="C++20 as of GCC 12")
    generator("ninja")

    def cmake_args(self):
        return [
            self.define("SHARDMARK_ANALYSIS_ONLY", self.spec.satisfies("~ranks")),
            self.define("SHARDMARK_TESTS", False),
            self.define("SHARDMARK_WERROR", False),  # other compilers have other warnings
        ]
