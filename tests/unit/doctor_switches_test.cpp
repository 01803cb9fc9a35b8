// Tests the file that describes switches, and the cuts of the network that follow from it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "doctor/bisection.h"
#include "doctor/switches.h"

namespace shardmark::doctor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

std::string file_of(const std::string& text) {
  const std::string path =
      ::testing::TempDir() + "shardmark-topology-" + std::to_string(::getpid()) + ".conf";
  std::ofstream(path) << text;
  return path;
}

const char* const kTree =
    "# two racks\n"
    "SwitchName=leaf1 Nodes=n[1-3]  # near the door\n\n"
    "switchname=leaf2 NODES=n[4-6] LinkSpeed=100\n"
    "SwitchName=leaf3 Nodes=n[7-9]\n"
    "SwitchName=spine Switches=leaf[1-3]\n";

Members members_named(const std::vector<int>& numbers) {
  Members members;
  for (int number : numbers)
    members.push_back({"n" + std::to_string(number), {static_cast<int>(members.size())}});
  return members;
}

TEST(DoctorSwitches, AreRead) {
  const Switches switches = read_switches(file_of(kTree));
  ASSERT_EQ(switches.all().size(), 4U);
  EXPECT_EQ(switches.leaf_of("n5").name, "leaf2");
  EXPECT_EQ(switches.leaf_of("n5.cluster.example").name, "leaf2");
  EXPECT_THAT(switches.above("n9"), ElementsAre(2, 3));
}

TEST(DoctorSwitches, ErrorsNameFileAndLine) {
  const auto trouble = [](const std::string& text, const std::string& host = "n1") -> std::string {
    try {
      read_switches(file_of(text)).above(host);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(trouble(kTree), "");
  EXPECT_THAT(trouble(kTree, "n10"), HasSubstr("no switch has node n10"));
  EXPECT_THAT(trouble("# nothing\n"), HasSubstr("no line begins with SwitchName="));
  EXPECT_THAT(trouble("SwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n2\n"),
              HasSubstr(".conf:2: node n2 hangs on switch a (line 1), too"));
  EXPECT_THAT(trouble("SwitchName=a Nodes=n1,n1\n"),
              HasSubstr(".conf:1: node n1 hangs on switch a (line 1), too"));
  EXPECT_THAT(trouble("SwitchName=a Nodes=n1\nSwitchName=a Nodes=n2\n"),
              HasSubstr(".conf:2: switch a is in line 1, too"));
  EXPECT_THAT(trouble("SwitchName=a Nodes=n1\nSwitchName=b Switches=a,c\n"),
              HasSubstr(".conf:2: no line describes switch c"));
  EXPECT_THAT(trouble("SwitchName=a Nodes=n1\nSwitchName=b Switches=a\nSwitchName=c Switches=a\n"),
              HasSubstr(".conf:3: switch a is below b (line 2), too"));
  EXPECT_THAT(trouble("SwitchName=a Switches=b\nSwitchName=b Switches=a\n"),
              HasSubstr(".conf:1: switch a is above itself"));
  EXPECT_THAT(trouble("\nSwitchName=a Nodes=n[1\n"), HasSubstr(".conf:2: 'n[1': brackets that do not match"));
  EXPECT_THAT(trouble("Switch=a Nodes=n1\n"), HasSubstr(".conf:1: 'Switch' is no key of topology.conf"));
  EXPECT_THAT(trouble("SwitchName=a Nodes\n"), HasSubstr(".conf:1: expected Key=Value, got 'Nodes'"));
  EXPECT_THAT(trouble("SwitchName=a\n"), HasSubstr("a needs either Nodes= or Switches="));
  EXPECT_THAT(trouble("SwitchName=a Nodes=n1 Switches=b\n"), HasSubstr("a needs either Nodes= or Switches="));
  EXPECT_THAT(trouble("Nodes=n1\n"), HasSubstr("no SwitchName="));
  EXPECT_THROW(read_switches("/no/such.conf"), UsageError);
}

TEST(DoctorCuts, AreHalvesByOrder) {
  EXPECT_TRUE(cuts_of(members_named({1, 2, 3}), {}).empty());
  const auto even = cuts_of(members_named({1, 2, 3, 4}), {});
  ASSERT_EQ(even.size(), 1U);
  EXPECT_EQ(even.front().name, "bisection n1 and n2 | n3 and n4");
  EXPECT_THAT(even.front().pairs, ElementsAre(Pair(0, 2), Pair(1, 3)));
  const auto odd = cuts_of(members_named({1, 2, 3, 4, 5}), {});
  EXPECT_THAT(odd.front().pairs, ElementsAre(Pair(0, 3), Pair(1, 4)));  // n3 has no partner
}

TEST(DoctorCuts, AreWhatLeavesASwitch) {
  const Switches switches = read_switches(file_of(kTree));
  const auto cuts = cuts_of(members_named({1, 2, 3, 4, 5, 6, 7, 8}), switches);
  ASSERT_EQ(cuts.size(), 4U);  // the halves and three leaves; no link leaves the spine
  EXPECT_EQ(cuts[1].name, "leaf1 | the rest");
  // The partners are spread over the other leaves.
  EXPECT_THAT(cuts[1].pairs, ElementsAre(Pair(0, 3), Pair(1, 4), Pair(2, 6)));
  EXPECT_EQ(cuts[3].name, "leaf3 | the rest");
  EXPECT_EQ(cuts[3].pairs.size(), 2U);
  // With two leaves there is one cut, which is also that of the halves. A switch without ranks makes no cut.
  const auto two = cuts_of(members_named({1, 2, 4, 5}), switches);
  ASSERT_EQ(two.size(), 1U);
  EXPECT_EQ(two.front().name, "bisection, leaf1 | the rest");
  EXPECT_EQ(cuts_of(members_named({1, 4, 2, 5}), switches).size(), 2U);
}

}  // namespace
}  // namespace shardmark::doctor
