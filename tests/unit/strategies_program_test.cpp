// Tests the programs of all strategies over many models, numbers of ranks and options. They satisfy all
// checks, invalid programs are refused with a message, and their totals match the formulas of the papers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "specs/specs.h"
#include "strategies/paper.h"
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

// Returns a random value that an option of a strategy accepts.
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
      input.fused_update = random() % 2 == 0;
      if (random() % 2 == 0) input.bytes = {2, 4, random() % 2 == 0 ? 2 : 4};
      if (!entry.impossible(input).empty()) continue;
      SCOPED_TRACE(text + " on " + std::to_string(ranks) + " ranks");
      const Program first = entry.step(input);  // the strategy throws if its program is invalid
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
  Instruction& wait = first(
      p, What::wait, 1);  // the wait for the first block's gather is moved after the forward of that block
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
  const Instruction zero = first(p, What::zero);  // clears a slot before the backward of a block
  for (size_t i = 0; i < p.instructions.size(); ++i)
    if (p.instructions[i].what == What::start &&
        p.calls[size_t(p.instructions[i].index)].what == specs::Collective::reduce_scatter) {
      p.instructions.insert(p.instructions.begin() + static_cast<int64_t>(i) + 1, zero);
      break;
    }
  EXPECT_THAT(wrong(p), HasSubstr("is written while a call in flight uses it"));
}

