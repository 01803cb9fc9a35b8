// Tests JUnit XML: the counts, the elements, and texts with special characters.
#include "analysis/render/junit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardmark {
namespace {

using ::testing::HasSubstr;

TEST(JUnit, CountsWhatDidNotPass) {
  using Outcome = JUnitCase::Outcome;
  const std::string text = to_junit({"shardmark compare",
                                     {{"machine", "8x H100"}},
                                     {{"same"},
                                      {"slower", Outcome::failed, "+7.0 %"},
                                      {"lost", Outcome::error, "failed: rank 1"},
                                      {"open", Outcome::skipped, "AMBIGUOUS"},
                                      {"open too", Outcome::skipped, "AMBIGUOUS"}},
                                     "node1",
                                     "2026-11-26T02:35:45"});
  EXPECT_EQ(text, R"(<?xml version="1.0" encoding="UTF-8"?>
<testsuites>
  <testsuite id="0" package="shardmark" name="shardmark compare" hostname="node1" timestamp="2026-11-26T02:35:45" time="0" tests="5" failures="1" errors="1" skipped="2">
    <properties>
      <property name="machine" value="8x H100"/>
    </properties>
    <testcase classname="shardmark.compare" name="same" time="0"/>
    <testcase classname="shardmark.compare" name="slower" time="0">
      <failure type="shardmark.compare" message="+7.0 %"/>
    </testcase>
    <testcase classname="shardmark.compare" name="lost" time="0">
      <error type="shardmark.compare" message="failed: rank 1"/>
    </testcase>
    <testcase classname="shardmark.compare" name="open" time="0">
      <skipped message="AMBIGUOUS"/>
    </testcase>
    <testcase classname="shardmark.compare" name="open too" time="0">
      <skipped message="AMBIGUOUS"/>
    </testcase>
    <system-out/>
    <system-err/>
  </testsuite>
</testsuites>
)");
}

TEST(JUnit, TextsMayHoldAnything) {
  const std::string text =
      to_junit({"suite", {}, {{"a < b & \"c\" \x1b[31m\xff", JUnitCase::Outcome::failed, "one\ntwo"}}});
  EXPECT_THAT(text, HasSubstr(R"(name="a &lt; b &amp; &quot;c&quot; \x1b[31m\xff")"));
  EXPECT_THAT(text, HasSubstr("message=\"one&#10;two\""));
}

}  // namespace
}  // namespace shardmark
