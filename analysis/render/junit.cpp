// Test suites, test cases, and what did not pass.
#include "analysis/render/junit.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/render/svg.h"
#include "base/text.h"

namespace shardmark {
namespace {

// In an attribute, where a line break would be read as a space.
std::string xml(const std::string& text) {
  std::string escaped;
  for (const char c : escaped_markup(printable(text))) escaped += c == '\n' ? "&#10;" : std::string(1, c);
  return escaped;
}

std::string element_of(JUnitCase::Outcome outcome) {
  switch (outcome) {
    case JUnitCase::Outcome::passed:
      return "";
    case JUnitCase::Outcome::failed:
      return "failure";
    case JUnitCase::Outcome::error:
      return "error";
    case JUnitCase::Outcome::skipped:
      return "skipped";
  }
  return "";
}

std::string case_xml(const JUnitCase& result, const std::string& class_name) {
  const std::string head =
      fmt::format("    <testcase classname=\"{}\" name=\"{}\" time=\"0\"", class_name, xml(result.name));
  const std::string element = element_of(result.outcome);
  if (element.empty()) return head + "/>\n";
  const bool is_skipped = result.outcome == JUnitCase::Outcome::skipped;  // of no type
  return fmt::format("{}>\n      <{}{} message=\"{}\"/>\n    </testcase>\n", head, element,
                     is_skipped ? "" : fmt::format(" type=\"{}\"", class_name), xml(result.message));
}

}  // namespace

std::string to_junit(const JUnitSuite& suite) {
  const auto count = [&](JUnitCase::Outcome outcome) {
    return std::count_if(suite.cases.begin(), suite.cases.end(),
                         [&](const JUnitCase& result) { return result.outcome == outcome; });
  };
  // Every attribute and element that Ant's schema requires is there. A verdict takes no time of its own.
  std::string text = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"
      "  <testsuite id=\"0\" package=\"shardmark\" name=\"{}\" hostname=\"{}\" timestamp=\"{}\" time=\"0\" "
      "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\">\n    <properties>\n",
      xml(suite.name), xml(suite.host), xml(suite.time), suite.cases.size(),
      count(JUnitCase::Outcome::failed), count(JUnitCase::Outcome::error),
      count(JUnitCase::Outcome::skipped));
  for (const auto& [name, value] : suite.properties)
    text += fmt::format("      <property name=\"{}\" value=\"{}\"/>\n", xml(name), xml(value));
  text += "    </properties>\n";
  std::string class_name = xml(suite.name);
  std::replace(class_name.begin(), class_name.end(), ' ', '.');
  for (const JUnitCase& result : suite.cases) text += case_xml(result, class_name);
  return text + "    <system-out/>\n    <system-err/>\n  </testsuite>\n</testsuites>\n";
}

}  // namespace shardmark
