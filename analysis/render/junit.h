// Results as JUnit XML, which CI systems show: what Jenkins, GitLab and GitHub's actions read of it
// (https://github.com/testmoapp/junitxml), in a form that both schemas in use accept: junit-10.xsd, by which
// Jenkins's xunit plugin checks, and the stricter JUnit.xsd of Ant's reports
// (https://github.com/windyroad/JUnit-Schema).
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace shardmark {

struct JUnitCase {
  enum class Outcome { passed, failed, error, skipped };
  std::string name;
  Outcome outcome = Outcome::passed;
  std::string message = {};  // why it did not pass
};

struct JUnitSuite {
  std::string name;                                             // "shardmark compare"
  std::vector<std::pair<std::string, std::string>> properties;  // "machine", "8x H100"
  std::vector<JUnitCase> cases;
  std::string host = {};  // where and when that was found out: "2026-11-26T02:35:45", in UTC
  std::string time = {};
};

// A whole document. Texts may hold anything.
std::string to_junit(const JUnitSuite& suite);

}  // namespace shardmark
