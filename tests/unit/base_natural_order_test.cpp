// Names that contain numbers are sorted as people sort them: node2 before node10.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/natural_order.h"

namespace shardmark {
namespace {

TEST(NaturalOrder, NumbersCompareAsNumbers) {
  const std::vector<std::string> ordered = {
      "",    "adamw(lr=0.0003)",      "adamw(lr=1e-3)", "adamw(lr=0.05)", "gpt2",           "gpt10",
      "mlp", "mlp(depth=3, width=8)", "mlp(width=8)",   "mlp(width=16)",  "mlp(width=1024)"};
  for (size_t i = 1; i < ordered.size(); ++i)
    EXPECT_LT(natural_key(ordered[i - 1]), natural_key(ordered[i])) << ordered[i - 1] << " < " << ordered[i];
}

TEST(NaturalOrder, TakesAnyText) {
  EXPECT_EQ(natural_key("1.0"), natural_key("1"));
  for (const char* text : {"1e", "1e99999", "7.", "...", "-3", "\xff\x80 9", "99999999999999999999999"})
    EXPECT_EQ(natural_key(text), natural_key(text)) << text;
  EXPECT_LT(natural_key("width=9"), natural_key("width=99999999999999999999999999"));
}

}  // namespace
}  // namespace shardmark
