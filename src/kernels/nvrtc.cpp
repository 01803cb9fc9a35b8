// Uses NVRTC through its own library, which torch's wheel brings. The alternative, torch's table of NVRTC
// functions (at::globalContext().getNVRTC()), has no header in the wheel. The functions are declared here,
// because NVRTC's header is in another package than CUDA's runtime. The compiled images are loaded with that
// runtime, which is linked.
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <tuple>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "kernels/launcher.h"

namespace shardmark {
namespace {

using nvrtcProgram = struct NvrtcProgram*;
constexpr int kSuccess = 0;  // NVRTC_SUCCESS

#define SHARDMARK_NVRTC(name, ...) \
  std::add_pointer_t<__VA_ARGS__> name = find<std::add_pointer_t<__VA_ARGS__>>("nvrtc" #name)

class NvrtcLibrary {
 public:
  static const NvrtcLibrary& instance() {
    static const NvrtcLibrary library;
    return library;
  }

 private:
  NvrtcLibrary() { open_builtins(); }

  // libcaffe2_nvrtc.so is torch's own link to NVRTC. Its run path names the folder of NVRTC when the
  // program's run path does not: a Torch installed by the site may keep CUDA's libraries in a folder that
  // nothing else links to.
  static void* open(const std::string& file) {
    if (void* const opened = dlopen(file.c_str(), RTLD_NOW)) return opened;
    const std::string why = dlerror();
    if (void* const opened = dlopen("libcaffe2_nvrtc.so", RTLD_NOW)) return opened;
    throw SystemError("fused kernels need " + file + " of CUDA: " + why);
  }

  std::string file_ = "libnvrtc.so." + std::to_string(CUDART_VERSION / 1000);
  void* opened_ = open(file_);

  template <class Function>
  Function find(const char* name) const {
    void* const found = dlsym(opened_, name);
    if (found == nullptr) throw SystemError("fused kernels need " + file_ + " of CUDA: " + dlerror());
    return reinterpret_cast<Function>(found);
  }

  // NVRTC opens its second library, the headers and functions that every text may use, by its bare name and
  // without a run path of its own, so the loader finds it only in a folder that the system knows: in those of
  // an installed CUDA toolkit, but not in the wheels' beside NVRTC. A library that is open already is found
  // by its name, so it is opened here, from the folder of NVRTC. Where it is not there, NVRTC's own search
  // decides, and its message says what is missing.
  void open_builtins() const {
    int major = 0, minor = 0;
    if (Version(&major, &minor) != kSuccess) return;
    Dl_info nvrtc{};
    if (dladdr(reinterpret_cast<const void*>(Version), &nvrtc) == 0) return;
    const std::string name = "libnvrtc-builtins.so." + std::to_string(major) + "." + std::to_string(minor);
    std::error_code ignored;  // a path that cannot be resolved is tried as it is
    const std::filesystem::path as_opened = nvrtc.dli_fname;
    for (const auto& path : {as_opened, std::filesystem::canonical(as_opened, ignored)})
      if (dlopen((path.parent_path() / name).c_str(), RTLD_NOW) != nullptr) return;
  }

 public:
  SHARDMARK_NVRTC(Version, int(int* major, int* minor));
  SHARDMARK_NVRTC(GetNumSupportedArchs, int(int* count));
  SHARDMARK_NVRTC(GetSupportedArchs, int(int* capabilities));
  SHARDMARK_NVRTC(CreateProgram, int(nvrtcProgram*, const char* text, const char* name, int headers,
                                     const char* const* header_texts, const char* const* header_names));
  SHARDMARK_NVRTC(DestroyProgram, int(nvrtcProgram*));
  SHARDMARK_NVRTC(AddNameExpression, int(nvrtcProgram, const char*));
  SHARDMARK_NVRTC(CompileProgram, int(nvrtcProgram, int count, const char* const* options));
  SHARDMARK_NVRTC(GetProgramLogSize, int(nvrtcProgram, size_t*));
  SHARDMARK_NVRTC(GetProgramLog, int(nvrtcProgram, char*));
  SHARDMARK_NVRTC(GetCUBINSize, int(nvrtcProgram, size_t*));
  SHARDMARK_NVRTC(GetCUBIN, int(nvrtcProgram, char*));
  SHARDMARK_NVRTC(GetPTXSize, int(nvrtcProgram, size_t*));
  SHARDMARK_NVRTC(GetPTX, int(nvrtcProgram, char*));
  SHARDMARK_NVRTC(GetLoweredName, int(nvrtcProgram, const char*, const char**));
  SHARDMARK_NVRTC(GetErrorString, const char*(int));

  void check(int result, const std::string& kernel) const {
    if (result != kSuccess) throw SystemError("NVRTC, " + kernel + ": " + GetErrorString(result));
  }
};
#undef SHARDMARK_NVRTC

#if CUDART_VERSION >= 12080  // the runtime cannot load images before
void check_cuda(cudaError_t result, const std::string& kernel) {
  if (result != cudaSuccess) throw SystemError(kernel + ": " + cudaGetErrorString(result));
}

class GpuKernels final : public KernelLauncher {
 public:
  explicit GpuKernels(at::Device gpu)
      : gpu_(gpu), multiprocessors_(attribute(cudaDevAttrMultiProcessorCount)) {}

  int64_t multiprocessors() const override { return multiprocessors_; }

 private:
  int attribute(cudaDeviceAttr which) const {
    int value = 0;
    check_cuda(cudaDeviceGetAttribute(&value, which, gpu_.index()), "fused kernels");
    return value;
  }

  // Every point of a sweep has a launcher of its own, so that what is compiled is kept for the process.
  cudaKernel_t compiled(const KernelLaunch& launch) const {
    static std::mutex mutex;
    static std::map<std::tuple<int, std::string, std::string>, cudaKernel_t>
        kernels;  // by GPU, text and name
    const std::lock_guard lock(mutex);
    cudaKernel_t& found = kernels[{gpu_.index(), launch.text, launch.kernel}];
    if (found != nullptr) return found;
    const int version =
        10 * attribute(cudaDevAttrComputeCapabilityMajor) + attribute(cudaDevAttrComputeCapabilityMinor);
    const CompiledKernel kernel =
        compile_kernel(launch.text, launch.kernel, kernel_architecture(version, known_capabilities()));
    cudaLibrary_t library = nullptr;  // lives until the program ends
    check_cuda(cudaLibraryLoadData(&library, kernel.image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
               launch.kernel);
    check_cuda(cudaLibraryGetKernel(&found, library, kernel.name.c_str()), launch.kernel);
    return found;
  }

  void start(const KernelLaunch& launch, void** arguments) override {
    const dim3 grid(static_cast<unsigned>(launch.blocks[0]), static_cast<unsigned>(launch.blocks[1]));
    check_cuda(cudaLaunchKernel(static_cast<const void*>(compiled(launch)), grid,
                                dim3(static_cast<unsigned>(launch.threads)), arguments, /*sharedMem=*/0,
                                c10::cuda::getCurrentCUDAStream(gpu_.index())),
               launch.kernel);
  }

  at::Device gpu_;
  int64_t multiprocessors_;
};
#endif

}  // namespace

#if CUDART_VERSION >= 12080
Kernels fused_kernels(at::Device gpu) { return c10::make_intrusive<GpuKernels>(gpu); }
bool loads_kernels() { return true; }
#else
bool loads_kernels() { return false; }
Kernels fused_kernels(at::Device) {
  throw UsageError(
      "fused kernels need CUDA 12.8 or newer, which this program was not built with; take kernels torch");
}
#endif

std::string kernel_architecture(int capability, const std::vector<int>& known) {
  int newest = 0;
  for (const int one : known)
    if (one <= capability) newest = std::max(newest, one);
  // For a GPU that is older than all known ones the compiler's error says what is missing.
  const bool is_known = newest == capability || newest == 0;
  return is_known ? "sm_" + std::to_string(capability) : "compute_" + std::to_string(newest);
}

std::vector<int> known_capabilities() {
  const NvrtcLibrary& nvrtc = NvrtcLibrary::instance();
  int count = 0;
  nvrtc.check(nvrtc.GetNumSupportedArchs(&count), "supported GPUs");
  std::vector<int> capabilities(static_cast<size_t>(count));
  nvrtc.check(nvrtc.GetSupportedArchs(capabilities.data()), "supported GPUs");
  return capabilities;
}

CompiledKernel compile_kernel(const std::string& text, const std::string& kernel,
                              const std::string& architecture, const char* option) {
  const NvrtcLibrary& nvrtc = NvrtcLibrary::instance();
  const char* const header = kernel_texts().at("common.cuh").c_str();
  const char* const header_name = "kernels/common.cuh";
  nvrtcProgram program = nullptr;
  nvrtc.check(
      nvrtc.CreateProgram(&program, kernel_texts().at(text).c_str(), text.c_str(), 1, &header, &header_name),
      kernel);
  const std::unique_ptr<nvrtcProgram, void (*)(nvrtcProgram*)> owned(
      &program, [](nvrtcProgram* one) { NvrtcLibrary::instance().DestroyProgram(one); });
  nvrtc.check(nvrtc.AddNameExpression(program, kernel.c_str()), kernel);
  const std::string target = "--gpu-architecture=" + architecture;
  std::vector<const char*> options = {target.c_str(), "--std=c++17", "--device-as-default-execution-space"};
  if (*option != '\0') options.push_back(option);
  const int result = nvrtc.CompileProgram(program, static_cast<int>(options.size()), options.data());
  const auto filled = [&](auto size, auto get) {
    size_t bytes = 0;
    nvrtc.check(size(program, &bytes), kernel);
    std::string content(bytes, '\0');
    nvrtc.check(get(program, content.data()), kernel);
    return content;
  };
  std::string log = filled(nvrtc.GetProgramLogSize, nvrtc.GetProgramLog);
  log.resize(log.find_last_not_of(std::string("\0\n ", 3)) + 1);
  if (result != kSuccess)
    throw SystemError("NVRTC, " + kernel + " for " + architecture + ": " + nvrtc.GetErrorString(result) +
                      "\n" + log);
  const char* name = nullptr;
  nvrtc.check(nvrtc.GetLoweredName(program, kernel.c_str(), &name), kernel);
  const bool is_ptx = architecture.starts_with("compute_");
  std::string image =
      is_ptx ? filled(nvrtc.GetPTXSize, nvrtc.GetPTX) : filled(nvrtc.GetCUBINSize, nvrtc.GetCUBIN);
  return {std::move(image), name, std::move(log)};
}

}  // namespace shardmark
