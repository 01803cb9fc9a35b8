// The first screen that the README shows has the headings of the one that is printed, and its marks.
#include <gmock/gmock.h>

#include <algorithm>
#include <sstream>

#include "analysis/overview/overview.h"
#include "analysis_fixture.h"
#include "schema_fixture.h"

namespace shardmark {
namespace {

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

// What follows the title, up to a line that begins with `end`: the names and units of the columns.
std::vector<std::string> heading(const std::string& text, const std::string& title, const std::string& end) {
  const size_t from = text.find(title);
  EXPECT_NE(from, std::string::npos) << title;
  const size_t to = text.find(end, from);
  EXPECT_NE(to, std::string::npos) << end;
  return words_of(text.substr(from + title.size(), to - from - title.size()));
}

TEST(Readme, ShowsTheFirstScreenThatIsPrinted) {
  const std::string readme = read_text(SHARDMARK_SOURCE_DIR "/README.md");
  std::vector<Record> records = {training_record("ddp", 2, 4, 0.11, 0.01),
                                 training_record("fsdp", 2, 4, 0.12, 0.01),
                                 training_record("ddp", 1, 8, 0.2)};
  records.back().point.training.scaling = "strong";
  records.push_back(collective_record("all_reduce", 2, 8, true, 1e-6));
  const std::vector<StudyData> studies = {study_of(records)};
  const auto points = merge_repeats(studies);
  const std::string screen =
      to_text(overview_of(studies, points, {}, scaling_series(points)), {.width = 200});
  for (const auto& [title, end] :
       {std::pair("Training, on the most ranks of each setting", "gpt2, "),
        {"Collectives, by their largest and smallest message", "2 ranks over mpi"}})
    EXPECT_EQ(heading(readme, title, end), heading(screen, title, end)) << screen;
  EXPECT_THAT(readme, testing::HasSubstr("fastest ?"));
  EXPECT_THAT(readme, testing::ContainsRegex("\n    \\?: another launch may give another order"));
}

}  // namespace
}  // namespace shardmark
