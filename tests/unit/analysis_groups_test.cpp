// Tests how things that share a key are grouped.
#include <gmock/gmock.h>

#include <string>

#include "analysis/frame/groups.h"

namespace shardmark {
namespace {

using testing::ElementsAre;

struct Thing {
  std::string name;
  int size;
};

std::vector<std::string> names_of(const std::vector<std::vector<const Thing*>>& groups) {
  std::vector<std::string> names;
  for (const auto& group : groups) {
    names.emplace_back();
    for (const Thing* thing : group) names.back() += thing->name;
  }
  return names;
}

TEST(Groups, AreInTheOrderOfTheirFirstThings) {
  const std::vector<Thing> things = {{"c", 3}, {"a", 1}, {"b", 3}, {"d", 1}};
  EXPECT_THAT(names_of(groups_of(things, &Thing::size)), ElementsAre("cb", "ad"));
  const std::vector<const Thing*> pointers = {&things[3], &things[0]};
  EXPECT_THAT(names_of(groups_of(pointers, [](const Thing& one) { return one.size; })),
              ElementsAre("d", "c"));
}

TEST(Groups, BeginWithWhatTheOthersAreHeldAgainst) {
  const std::vector<Thing> things = {{"c", 3}, {"a", 1}, {"b", 3}, {"d", 1}, {"e", 2}};
  EXPECT_THAT(names_of(groups_of(
                  things, [](const Thing&) { return 0; }, &Thing::size)),
              ElementsAre("adecb"));
}

}  // namespace
}  // namespace shardmark
