// Asks each library for its version. The version that was compiled against comes from the header.
#include "doctor/machine/versions.h"

#include <ATen/detail/CUDAHooksInterface.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <nccl.h>
#include <sys/utsname.h>
#include <torch/csrc/api/include/torch/version.h>

#include "comm/host_group.h"
#include "schema/hdf5.h"

namespace shardmark::machine {
namespace {

std::string nccl_text(int code) {
  return fmt::format("{}.{}.{}", code / 10000, code / 100 % 100, code % 100);
}

std::string mpi_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_CHECK(MPI_Get_library_version(text, &length));
  const std::string whole(text, static_cast<size_t>(length));
  return whole.substr(0, whole.find(','));
}

// The version of cuBLAS that LibTorch has loaded. It is looked up by name, because it is not linked here.
std::string cublas_version() {
  const auto version = reinterpret_cast<size_t (*)()>(::dlsym(RTLD_DEFAULT, "cublasLtGetVersion"));
  if (version == nullptr) return "";
  const size_t code = version();
  return fmt::format("{}.{}.{}", code / 10000, code / 100 % 100, code % 100);
}

}  // namespace

doctor::VersionFacts versions() {
  doctor::VersionFacts found;
  found.torch = TORCH_VERSION;
  found.mpi = mpi_version();
  int nccl = 0;
  ncclGetVersion(&nccl);
  found.nccl = nccl_text(nccl);
  found.nccl_built = nccl_text(NCCL_VERSION_CODE);
  int cuda = 0;
  cudaRuntimeGetVersion(&cuda);
  found.cuda = fmt::format("{}.{}", cuda / 1000, cuda / 10 % 100);
  if (at::detail::getCUDAHooks().hasCuDNN()) {
    const long cudnn = at::detail::getCUDAHooks().versionRuntimeCuDNN();
    found.cudnn = fmt::format("{}.{}.{}", cudnn / 10000, cudnn / 100 % 100, cudnn % 100);
  }
  found.cublas = cublas_version();
  found.hdf5 = h5::library_version();
  utsname system{};
  uname(&system);
  found.kernel = system.release;
  return found;
}

}  // namespace shardmark::machine
