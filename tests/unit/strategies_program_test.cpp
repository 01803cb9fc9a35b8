// Programs of every strategy over many models, ranks and options keep what makes a program right; wrong ones
// are refused by name; and their sums are the formulas that papers give.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "specs/specs.h"
#include "strategies/program_check.h"
#include "strategies/step_builder.h"

namespace shardmark::strategies {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using What = Instruction::What;

ModelTable table_of(const std::string& text) {
  const Choice written = choice_from_text(text);
  const specs::ModelSpec& law = specs::model_spec(written.name);
  return law.table(resolve(written, law.options, "model").options);
}

StepInput input_of(const ModelTable& table, const std::string& strategy_text, int64_t ranks) {
  const Choice written = choice_from_text(strategy_text);
  const Choice resolved = resolve(written, strategy(written.name).options, "strategy");
  return {table, ranks, 1, {4, 4, 4}, 2, resolved.options};
}

// Any value that an option of a strategy accepts.
std::string any_value(const OptionSpec& option, int64_t ranks, std::mt19937& random) {
  const auto one_of = [&](const auto& values) {
    return *(std::begin(values) + static_cast<int64_t>(random() % std::size(values)));
  };
  if (option.key == "group") {
    std::vector<int64_t> divisors{0};
    for (int64_t d = 1; d <= ranks; ++d)
      if (ranks % d == 0) divisors.push_back(d);
    return std::to_string(one_of(divisors));
  }
  if (option.type == OptionType::choice)
    return one_of(std::vector<std::string>{"plain", "cast", "topk(ratio=0.1)", "int8", "powersgd"});
  if (!option.accepted.empty()) return one_of(option.accepted);
  if (option.type == OptionType::number) return one_of(std::vector<std::string>{"0.001", "0.05", "25"});
  return one_of(std::vector<std::string>{"0", "1", "2", "7", "40"});
}

TEST(StrategyPrograms, OfAnyModelAndOptionsAreRight) {
  std::mt19937 random(1);
  const std::vector<std::string> models = {"mlp(features=13, width=19, layers=3, classes=5)",
                                           "mlp(features=5, layers=1, classes=3)",
                                           "mlp(features=7, width=5, layers=9, classes=2)",
                                           "gpt2(layers=3, width=24, heads=3, sequence=11, vocabulary=37)",
                                           "gpt2(layers=1, width=8, heads=2, sequence=4, vocabulary=9)",
                                           "resnet(layers=20, width=3, image=9)"};
  int64_t num_programs = 0;
  for (const auto& [name, entry] : Registry<Strategy>::instance().entries()) {
    for (int trial = 0; trial < 60; ++trial) {
      const ModelTable table = table_of(models[random() % models.size()]);
      const int64_t ranks = 1 + static_cast<int64_t>(random() % 8);
      std::string options;
      for (const OptionSpec& option : entry.options)
        options += (options.empty() ? "" : ", ") + option.key + "=" + any_value(option, ranks, random);
      const std::string text = options.empty() ? name : name + "(" + options + ")";
      StepInput input = input_of(table, text, ranks);
      input.accumulation = 1 + static_cast<int64_t>(random() % 3);
      input.norm = random() % 2 == 0;
      if (random() % 2 == 0) input.bytes = {2, 4, random() % 2 == 0 ? 2 : 4};
      if (!entry.impossible(input).empty()) continue;
      SCOPED_TRACE(text + " on " + std::to_string(ranks) + " ranks");
      const Program first = entry.step(input);  // ends the test where it is wrong
      for (input.rank = 1; input.rank < ranks; ++input.rank)
        EXPECT_EQ(calls_that_differ(first, entry.step(input)), "");
      input.rank = 0;
      const Program evaluation = entry.evaluation(input);
      ASSERT_EQ(evaluation.buffers.size(), first.buffers.size());
      for (size_t i = 0; i < first.buffers.size(); ++i)
        EXPECT_EQ(evaluation.buffers[i].numel, first.buffers[i].numel) << "one memory holds both";
      ++num_programs;
    }
  }
  EXPECT_GT(num_programs, 250);
}

class WrongProgram : public ::testing::Test {
 protected:
  Program program(const std::string& text = "fsdp") {
    return strategy("fsdp").step(input_of(table_, text, 4));
  }
  std::string wrong(const Program& program) { return wrong_with(program, table_); }
  static Instruction& first(Program& program, What what, size_t nth = 0) {
    for (Instruction& instruction : program.instructions)
      if (instruction.what == what && nth-- == 0) return instruction;
    throw std::logic_error("no such instruction");
  }
  static void erase(Program& program, const Instruction& instruction) {
    program.instructions.erase(program.instructions.begin() + (&instruction - program.instructions.data()));
  }

