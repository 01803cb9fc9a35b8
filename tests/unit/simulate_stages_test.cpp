// Simulates the programs of all stages of a pipeline together: every message has a sender and a receiver, and
// the step takes as long as its schedule predicts.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "pipeline_testing.h"
#include "strategies/serving.h"
#include "strategies/simulate.h"
#include "strategies/strategy.h"

namespace shardmark::strategies {
namespace {

using ::testing::HasSubstr;
using What = Instruction::What;

struct Drawn {
  std::string strategy, schedule = "1f1b", order = "dp-pp", model = "gpt2";
  int64_t stages = 2, micro_batches = 4, data = 1, tensor = 1, chunks = 1, layers = 4;
  bool own_gathers = false;
};

Point point_of(const Drawn& drawn) {
  Point point;
  point.workload = "training";
  TrainingPoint& t = point.training;
  t.model = choice_from_text(fmt::format("{}(layers={}, width=12, heads=2, sequence=8, vocabulary=17{})",
                                         drawn.model, drawn.layers,
                                         drawn.model == "llama" ? ", kv_heads=2, inner=20" : ""));
  t.model = resolve(t.model, specs::model_spec(t.model.name).options, "model");
  const Choice strategy = choice_from_text(drawn.strategy);
  t.strategy = resolve(strategy, strategies::strategy(strategy.name).options, "strategy");
  t.optimizer = {"sgd", {{"lr", 0.1}, {"momentum", 0.0}, {"weight_decay", 0.0}}};
  t.data = {"synthetic", {{"size", 64}}};
  t.precision = "fp32";
  t.batch_size = 2;
  t.accumulation = drawn.micro_batches;
  t.pipeline = drawn.stages;
  t.tensor = drawn.tensor;
  t.rank_order = drawn.order;
  t.gathers = drawn.own_gathers ? "own" : "shared";
  t.schedule = {drawn.schedule,
                drawn.schedule == "interleaved" ? Options{{"chunks", drawn.chunks}} : Options{}};
  point.ranks = drawn.stages * drawn.data * drawn.tensor;
  return point;
}

Drawn draw(std::mt19937& random) {
  const char* const strategies[] = {"ddp",   "fsdp",         "fsdp(shard=gradients)", "fsdp(shard=optimizer)",
                                    "zero3", "hpz(group=1)", "fsdp(prefetch=0)",      "single"};
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  Drawn drawn{strategies[below(8)], kPipelineSchedules[below(std::ssize(kPipelineSchedules))],
              below(2) == 0 ? "dp-pp" : "pp-dp", below(2) == 0 ? "gpt2" : "llama"};
  drawn.stages = 2 + below(5), drawn.micro_batches = 1 + below(40);
  drawn.data = 1 + below(3), drawn.tensor = 1 + below(2);
  drawn.chunks = usual_chunks(drawn.schedule);
  if (drawn.schedule == "interleaved") drawn.chunks = 2 + below(2);
  drawn.layers = drawn.stages * drawn.chunks + below(3);
  if (drawn.strategy == "single") drawn.data = 1;
  drawn.own_gathers = below(2) == 0;
  return drawn;
}

// Returns the programs of the ranks of one pipeline.
std::vector<Program> programs_of(const Point& point, int64_t data_index, bool norm, bool trains = true) {
  const specs::Mesh mesh = specs::mesh_of(point);
  const Strategy& how = strategy(point.training.strategy.name);
  std::vector<Program> programs;
  for (int64_t rank = 0; rank < point.ranks; ++rank) {
    if (mesh.data_index_of(rank) != data_index || mesh.tensor_group().index_of(rank) > 0) continue;
    const RankStep step(point, rank);
    StepInput input = step.input();
    input.norm = norm;
    programs.push_back(trains ? how.step(input) : how.evaluation(input));
  }
  return programs;
}

TEST(StagesTogether, MeetInEveryLayout) {
  std::mt19937 random(7);
  for (int drawn = 0; drawn < 1000;) {
    const Drawn layout = draw(random);
    const Point point = point_of(layout);
    if (!layout_impossible(point).empty()) continue;
    ++drawn;
    const int64_t last = layout.data - 1;
    for (const Serving serving : {Serving::own, Serving::launch_order}) {
      EXPECT_EQ(wrong_between(programs_of(point, 0, true), serving), "") << to_text(point);
      EXPECT_EQ(wrong_between(programs_of(point, last, false), serving), "") << to_text(point);
      EXPECT_EQ(wrong_between(programs_of(point, last, false, /*trains=*/false), serving), "")
          << to_text(point);
    }
    if (layout.schedule == "gpipe" || !serving_impossible(point, Serving::serial).empty()) continue;
    EXPECT_EQ(wrong_between(programs_of(point, 0, true), Serving::serial), "") << to_text(point);
  }
}

// All parts take equally long, 1 s forward and 2 s backward. The simulated step equals the schedule's
// timeline.
TEST(StagesTogether, TakeWhatTheScheduleTakes) {
  for (const char* schedule : kPipelineSchedules)
    for (const double latency_s : {0.0, 0.5}) {
      Drawn layout{"ddp", schedule};
      layout.stages = 4, layout.micro_batches = 8;
      layout.chunks = usual_chunks(schedule);
      layout.layers = layout.stages * layout.chunks - 1;  // one more block is the head
      Point point = point_of(layout);
      point.training.stages = "blocks";
      const std::vector<Program> programs = programs_of(point, 0, false);
      std::vector<SimulatedRank> ranks;
      for (const Program& program : programs) {
        SimulatedRank& rank = ranks.emplace_back();
        rank.program = &program;
        for (const specs::Chunk& chunk : program.chunks) {
          rank.compute.forward_s.resize(static_cast<size_t>(chunk.end), 0);
          rank.compute.forward_s[static_cast<size_t>(chunk.begin)] = 1;
        }
        for (const double forward_s : rank.compute.forward_s)
          rank.compute.backward_s.push_back(2 * forward_s);
        for (const CollectiveCall& call : program.calls)
          rank.operation_s.push_back(call.what == Collective::send_recv && !call.group ? latency_s : 0);
      }
      PipelineCosts costs;
      costs.latency_s = latency_s;
      const PipelineTimeline expected =
          PipelineLayout{schedule, layout.stages, layout.micro_batches, layout.chunks}.timeline(costs);
      const SimulatedStep step = simulate(ranks, 1);
      // Where parts go there and back, ranks that end early begin the next step: the last rank's first part
      // is needed later than rank 0's.
      const bool overlaps = placement_of(schedule) == Placement::v;
      EXPECT_NEAR(step.step_s, expected.length_s, latency_s > 0 || overlaps ? 0.15 * expected.length_s : 1e-9)
          << schedule;
      if (!overlaps) {
        EXPECT_GE(step.step_s, expected.length_s - 1e-9);
      }
      EXPECT_NEAR(step.compute_s, 3.0 * static_cast<double>(layout.chunks * layout.micro_batches), 1e-9);
      EXPECT_NEAR(step.waited_s[static_cast<size_t>(specs::Dimension::pipeline)], step.exposed_s, 1e-9);
    }
}

std::vector<Program> two_stages() {
  Drawn layout{"ddp"};
  layout.layers = 3;
  return programs_of(point_of(layout), 0, false);
}

size_t instruction_of(const Program& program, const std::function<bool(const CollectiveCall&)>& matches) {
  for (size_t i = 0; i < program.instructions.size(); ++i)
    if (program.instructions[i].what == What::start &&
        matches(program.calls[static_cast<size_t>(program.instructions[i].index)]))
      return i;
  throw std::out_of_range("no such call");
}

bool is_send(const CollectiveCall& call) { return call.what == Collective::send_recv && call.out.numel == 0; }

TEST(StagesTogether, AMessageThatIsNeverSent) {
  std::vector<Program> stages = two_stages();
  auto& instructions = stages[0].instructions;
  instructions.erase(instructions.begin() + static_cast<int64_t>(instruction_of(stages[0], is_send)));
  EXPECT_THAT(wrong_between(stages, Serving::own), HasSubstr("these wait for ever: stage"));
}

TEST(StagesTogether, AMessageOfAnotherLength) {
  std::vector<Program> stages = two_stages();
  for (CollectiveCall& call : stages[1].calls)
    if (is_send(call)) call.bytes /= 2, call.in.numel /= 2;
  EXPECT_THAT(wrong_between(stages, Serving::own),
              HasSubstr("stage 1 sends 384 bytes after backward of block"));
}

TEST(StagesTogether, AMessageWithoutAnEnd) {
  std::vector<Program> stages = two_stages();
  Program& first = stages[0];
  const CollectiveCall sent =
      first.calls[static_cast<size_t>(first.instructions[instruction_of(first, is_send)].index)];
  first.calls.push_back(sent);
  first.instructions.push_back({What::start, std::ssize(first.calls) - 1});
  EXPECT_NE(wrong_between(stages, Serving::own), "");
}

// Each stage receives before it sends.
TEST(StagesTogether, RanksThatWaitForEachOther) {
  const auto stage = [](int64_t own) {
    Program program;
    const specs::ProcessGroup pipeline{2, 1};
    CollectiveCall send{
        .what = Collective::send_recv, .bytes = 4, .process_group = pipeline, .root = 1 - own};
    CollectiveCall receive = send;
    send.in.numel = receive.out.numel = 1;
    send.lane = own, receive.lane = 1 - own;
    send.dimension = receive.dimension = specs::Dimension::pipeline;
    program.calls = {receive, send};
    for (const auto& [what, index] :
         {std::pair(What::start, 0), {What::wait, 0}, {What::start, 1}, {What::wait, 1}})
      program.instructions.push_back({what, index});
    return program;
  };
  std::vector<Program> both;
  both.push_back(stage(0));
  both.push_back(stage(1));
  EXPECT_EQ(wrong_between(both, Serving::own),
            "these wait for ever: stage 0 after its step begins, stage 1 after its step begins");
}

// On one communicator a rank sends to one other rank, or receives from one, whatever the schedule: its
// messages stay in order, and none waits for another pair's.
TEST(StagesTogether, HaveALaneForEachPairAndDirection) {
  for (const char* schedule : kPipelineSchedules)
    for (int64_t stages = 2; stages <= 9; ++stages) {
      Drawn layout{"ddp", schedule};
      layout.stages = stages, layout.micro_batches = 3;
      layout.chunks = usual_chunks(schedule);
      layout.layers = stages * layout.chunks;
      for (const Program& program : programs_of(point_of(layout), 0, false)) {
        std::map<int64_t, std::set<std::pair<bool, int64_t>>> uses;  // [lane]: (sends, other rank)
        for (const CollectiveCall& call : program.calls)
          if (call.what == Collective::send_recv && !call.group)
            uses[call.lane].emplace(call.in.numel > 0, call.root.value());
        EXPECT_FALSE(uses.empty());
        for (const auto& [lane, of_lane] : uses)
          EXPECT_EQ(of_lane.size(), 1u) << schedule << ", " << stages << " stages, lane " << lane;
      }
    }
}

// Whole backwards hide the sums of tensor ranks and their second gathers behind equally many products. The
// first part of a split one, which takes half as long, hides the gathers alone.
TEST(StagesTogether, HideWhatABlockExchangesBehindItsProducts) {
  std::map<std::string, std::pair<double, double>> hidden_by;  // [schedule]: the most of a gather, of a sum
  for (const char* schedule : {"1f1b", "zero_bubble"}) {
    Drawn layout{"ddp", schedule};
    layout.tensor = 2;
    Point point = point_of(layout);
    point.training.sequence_parallel = true;
    point.training.recompute = kGatheredInputs;
    auto& [of_gather, of_sum] = hidden_by[schedule];
    for (const Program& program : programs_of(point, 0, false))
      for (const CollectiveCall& call : program.calls) {
        if (!call.inside_block) continue;
        double& most = call.what == Collective::all_gather ? of_gather : of_sum;
        most = std::max(most, call.inside_block->hidden_by);
      }
  }
  EXPECT_DOUBLE_EQ(hidden_by["1f1b"].first, hidden_by["1f1b"].second);
  EXPECT_GT(hidden_by["1f1b"].first, 0.1);
  EXPECT_LE(hidden_by["1f1b"].first, 0.5);
  EXPECT_DOUBLE_EQ(hidden_by["zero_bubble"].first, 2 * hidden_by["1f1b"].first);
  EXPECT_EQ(hidden_by["zero_bubble"].second, 0);
}

}  // namespace
}  // namespace shardmark::strategies
