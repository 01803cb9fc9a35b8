// Fuzz target for the parser of suites and the plans that are made from them.
// REPLAYS 6000
#include <string>

#include "fuzz_target.h"
#include "plan/plan.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace shardmark;
  const std::string text(reinterpret_cast<const char*>(data), size);
  one_line_or_result("s.yaml:", [&] { make_plan(parse_suite(text, "s.yaml"), {2, 0}); });
  return 0;
}