  ModelTable table_ = table_of("gpt2(layers=3, width=24, heads=3, sequence=11, vocabulary=37)");
};

TEST_F(WrongProgram, ARightOneIsNot) { EXPECT_EQ(wrong(program()), ""); }

TEST_F(WrongProgram, AWaitWithoutAStart) {
  Program p = program();
  erase(p, first(p, What::start));
  EXPECT_THAT(wrong(p), AllOf(HasSubstr("fsdp: wait for all_gather #0"), HasSubstr("not in flight")));
}

TEST_F(WrongProgram, AStartThatNobodyWaitsFor) {
  Program p = program();
  p.buffers.push_back({"a buffer", Use::transient, Element::compute, 4, 4});
  const Slice slice{std::ssize(p.buffers) - 1, 0, 4};
  p.calls.push_back({specs::Collective::all_reduce, 16, {4, 1}, -1, slice, slice});
  p.instructions.push_back({What::start, std::ssize(p.calls) - 1});
  EXPECT_THAT(wrong(p),
              AllOf(HasSubstr("start all_reduce #"), HasSubstr("starts again while it is in flight")));
}

TEST_F(WrongProgram, ASlotThatIsUsedWhileACallFillsIt) {
  Program p = program();
  Instruction& wait = first(p, What::wait, 1);  // of the first block's gather: after its forward now
  const auto place = &wait - p.instructions.data();
  const Instruction moved = wait;
  erase(p, wait);
  p.instructions.insert(p.instructions.begin() + place + 2, moved);
  EXPECT_THAT(wrong(p), AllOf(HasSubstr("fsdp: forward of"), HasSubstr("while a call in flight writes it")));
}

TEST_F(WrongProgram, ASlotThatHoldsAnotherGroup) {
  Program p = program();
  std::swap(first(p, What::bind, 0).to, first(p, What::bind, 1).to);
  EXPECT_THAT(wrong(p), AllOf(HasSubstr("fsdp: parameters of"), HasSubstr("its slot holds")));
}

TEST_F(WrongProgram, GradientsClearedWhileTheyAreReduced) {
  Program p = program();
  const Instruction zero = first(p, What::zero);  // of a slot, before a block's backward
  for (size_t i = 0; i < p.instructions.size(); ++i)
    if (p.instructions[i].what == What::start &&
        p.calls[size_t(p.instructions[i].index)].what == specs::Collective::reduce_scatter) {
      p.instructions.insert(p.instructions.begin() + static_cast<int64_t>(i) + 1, zero);
      break;
    }
  EXPECT_THAT(wrong(p), HasSubstr("is written while a call in flight uses it"));
}

TEST_F(WrongProgram, RanksWhoseCallsDiffer) {
  const Program p = program();
  Program other = p;
  other.calls[2].bytes += 4;
  EXPECT_EQ(calls_that_differ(p, p), "");
  EXPECT_THAT(calls_that_differ(p, other), HasSubstr("fsdp: call #2 is all_gather"));
  other.calls.pop_back();
  EXPECT_THAT(calls_that_differ(p, other), HasSubstr("calls and"));
}

// Elements of groups that are gathered once a step: root groups, and those of the last two blocks, which
// still lie in the two slots of prefetch = 1 when backward begins.
double gathered_once(const ModelTable& table, const std::vector<GroupLayout>& layout) {
  double numel = 0;
  for (size_t g = 0; g < table.groups.size(); ++g)
    if (specs::is_root(table.groups[g]) || table.groups[g].first_block + 2 >= std::ssize(table.blocks))
      numel += static_cast<double>(layout[g].numel);
  return numel;
}

// Ring bytes per rank and step, M bytes of parameters on N ranks, as the papers count them.
TEST(StrategyPrograms, MoveWhatThePapersSay) {
  const ModelTable table = table_of("gpt2(layers=4, width=64, heads=4, sequence=32, vocabulary=256)");
  constexpr double kRanks = 8, kRing = (kRanks - 1) / kRanks;
  const auto layout = specs::even_layout(table, 8);
  const double m = 4.0 * static_cast<double>(specs::total_numel(layout));
  const double kept = 4 * gathered_once(table, layout);
  const auto traffic = [&](const std::string& text) {
    return cost_of(choice_from_text(text).name, input_of(table, text, 8)).traffic_bytes;
  };
  const double whole = 4.0 * static_cast<double>(specs::total_numel(specs::even_layout(table, 1)));
  EXPECT_EQ(traffic("single"), 0);
  EXPECT_NEAR(traffic("ddp"), 2 * kRing * whole, 1e-6 * m);
  EXPECT_NEAR(traffic("fsdp"), kRing * (3 * m - kept), 1e-6 * m);
  EXPECT_NEAR(traffic("fsdp(shard=gradients)"), 2 * kRing * m, 1e-6 * m);
  EXPECT_NEAR(traffic("fsdp(shard=optimizer)"), 2 * kRing * m, 1e-6 * m);
  // In groups of 4: two replicas of each shard add up a quarter of the gradients.
  const double m4 = 4.0 * static_cast<double>(specs::total_numel(specs::even_layout(table, 4)));
  const double kept4 = 4 * gathered_once(table, specs::even_layout(table, 4));
  EXPECT_NEAR(traffic("fsdp(group=4)"), 0.75 * (3 * m4 - kept4) + 2 * 0.5 * m4 / 4, 1e-6 * m);
  // Three micro-batches: units 2 x 3 times, less those that still lie in the two slots, at the end of each
  // forward and of each backward but the last.
  StepInput three = input_of(table, "fsdp", 8);
  three.accumulation = 3;
  const auto numel_of_blocks = [&](int64_t first, int64_t last) {
    double numel = 0;
    for (size_t g = 0; g < table.groups.size(); ++g)
      if (!specs::is_root(table.groups[g]) && first <= table.groups[g].first_block &&
          table.groups[g].first_block <= last)
        numel += static_cast<double>(layout[g].numel);
    return numel;
  };
  const double root = m - 4 * numel_of_blocks(0, 5), turns = 4 * numel_of_blocks(4, 5);
  EXPECT_NEAR(cost_of("fsdp", three).traffic_bytes,
              kRing * (root + 6 * (m - root) - 3 * turns - 2 * 4 * numel_of_blocks(0, 1) + 3 * m), 1e-6 * m);
  // ZeRO++'s hpZ: backward gathers among 4 instead of 8.
  EXPECT_NEAR(traffic("hpz(group=4)"), kRing * 2 * m + 0.75 * (m - kept), 1e-6 * m);
}

TEST(StrategyPrograms, HoldWhatThePapersSay) {
  const ModelTable table = table_of("gpt2(layers=4, width=64, heads=4, sequence=32, vocabulary=256)");
  const double p = 4.0 * static_cast<double>(specs::total_numel(specs::even_layout(table, 8)));
  const auto cost = [&](const std::string& text) {
    return cost_of(choice_from_text(text).name, input_of(table, text, 8));
  };
  const auto expect = [&](const std::string& text, double parameters, double gradients, double optimizer) {
    const Cost held = cost(text);
    EXPECT_NEAR(held.parameter_bytes, parameters * p, 0.02 * p) << text;
    EXPECT_NEAR(held.gradient_bytes, gradients * p, 0.02 * p) << text;
    EXPECT_NEAR(held.optimizer_bytes, optimizer * 2 * p, 0.04 * p) << text;
  };
  expect("single", 1, 1, 1);
  expect("ddp", 1, 1, 1);
  expect("fsdp", 1 / 8.0, 1 / 8.0, 1 / 8.0);
  expect("fsdp(shard=gradients)", 1, 1 / 8.0, 1 / 8.0);
  expect("fsdp(shard=optimizer)", 1, 1, 1 / 8.0);
  expect("fsdp(group=2)", 1 / 2.0, 1 / 2.0, 1 / 2.0);
  const double again = 1 - 4 * gathered_once(table, specs::even_layout(table, 8)) / p;
  expect("hpz(group=4)", 1 / 8.0 + again / 4, 1 / 8.0, 1 / 8.0);
}

}  // namespace
}  // namespace shardmark::strategies
