// Names of things beside each other: each says what it differs in, and what all share is said once.
#include <gmock/gmock.h>

#include "analysis/frame/labels.h"

namespace shardmark {
namespace {

using ::testing::ElementsAre;

LabelParts model(const std::string& text, Said said = Said::once) {
  return {choice_part("model", text, said)};
}

TEST(Labels, SayWhatDiffers) {
  const Labels labels = labels_of({{choice_part("model", "gpt2(layers=4, width=64)"),
                                    {"batch", "batch 4 per rank"},
                                    {"ranks", "2 ranks"}},
                                   {choice_part("model", "gpt2(layers=4, width=128)"),
                                    {"batch", "batch 8 per rank"},
                                    {"ranks", "2 ranks"}}});
  EXPECT_THAT(labels.names, ElementsAre("width=64, batch 4 per rank", "width=128, batch 8 per rank"));
  EXPECT_EQ(labels.shared, "gpt2(layers=4), 2 ranks");
}

// An option belongs to its model: what all of that model share is said with the model.
TEST(Labels, OptionsAreComparedWithinAModel) {
  const Labels labels = labels_of(
      {model("llama(layers=2, sequence=16)"), model("llama(layers=2, sequence=32)"), model("mlp(layers=9)")});
  EXPECT_THAT(labels.names, ElementsAre("llama(sequence=16)", "llama(sequence=32)", "mlp"));
  EXPECT_EQ(labels.shared, "llama: layers=2; mlp: layers=9");
}

// The one without the option still has a name.
TEST(Labels, OneAtTheDefaultIsNamedByItsModel) {
  const Labels labels = labels_of({model("gpt2"), model("gpt2(width=64)")});
  EXPECT_THAT(labels.names, ElementsAre("gpt2", "gpt2(width=64)"));
  EXPECT_EQ(labels.shared, "");
}

TEST(Labels, OfEqualThingsAreEmptyUnlessTheyMustBeSaid) {
  EXPECT_THAT(labels_of({model("gpt2(width=64)"), model("gpt2(width=64)")}).names, ElementsAre("", ""));
  const Labels labels =
      labels_of({model("gpt2(width=64)", Said::always), model("gpt2(width=64)", Said::always)});
  EXPECT_THAT(labels.names, ElementsAre("gpt2", "gpt2"));
  EXPECT_EQ(labels.shared, "gpt2: width=64");
}

TEST(Labels, WhatIsUsualIsSaidOnlyWhereThingsDiffer) {
  const LabelParts usual = {{"seed", "seed 1", {}, Said::if_differs}}, other = {{"seed", "seed 2"}};
  EXPECT_EQ(labels_of({usual, usual}).shared, "");
  EXPECT_THAT(labels_of({usual, other}).names, ElementsAre("seed 1", "seed 2"));
}

// A thing without an axis is no reason for the others to say theirs.
TEST(Labels, OfThingsOfSeveralKinds) {
  const LabelParts small = {{"operation", "all_reduce"}, {"bytes", "8 B"}, {"ranks", "2 ranks"}};
  const LabelParts large = {{"operation", "all_reduce"}, {"bytes", "1 KiB"}, {"ranks", "2 ranks"}};
  const LabelParts training = {
      {"model", "mlp", {}, Said::always}, {"ranks", "2 ranks"}, {"precision", "fp32"}};
  const Labels labels = labels_of({small, large, training});
  EXPECT_THAT(labels.names, ElementsAre("8 B", "1 KiB", "mlp"));
  EXPECT_EQ(labels.shared, "all_reduce, 2 ranks, fp32");
}

TEST(Labels, OfAGroupHaveWhatAllOfItShare) {
  const LabelParts common = common_parts({{{"batch", "batch 4"}, {"accumulation", "accumulation 2"}},
                                          {{"batch", "batch 4"}, {"accumulation", "accumulation 4"}}});
  EXPECT_EQ(common[0].text, "batch 4");
  EXPECT_EQ(common[1].text, "");
}

}  // namespace
}  // namespace shardmark
