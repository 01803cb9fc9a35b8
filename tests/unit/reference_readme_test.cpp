// The tables of the H100 and the H200 in results/README.md agree with the files in results/reference, and the
// MFU follows from the step time, the FLOPs per step and the peak.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <regex>

#include "analysis/frame/merged.h"
#include "schema_fixture.h"
#include "strategies/brief_text.h"

namespace shardmark {
namespace {

const std::string kReadme = SHARDMARK_SOURCE_DIR "/results/README.md";
const std::string kReference = SHARDMARK_SOURCE_DIR "/results/reference/";

// Returns the cells of the rows of a table, which follow `num_lines` lines of headings.
std::vector<std::vector<std::string>> rows_below(const std::string& heading, int num_lines) {
  const std::string text = read_text(kReadme);
  const size_t begin = text.find(heading), end = text.find("\n\n", begin);
  std::istringstream lines(text.substr(begin, end - begin));
  std::vector<std::vector<std::string>> rows;
  std::string line;
  for (int i = 0; i < num_lines; ++i) std::getline(lines, line);
  while (std::getline(lines, line)) {
    const std::string row = line.substr(line.find_first_not_of(' '));
    static const std::regex gap("  +");
    rows.emplace_back(std::sregex_token_iterator(row.begin(), row.end(), gap, -1),
                      std::sregex_token_iterator());
  }
  return rows;
}

// A row has a strategy with its tokens/s, step, peak memory and MFU, and a peer with its step, peak memory
// and ratio.
std::vector<std::vector<std::string>> rows_of_readme() {
  return rows_below("tokens/s   step   peak     MFU", 2);
}

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

// Returns the number before `unit` in the sentence about MFU, times 10^12.
double tera_in_readme(const std::string& unit) {
  const std::string text = read_text(kReadme);
  std::smatch found;
  const std::regex sentence("MFU is [^.]*(\\.[0-9][^.]*)*");
  if (!std::regex_search(text, found, sentence)) return std::nan("");
  const std::string mfu = found.str();
  return std::regex_search(mfu, found, std::regex("([0-9.]+) " + unit)) ? std::stod(found[1]) * 1e12
                                                                        : std::nan("");
}

const std::vector<StudyData>& reference_studies() {
  static const std::vector<StudyData> all = {
      read_study(kReference + "h100-gpu-single.h5", Load::without_samples),
      read_study(kReference + "h100-gpu-strategies.h5", Load::without_samples)};
  return all;
}

// Returns the point of GPT-2 with 124 million parameters, bf16 and batch 16 for a row such as "zero3" or
// "single, recomputed".
const MergedPoint* point_of(const std::vector<MergedPoint>& all, const std::string& row) {
  const std::string name = row.substr(0, row.find(','));
  for (const MergedPoint& merged : all) {
    const TrainingPoint& t = merged.point.training;
    if (is_training(merged) && brief_text("model", t.model) == "gpt2" &&
        brief_text("strategy", t.strategy) == name && t.precision == "bf16" && t.batch_size == 16 &&
        (t.recompute > 0) == (row != name))
      return &merged;
  }
  return nullptr;
}

// Formats 427825 as "427,825".
std::string with_comma(double number) {
  const auto whole = static_cast<int64_t>(std::round(number));
  return fmt::format("{},{:03}", whole / 1000, whole % 1000);
}

TEST(ReferenceReadme, SaysWhatTheStudiesSay) {
  const std::vector<MergedPoint> all = merge_repeats(reference_studies());
  const auto rows = rows_of_readme();
  ASSERT_EQ(rows.size(), 5u);
  for (const auto& row : rows) {
    ASSERT_EQ(row.size(), 9u) << row.front();
    const MergedPoint* merged = point_of(all, row[0]);
    ASSERT_NE(merged, nullptr) << row[0];
    const Measures& m = merged->measures;
    EXPECT_EQ(row[1], with_comma(m.tokens_per_s)) << row[0];
    EXPECT_EQ(row[2], fmt::format("{:.2f}", 1e3 * m.step_s)) << row[0];
    EXPECT_EQ(row[3], fmt::format("{:.2f}", m.peak_bytes / 0x1p30)) << row[0];
    EXPECT_EQ(row[4], fmt::format("{:.1f}", 100 * m.mfu)) << row[0];
    EXPECT_EQ(tera_in_readme("TFLOP/s"), m.datasheet_flops);
    EXPECT_NEAR(tera_in_readme("TFLOP a step"), m.flops_per_step, 0.0005e12);
  }
}

// Returns the number before a text in the README.
std::string before_in_readme(const std::string& text) {
  const std::string readme = one_line(read_text(kReadme));
  const size_t end = readme.find(text);
  if (end == std::string::npos) return "no such text: " + text;
  const size_t begin = readme.find_last_not_of("0123456789.,", end - 1) + 1;
  return readme.substr(begin, end - begin);
}

// Returns the step time of `single` in bf16 without recomputation. It does not depend on the other points of
// a study.
std::string single_step_ms(const std::vector<MergedPoint>& all, const std::string& model, int64_t batch) {
  for (const MergedPoint& merged : all) {
    const TrainingPoint& t = merged.point.training;
    if (is_training(merged) && brief_text("model", t.model) == model && t.strategy.name == "single" &&
        t.precision == "bf16" && t.batch_size == batch && t.recompute == 0)
      return fmt::format("{:.1f}", 1e3 * merged.measures.step_s);
  }
  return "no such point";
}

TEST(ReferenceReadme, SaysWhatOtherModelsTake) {
  const std::vector<MergedPoint> all = merge_repeats(reference_studies());
  EXPECT_EQ(before_in_readme(" ms (batch 8, 4, 4)"), single_step_ms(all, "gpt2_xl", 4));
  EXPECT_EQ(before_in_readme(" and 120.9 ms (batch"), single_step_ms(all, "gpt2_large", 4));
  EXPECT_EQ(before_in_readme(", 63.6 and 120.9 ms"), single_step_ms(all, "gpt2_medium", 8));
  const std::string resnet = "resnet(classes=1000, image=224)",
                    resnet_50 = "resnet(layers=50, classes=1000, image=224)";
  EXPECT_EQ(before_in_readme(" ms (128 images of 224 x 224)"), single_step_ms(all, resnet_50, 128));
  EXPECT_EQ(before_in_readme(" and 35.4 ms (128"), single_step_ms(all, resnet, 128));
}

TEST(ReferenceReadme, SaysHowFastAMatrixProductIs) {
  double best = 0, sheet = 0;
  for (const MergedPoint& merged : merge_repeats(reference_studies()))
    if (is_training(merged) && merged.point.training.precision == "bf16") {
      best = std::max(best, merged.measures.peak_flops);
      sheet = merged.measures.datasheet_flops;
    }
  EXPECT_EQ(before_in_readme(" % of that peak"), fmt::format("{:.0f}", 100 * best / sheet));
}

// The time per step of the kernels whose names contain one of these words. The first line of the file has the
// time of all kernels.
TEST(ReferenceReadme, SaysWhatTheKernelsTake) {
  std::istringstream h100(read_text(kReference + "h100-kernels-gpt2.txt"));
  std::string line, all;
  std::getline(h100, all);
  double sum = 0;
  static const std::regex fused("CUDAFunctor_add|sum_functor|layer_norm|GammaBeta");
  while (std::getline(h100, line))
    if (std::regex_search(line, fused)) sum += std::stod(line);
  EXPECT_EQ(before_in_readme(" of the 36.5 ms that kernels take"), fmt::format("{:.1f}", sum));
  EXPECT_NE(all.find("they take 36.53 ms"), std::string::npos) << all;
  const std::string h200 = read_text(kReference + "h200-kernels-gpt2-fused.txt");
  EXPECT_TRUE(h200.starts_with(before_in_readme(" kernels of such a step") + " kernels"))
      << h200.substr(0, 40);
  const std::string take = "they take ";
  EXPECT_EQ(before_in_readme(" ms. Graphs matter"),
            fmt::format("{:.1f}", std::stod(h200.substr(h200.find(take) + take.size()))));
}

// This uses only the printed numbers, so the tolerance is their rounding.
TEST(ReferenceReadme, MfuFollowsFromStepFlopsAndOnePeak) {
  const double peak = tera_in_readme("TFLOP/s"), flops = tera_in_readme("TFLOP a step");
  for (const auto& row : rows_of_readme()) {
    const double tokens_per_s = 1000 * std::stod(row[1]) + std::stod(row[1].substr(4)),
                 step_s = std::stod(row[2]) / 1e3;
    const double mfu = 100 * flops / step_s / peak,
                 rounding = 0.05 + mfu * (0.005e-3 / step_s + 0.05e12 / peak);
    EXPECT_NEAR(std::stod(row[4]), mfu, rounding) << row[0];
    EXPECT_NEAR(tokens_per_s * step_s, 16 * 1024, 0.003 * 16 * 1024)
        << row[0];  // one is a mean, the other a median
  }
}

TEST(ReferenceReadme, SaysOfPeersWhatTheirFileSays) {
  const auto file = nlohmann::ordered_json::parse(read_text(kReference + "h100-peers.json"));
  const auto find = [&](const std::string& title) {
    for (const auto& row : file["rows"])
      if ((row["name"].get<std::string>() + ", " + row["note"].get<std::string>()).starts_with(title))
        return row;
    return nlohmann::ordered_json();
  };
  for (const auto& row : rows_of_readme()) {
    const auto peer = find(row[5]);
    ASSERT_TRUE(peer.is_object()) << row[5];
    ASSERT_EQ(peer["launches"].size(), 1u);
    const auto ours = find(peer["compared_with"].items().begin().key());
    const double step_s = peer["launches"][0]["step_s"];
    EXPECT_EQ(row[6], fmt::format("{:.1f}", 1e3 * step_s)) << row[5];
    EXPECT_EQ(row[7], fmt::format("{:.1f}", peer["launches"][0]["peak_bytes"].get<double>() / 0x1p30))
        << row[5];
    EXPECT_EQ(row[8], fmt::format("{:.3f}", ours["launches"][0]["step_s"].get<double>() / step_s)) << row[5];
  }
}

// A row has a model, our step times (PyTorch's kernels, fused kernels, CUDA graphs), the step time of
// torch.compile, and the ratios of the latter two of ours to it.
TEST(ReferenceReadme, SaysOfTheH200WhatItsFilesSay) {
  const auto rows = rows_below("step, ms                   single", 1);
  ASSERT_EQ(rows.size(), 2u);
  const std::vector<std::string> files = {"h200-peers-gpt2.json", "h200-peers-gpt2-24-layers.json"};
  for (size_t model = 0; model < files.size(); ++model) {
    const auto file = nlohmann::ordered_json::parse(read_text(kReference + files[model]));
    std::vector<double> step_s;
    for (const char* name : {"single", "single, fused", "single, graphs", "torch.compile, bf16 copy"})
      for (const auto& row : file["rows"])
        if (row["name"] == name) step_s.push_back(row["launches"][0]["step_s"]);
    ASSERT_EQ(step_s.size(), 4u) << files[model];
    ASSERT_EQ(rows[model].size(), 7u) << rows[model].front();
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(rows[model][1 + i], fmt::format("{:.2f}", 1e3 * step_s[i]));
    for (size_t i = 0; i < 2; ++i)
      EXPECT_EQ(rows[model][5 + i], fmt::format("{:.3f}", step_s[1 + i] / step_s[3]));
  }
}

}  // namespace
}  // namespace shardmark
