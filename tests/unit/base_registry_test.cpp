// Tests the registry and handles that own a resource.
#include <gtest/gtest.h>

#include "base/handle.h"
#include "base/registry.h"

namespace shardmark {
namespace {

struct Entry {
  std::string description;
};

TEST(Registry, KnowsItsEntries) {
  Registry<Entry> registry;
  registry.add("b", {"second"});
  registry.add("a", {"first"});
  EXPECT_TRUE(registry.contains("a"));
  EXPECT_FALSE(registry.contains("c"));
  EXPECT_EQ(registry.get("b", "thing").description, "second");
  EXPECT_EQ(registry.joined_names(), "a, b");
  EXPECT_THROW(registry.add("a", {"again"}), ContractError);
  try {
    registry.get("c", "thing");
    ADD_FAILURE();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "unknown thing 'c'; known: a, b");
  }
}

int num_released = 0;
struct Count {
  void operator()(int) const noexcept { ++num_released; }
};

TEST(Handle, ReleasesOnce) {
  num_released = 0;
  {
    Handle<int, Count> empty(-1), one(3, -1);
    EXPECT_FALSE(empty);
    Handle<int, Count> moved(std::move(one));
    EXPECT_EQ(moved.get(), 3);
    EXPECT_FALSE(one);  // NOLINT(bugprone-use-after-move): a moved-from handle owns nothing
    Handle<int, Count> other(4, -1);
    other = std::move(moved);
    EXPECT_EQ(num_released, 1);
    EXPECT_EQ(other.get(), 3);
  }
  EXPECT_EQ(num_released, 2);
}

TEST(Ensure, NamesTheLineAndTheCondition) {
  try {
    ENSURE(1 == 2, "numbers are broken");
    ADD_FAILURE();
  } catch (const ContractError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("base_registry_test.cpp:"), std::string::npos) << message;
    EXPECT_NE(message.find("numbers are broken (1 == 2)"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace shardmark
