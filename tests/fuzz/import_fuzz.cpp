// Fuzz target: results of other programs, in every format; the corpus is tests/data/import.
// REPLAYS 4000
#include <string>

#include "fuzz_target.h"
#include "import/results.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace shardmark;
  const std::string text(reinterpret_cast<const char*>(data), size);
  one_line_or_result("results", [&] {
    imports::imported_results(
        {{"results", text}}, {.device = "a GPU", .transport = "nccl", .operation = "all_reduce", .ranks = 2});
  });
  return 0;
}