// Two calls read overlapping memory. When one of them ends, the other still reads.
TEST_F(WrongProgram, MemoryThatASecondCallStillReads) {
  for (const auto& [begin, numel] : {std::pair{0, 4}, {0, 8}, {2, 6}}) {
    Program p = program();
    p.buffers.push_back({"memory", Use::transient, Element::compute, 12, 12});
    p.buffers.push_back({"outputs", Use::transient, Element::compute, 16, 16});
    const int64_t memory = std::ssize(p.buffers) - 2, outputs = memory + 1, one = std::ssize(p.calls);
    p.calls.push_back({specs::Collective::all_reduce, 32, {4, 1}, -1, {outputs, 0, 8}, {memory, 0, 8}});
    p.calls.push_back({specs::Collective::all_reduce,
                       static_cast<double>(4 * numel),
                       {4, 1},
                       -1,
                       {outputs, 8, numel},
                       {memory, begin, numel}});
    const Instruction zero = first(p, What::zero);
    Instruction write = zero;
    write.from = write.to = {memory, begin + numel - 1, 1};
    const std::vector<Instruction> all = {
        {What::start, one}, {What::start, one + 1}, {What::wait, one}, write};
    p.instructions.insert(p.instructions.end(), all.begin(), all.end());
    EXPECT_THAT(wrong(p), HasSubstr("is written while a call in flight uses it")) << begin;
  }
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

// Compares programs with the formulas of their papers. The model has tensors that need little padding. Whole
// tensors are distributed as evenly as possible, so the largest share exceeds P/N by less than one tensor.
TEST(StrategyPrograms, HoldAndMoveWhatThePapersSay) {
  const ModelTable table = table_of("gpt2(layers=4, width=256, heads=4, sequence=128, vocabulary=512)");
  for (const char* text :
       {"single", "ddp", "ddp(reduction=cast)", "ddp(reduction=int8)", "ddp(reduction=topk(ratio=0.1))",
        "ddp(reduction=powersgd(rank=4))", "fsdp", "fsdp(prefetch=0)", "fsdp(prefetch=3)", "fsdp(prefetch=9)",
        "fsdp(shard=gradients)", "fsdp(shard=optimizer)", "fsdp(group=4)", "fsdp(group=2, shard=gradients)",
        "fsdp(offload=optimizer)", "hpz(group=4)", "hpz(group=2, prefetch=2)", "zero3",
        "zero3(persistence=1000)"})
    for (const char* precision : {"fp32", "bf16", "fp64", "bf16, updated in one pass"})
      for (const int64_t micro_batches : {1, 2, 3}) {
        SCOPED_TRACE(fmt::format("{} {} {}", text, precision, micro_batches));
        StepInput input = input_of(table, text, 8);
        input.fused_update = precision == std::string("bf16, updated in one pass");
        input.bytes = specs::element_bytes(input.fused_update ? "bf16" : precision, "same");
        input.accumulation = micro_batches;
        const Strategy& entry = strategy(choice_from_text(text).name);
        if (!entry.impossible(input).empty()) continue;
        const Cost program = cost_of(entry.step(input), input), paper = entry.paper(input);
        const double p = 4.0 * static_cast<double>(table.num_parameters());
        const bool deals_tensors = choice_from_text(text).name == "zero3";
        const auto expect_near = [&](double held, double said, double tensor_bytes = 0) {
          if (std::isnan(said)) return;
          EXPECT_GE(held, 0.97 * said - 0.003 * p);
          EXPECT_LE(held, 1.03 * said + 0.003 * p + (deals_tensors ? tensor_bytes : 0));
        };
        const Sizes s(input);
        expect_near(program.parameter_bytes, paper.parameter_bytes, s.largest_tensor * s.master);
        expect_near(program.gradient_bytes, paper.gradient_bytes, s.largest_tensor * s.master);
        expect_near(program.optimizer_bytes, paper.optimizer_bytes, s.largest_tensor * s.state);
        expect_near(program.transient_bytes, paper.transient_bytes);
        expect_near(program.offloaded_bytes, paper.offloaded_bytes);
        expect_near(program.traffic_bytes, paper.traffic_bytes);
      }
}

// Experts that ranks share cost as much as if they were a model of their own on the ranks that have the same
// ones, whose blocks use the slots together with those of the rest.
TEST(StrategyPrograms, HoldAndMoveSharedExpertsLikeAModelOfTheirOwn) {
  constexpr int64_t kRanks = 8;
  const ModelTable whole = table_of(
      "moe(layers=4, width=256, heads=4, kv_heads=2, inner=256, sequence=64, vocabulary=128, experts=8)");
  for (const int64_t expert : {2, 4, 8}) {
    ModelTable table = specs::split_table(whole, {.expert = expert});
    for (specs::BlockSpec& block : table.blocks)
      block.forward_calls = block.backward_calls = block.evaluation_calls = {};
    ModelTable others = table, own = table;
    std::erase_if(others.groups, [](const specs::GroupSpec& group) { return group.has_own_experts(); });
    // The head has no experts, but uses a slot, too: it becomes a group of one element.
    std::erase_if(own.groups, [&](const specs::GroupSpec& group) {
      return !group.has_own_experts() &&
             table.blocks[static_cast<size_t>(group.first_block)].expert_tokens.has_value();
    });
    for (specs::GroupSpec& group : own.groups)
      if (!group.has_own_experts()) group.parameters = {{"one", {1}}};
    for (const auto& [text, group] : {std::pair("ddp", int64_t{0}),
                                      {"fsdp(shard=optimizer)", 0},
                                      {"fsdp(shard=gradients)", 0},
                                      {"fsdp", 0},
                                      {"fsdp(prefetch=2)", 0},
                                      {"fsdp(offload=optimizer)", 0},
                                      {"fsdp", 1},
                                      {"fsdp", 2},
                                      {"fsdp", 4},
                                      {"fsdp(shard=optimizer)", 2},
                                      {"hpz", 0},
                                      {"hpz", 2},
                                      {"zero3", 0},
                                      {"zero3(persistence=1000)", 0}})
      for (const int64_t micro_batches : {1, 3}) {
        SCOPED_TRACE(fmt::format("{} {} expert {}, {} micro-batches", text, group, expert, micro_batches));
        const Strategy& entry = strategy(choice_from_text(text).name);
        const auto input_with = [&](const ModelTable& model, int64_t ranks, int64_t of_group) {
          StepInput input = input_of(model, text, ranks);
          if (input.options.contains("group")) input.options["group"] = of_group;
          input.accumulation = micro_batches;
          input.mesh.data = ranks;
          return input;
        };
        StepInput input = input_with(table, kRanks, group);
        input.mesh.expert = expert;
        const Cost found = cost_of(entry.step(input), input);
        const StepInput of_own =
            input_with(own, kRanks / expert, group == 0 ? 0 : std::max<int64_t>(1, group / expert));
        const Cost a = entry.paper(input_with(others, kRanks, group)), b = entry.paper(of_own);
        const double tensor = choice_from_text(text).name == "zero3" ? Sizes(of_own).largest_tensor * 4 : 0;
        const double p = 4.0 * static_cast<double>(table.num_parameters());
        const auto expect_near = [&](double held, double said, double more) {
          EXPECT_GE(held, 0.99 * said - 0.01 * p);
          EXPECT_LE(held, 1.01 * said + 0.01 * p + more);  // groups are padded
        };
        expect_near(found.parameter_bytes, a.parameter_bytes + b.parameter_bytes, tensor);
        expect_near(found.gradient_bytes, a.gradient_bytes + b.gradient_bytes, tensor);
        expect_near(found.optimizer_bytes, a.optimizer_bytes + b.optimizer_bytes, 2 * tensor);
        expect_near(found.transient_bytes, a.transient_bytes + b.transient_bytes, 0);
        expect_near(found.offloaded_bytes, a.offloaded_bytes + b.offloaded_bytes, 4 * tensor);
        expect_near(found.traffic_bytes, a.traffic_bytes + b.traffic_bytes, 0);
      }
  }
}

// Note [Update in one pass]: this saves 4 bytes per parameter, and nothing is copied or zeroed after the
// update. It is not possible if micro-batches are accumulated in fp32 or gradients are reduced in fp32.
TEST(StrategyPrograms, UpdateInOnePassWhereGradientsStayInTheirType) {
  const ModelTable table = table_of("gpt2(layers=2, width=24, heads=3, sequence=11, vocabulary=37)");
  const auto step = [&](const char* text, const char* reduce, int64_t micro_batches, bool fused) {
    StepInput input = input_of(table, text, 4);
    input.bytes = specs::element_bytes("bf16", reduce);
    input.accumulation = micro_batches;
    input.fused_update = fused;
    return strategy(choice_from_text(text).name).step(input);
  };
  const auto saved = [&](const char* text, const char* reduce, int64_t micro_batches) {
    const auto held = [](const Program& program) {
      int64_t numel = 0;
      for (const Buffer& buffer : program.buffers)
        if (buffer.element == Element::master) numel += buffer.numel;
      return numel;
    };
    return held(step(text, reduce, micro_batches, false)) - held(step(text, reduce, micro_batches, true));
  };
  for (const auto& [text, reduce, micro_batches] :
       {std::tuple("single", "same", int64_t{1}), {"ddp", "same", int64_t{1}}, {"ddp", "same", int64_t{3}}}) {
    EXPECT_GE(saved(text, reduce, micro_batches), table.num_parameters()) << text;
    const Program program = step(text, reduce, micro_batches, true);
    EXPECT_EQ(program.instructions.back().what, What::apply) << text;
    EXPECT_EQ(program.updated.front().copy.numel, program.updated.front().parameters.numel);
  }
  EXPECT_EQ(saved("single", "same", 3), 0);
  EXPECT_EQ(saved("ddp", "fp32", 1), 0);
  EXPECT_EQ(saved("fsdp", "same", 1), 0);
}

// The formulas have the form in which the papers write them.
TEST(StrategyPrograms, FormulasAreThoseOfThePapers) {
  const ModelTable table = table_of("mlp(features=64, width=64, layers=8, classes=64)");
  const double p = 8 * (64 * 64 + 64), m = 4 * p, kept = 2 * m / 8;  // two of eight equal blocks
  const auto of = [&](const std::string& text) {
    return strategy(choice_from_text(text).name).paper(input_of(table, text, 8));
  };
  EXPECT_DOUBLE_EQ(of("single").parameter_bytes + of("single").gradient_bytes + of("single").optimizer_bytes,
                   16 * p);
  EXPECT_DOUBLE_EQ(of("single").traffic_bytes, 0);
  EXPECT_DOUBLE_EQ(of("ddp").traffic_bytes, 2 * 7 / 8.0 * m);
  EXPECT_DOUBLE_EQ(of("fsdp").traffic_bytes, 7 / 8.0 * (3 * m - kept));
  EXPECT_DOUBLE_EQ(of("fsdp").parameter_bytes, m / 8);
  EXPECT_DOUBLE_EQ(of("fsdp(shard=gradients)").traffic_bytes, 2 * 7 / 8.0 * m);
  EXPECT_DOUBLE_EQ(of("fsdp(shard=gradients)").parameter_bytes, m);
  EXPECT_DOUBLE_EQ(of("fsdp(shard=gradients)").gradient_bytes, m / 8);
  EXPECT_DOUBLE_EQ(of("fsdp(shard=optimizer)").traffic_bytes, 2 * 7 / 8.0 * m);
  EXPECT_DOUBLE_EQ(of("fsdp(shard=optimizer)").gradient_bytes, m);
  EXPECT_DOUBLE_EQ(of("fsdp(shard=optimizer)").optimizer_bytes, 2 * m / 8);
  EXPECT_DOUBLE_EQ(of("fsdp(group=4)").traffic_bytes, 3 / 4.0 * (3 * m - kept) + 2 * 1 / 2.0 * m / 4);
  EXPECT_DOUBLE_EQ(of("hpz(group=4)").traffic_bytes, 7 / 8.0 * 2 * m + 3 / 4.0 * (m - kept));
  EXPECT_DOUBLE_EQ(of("hpz(group=4)").parameter_bytes, m / 8 + (m - kept) / 4);
}

}  // namespace
}  // namespace shardmark::strategies
