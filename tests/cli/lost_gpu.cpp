// A library that is preloaded into the ranks. Rank 1 "loses its GPU" when it computes a GELU, with CUDA's
// error message. This happens once: the failure removes the file that SHARDMARK_LOSE_GPU names.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>
#include <string_view>

namespace at {

// The part of Tensor that a call needs: it is returned in memory.
class Tensor {
 public:
  ~Tensor();

 private:
  void* impl_;
};

namespace _ops {
struct gelu {
  static Tensor call(const Tensor& x, std::string_view approximate);
};

Tensor gelu::call(const Tensor& x, std::string_view approximate) {
  const char* const mark = std::getenv("SHARDMARK_LOSE_GPU");
  const char* const rank = std::getenv("OMPI_COMM_WORLD_RANK");
  if (mark != nullptr && rank != nullptr && std::string_view(rank) == "1" && ::unlink(mark) == 0)
    throw std::runtime_error("CUDA error: unspecified launch failure\nCompile with `TORCH_USE_CUDA_DSA`");
  using Call = Tensor(const Tensor&, std::string_view);
  static auto* const call = reinterpret_cast<Call*>(
      ::dlsym(RTLD_NEXT, "_ZN2at4_ops4gelu4callERKNS_6TensorESt17basic_string_viewIcSt11char_traitsIcEE"));
  return call(x, approximate);
}
}  // namespace _ops

}  // namespace at
