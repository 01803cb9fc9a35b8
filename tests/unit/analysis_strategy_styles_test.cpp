// The same colour and marker for a strategy in every report, and with enough contrast.
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/frame/strategy_styles.h"
#include "analysis/render/style.h"
#include "plots_fixture.h"

namespace shardmark {
namespace {

TEST(StrategyStyles, AreTheSameInEveryReport) {
  const auto style_in = [](const std::vector<std::string>& strategies, const std::string& wanted) {
    std::vector<Record> records;
    for (const std::string& strategy : strategies) records.push_back(training_record(strategy, 2, 8, 0.1));
    const Plots plots = plots_of(records);
    for (const Curve& curve : plot_called(plots, "speed_and_memory").curves)
      if (curve.name == wanted) return curve.style;
    throw ContractError("no curve " + wanted);
  };
  EXPECT_EQ(style_in({"ddp", "zero3"}, "zero3"), style_in({"single", "fsdp", "zero3"}, "zero3"));
  EXPECT_EQ(style_in({"ddp", "zero3"}, "zero3"), style_of_strategy("zero3", 0));
  const int unusual = style_in({"ddp", "ddp(bucket_mb=1)"}, "ddp(bucket_mb=1.0)");
  EXPECT_GE(unusual, static_cast<int>(kStyledStrategies.size()));
}

// WCAG 2.2, 1.4.11: three times the contrast to the paper.
TEST(StrategyStyles, AreSeenOnWhitePaper) {
  const auto part = [](const std::string& color, size_t at) {
    const double share = std::stoi(color.substr(at, 2), nullptr, 16) / 255.0;
    return share <= 0.04045 ? share / 12.92 : std::pow((share + 0.055) / 1.055, 2.4);
  };
  for (const LineStyle& style : kLineStyles) {
    const std::string color = style.color;
    const double light = 0.2126 * part(color, 1) + 0.7152 * part(color, 3) + 0.0722 * part(color, 5);
    EXPECT_GE(1.05 / (light + 0.05), 3) << color;
  }
}

}  // namespace
}  // namespace shardmark
