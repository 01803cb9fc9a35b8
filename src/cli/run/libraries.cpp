// Registers the versions of the libraries that measuring needs.
#include "cli/version.h"
#include "doctor/machine/versions.h"

namespace shardmark {
namespace {

std::vector<std::pair<std::string, std::string>> measuring_libraries() {
  const doctor::VersionFacts found = machine::versions();
  return {{"LibTorch", found.torch}, {"MPI", found.mpi},     {"NCCL", found.nccl},
          {"CUDA", found.cuda},      {"cuDNN", found.cudnn}, {"cuBLAS", found.cublas}};
}

const Registration<LibrariesEntry> libraries{"measuring", {measuring_libraries}};

}  // namespace
}  // namespace shardmark
