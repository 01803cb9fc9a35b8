// Random damage to a valid suite: it either parses or gives one line of UsageError, and nothing else, ever.
#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "plan/plan.h"

namespace shardmark {
namespace {

const char* const kSuite = R"(name: fuzz
seed: 3
ranks: [1, 2]
sampling: {min_steps: 5, max_steps: 20, time_limit: 1.5}
training:
  - model: &m {gpt2: {layers: [1, 2], width: 8, heads: 2}}
    data: {text: {files: "README.md src/**/*.cpp"}}
    strategy: [ddp, {fsdp: {shard: [full, gradients]}}]
    optimizer: {adamw: {lr: 1e-5}}
    batch_size: [1, 2]
  - {model: *m, strategy: zero3, global_batch: 8, accumulation: 2}
collectives:
  - operation: [all_reduce, broadcast]
    bytes: {from: 8, to: 4KiB, factor: 2}
    reduction: sum
exclude:
  - {strategy: ddp, ranks: 1}
)";

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  std::string damage(std::string text) {
    for (size_t i = 0, edits = 1 + below(4); i < edits && !text.empty(); ++i) edit(text);
    return text;
  }

 private:
  size_t below(size_t n) { return random_() % n; }

  void edit(std::string& text) {
    static const std::string kPieces[] = {"[",      "]",        "{",
                                          "}",      ":",        ": ",
                                          "- ",     "\n",       "  ",
                                          "\t",     "*m",       "&m ",
                                          "!!int ", "<<: ",     "'",
                                          "\"",     "#",        "|",
                                          ">",      "?",        "~",
                                          "---\n",  "\xff",     std::string(1, '\0'),
                                          "1e999",  "-1",       "99999999999999999999",
                                          "null",   "[[[[[[[[", "name: x\n",
                                          "%",      "\\x"};
    const size_t at = below(text.size()), length = std::min(below(12), text.size() - at);
    switch (below(4)) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(at, kPieces[below(std::size(kPieces))]);
        break;
      case 2:
        text[at] = static_cast<char>(below(256));
        break;
      default:
        text.insert(below(text.size()), text.substr(at, length));
        break;
    }
  }

  std::mt19937_64 random_;
};

TEST(SuiteFuzz, DamagedSuitesParseOrGiveOneLine) {
  size_t parsed = 0, refused = 0;
  for (uint64_t seed = 0; seed < 8000; ++seed) {
    const std::string text = Mutator(seed).damage(kSuite);

    try {
      make_plan(parse_suite(text, "s.yaml"), {2, 0});
      ++parsed;
    } catch (const UsageError& error) {
      const std::string line = error.what();
      ASSERT_TRUE(line.starts_with("s.yaml:")) << "seed " << seed << ": " << line;
      ASSERT_EQ(line.find('\n'), std::string::npos) << "seed " << seed << ": " << line;
      ++refused;
    } catch (const std::exception& error) {
      FAIL() << "seed " << seed << ": " << error.what() << "\n" << text;
    }
  }
  EXPECT_GT(parsed, 100u);  // the damage is such that both ways are taken
  EXPECT_GT(refused, 1000u);
}

TEST(SuiteFuzz, DeepNestingIsRefused) {
  for (const std::string open : {"[", "{a: ", "- "})
    for (const size_t depth : {100u, 1000u, 100000u}) {
      std::string text = "training: ";
      for (size_t i = 0; i < depth; ++i) text += open;
      EXPECT_THROW(parse_suite(text, "s.yaml"), UsageError) << open << depth;
    }
}

}  // namespace
}  // namespace shardmark
