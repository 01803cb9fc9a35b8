// Checks that every gradient reduction must pass, as functions of a communicator. tests/mpi and tests/gpu run
// the same checks.
#pragma once

#include <gtest/gtest.h>

#include "strategies/reductions/reduction.h"
#include "tests/mpi/training_fixture.h"

namespace shardmark::checks {

inline constexpr const char* kReducedModel = "mlp(features=13, width=19, layers=3, classes=5)";
inline const std::vector<std::string> kLossy = {"cast(to=bf16)",   "cast(to=fp16)", "topk(ratio=0.01)",
                                                "topk(ratio=0.3)", "int8",          "powersgd(rank=2)"};

inline std::string ddp_with(const std::string& reduction) {
  return "ddp(bucket_mb=0.002, first_bucket_mb=0.001, reduction=" + reduction + ")";
}

// Runs one reduction on the gradients of a small model in several buckets. It executes nothing else of the
// ddp step.
struct Bench {
  // first, others: sizes of the first bucket and of the other buckets, in elements.
  Bench(Communicator& comm, const std::string& reduction, at::ScalarType dtype,
        const std::string& model_text = kReducedModel, size_t first = 256, size_t others = 512)
      : model(make_model(resolved_model(model_text), dtype, comm.device())),
        state(make_state({*model, comm, resolved_optimizer("sgd(lr=0)"), /*seed=*/7},
                         "ddp(first_bucket_mb=" + mb(first, dtype) + ", bucket_mb=" + mb(others, dtype) +
                             ", reduction=" + reduction + ")")),
        flat(state.memory().at(state.program().updated.front().gradients)) {}

  void reduce() {
    using What = strategies::Instruction::What;
    BoundProgram& step = state.step(/*with_norm=*/false);
    const auto& instructions = step.program().instructions;
    for (size_t i = 0; i < instructions.size(); ++i) {
      if (instructions[i].is_communication()) step.communicate(i);
      const What what = instructions[i].what;
      if (what == What::pack || what == What::combine || what == What::unpack) step.run_locally(i);
    }
  }
  // [numel]: true inside these ranges of each bucket
  at::Tensor mask(const std::function<std::vector<specs::Range>(const specs::Bucket&)>& ranges) const {
    at::Tensor mask = at::zeros_like(flat).to(at::kBool);
    int64_t begin = 0;
    for (const auto& [bucket, gradients, scratch, value_bytes] : buckets()) {
      for (const auto& range : ranges(bucket)) mask.narrow(0, begin + range.begin, range.numel).fill_(true);
      begin += gradients.numel;
    }
    return mask;
  }
  const std::vector<strategies::BucketMemory>& buckets() const { return state.program().buckets; }
  // [bucket]: the residual that error feedback keeps for the next step
  std::vector<at::Tensor> residuals() const {
    std::vector<at::Tensor> all;
    for (const auto& bucket : buckets()) all.push_back(state.memory().at(bucket.scratch.front()));
    return all;
  }
  at::Tensor residual() const { return at::cat(residuals()).clone(); }

  static std::string mb(size_t elements, at::ScalarType dtype) {
    return std::to_string(static_cast<double>(elements * at::elementSize(dtype)) / 1e6);
  }

  std::unique_ptr<Model> model;
  TrainingState state;
  at::Tensor flat;  // gradients of all buckets
};

// Returns integers as floats. Their sums are exact in any order.
inline at::Tensor whole_numbers(int64_t numel, int64_t seed, at::Device device) {
  at::manual_seed(static_cast<uint64_t>(seed));
  return at::randint(-1000, 1000, {numel}, at::kFloat).to(device);
}

// Summed over all ranks, the reduced gradient equals what was to be sent less the residual that is kept.
inline void reduction_top_k_loses_nothing(Communicator& comm) {
  Bench bench(comm, "topk(ratio=0.1)", at::kFloat);
  at::Tensor kept = at::zeros_like(bench.flat);
  for (int64_t step = 0; step < 4; ++step) {
    const at::Tensor to_send =
        kept + whole_numbers(bench.flat.numel(), 100 * step + comm.rank(), comm.device());
    bench.flat.copy_(to_send - kept);
    bench.reduce();
    kept = bench.residual();
    // This rank has sent the elements whose residual is 0. Each of them is sent completely.
    EXPECT_TRUE(at::logical_or(kept == to_send, kept == 0).all().item<bool>());
    at::Tensor sent = to_send - kept;
    EXPECT_LE(sent.count_nonzero().item<int64_t>(),
              bench.flat.numel() / 10 + 2 * static_cast<int64_t>(bench.buckets().size()));
    comm.all_reduce(sent, ReduceOp::sum).wait();
    EXPECT_TRUE(bench.flat.equal(sent)) << "step " << step;
  }
}

// Every element is sent eventually. Without new gradients, the remaining elements are sent in later steps,
// each of them once.
inline void reduction_top_k_sends_the_rest_later(Communicator& comm) {
  Bench bench(comm, "topk(ratio=0.25)", at::kFloat);
  at::Tensor expected = whole_numbers(bench.flat.numel(), comm.rank(), comm.device());
  bench.flat.copy_(expected);
  at::Tensor received = at::zeros_like(bench.flat);
  for (int step = 0; step < 4; ++step) {
    bench.reduce();
    received += bench.flat;
    bench.flat.zero_();
  }
  comm.all_reduce(expected, ReduceOp::sum).wait();
  EXPECT_TRUE(received.equal(expected));
  EXPECT_EQ(bench.residual().count_nonzero().item<int64_t>(), 0);
}

inline void reduction_top_k_sends_the_largest(Communicator& comm) {
  Bench bench(comm, "topk(ratio=0.25)", at::kDouble);
  bench.flat.copy_(whole_numbers(bench.flat.numel(), comm.rank(), comm.device()));
  const at::Tensor before = bench.flat.clone();
  bench.reduce();
  int64_t begin = 0;
  for (const at::Tensor& kept : bench.residuals()) {
    const at::Tensor mine = before.narrow(0, begin, kept.numel());
    const at::Tensor sent = mine.masked_select(kept != mine);
    EXPECT_GE(sent.abs().min().item<double>(), kept.abs().max().item<double>());
    begin += kept.numel();
  }
}

// The residual is exactly the part that the low-rank product does not contain. Vectors are sent completely.
inline void reduction_power_sgd_loses_nothing(Communicator& comm) {
  Bench bench(comm, "powersgd(rank=2)", at::kFloat);
  const at::Tensor is_matrix = bench.mask([&](const specs::Bucket& bucket) {
    std::vector<specs::Range> ranges;
    for (const auto& m :
         strategies::low_rank(bench.model->table(), bench.state.program().layout, bucket, 2).matrices)
      ranges.push_back({m.begin, m.rows * m.columns});
    return ranges;
  });
  const at::Tensor is_other = bench.mask([&](const specs::Bucket& bucket) {
    return strategies::low_rank(bench.model->table(), bench.state.program().layout, bucket, 2).others;
  });
  ASSERT_TRUE(is_matrix.any().item<bool>() && is_other.any().item<bool>());
  at::Tensor kept = at::zeros_like(bench.flat);
  for (int64_t step = 0; step < 4; ++step) {
    const at::Tensor gradients = whole_numbers(bench.flat.numel(), 100 * step + comm.rank(), comm.device());
    const at::Tensor to_send = kept + gradients;
    at::Tensor sum = to_send.clone();
    comm.all_reduce(sum, ReduceOp::sum).wait();
    bench.flat.copy_(gradients);
    bench.reduce();
    kept = bench.residual();
    const at::Tensor not_sent = at::sub(to_send, bench.flat, 1.0 / comm.size());
    EXPECT_TRUE(kept.masked_select(is_matrix).equal(not_sent.masked_select(is_matrix))) << "step " << step;
    EXPECT_TRUE(bench.flat.masked_select(is_other).equal(sum.masked_select(is_other))) << "step " << step;
    EXPECT_EQ(kept.masked_select(is_other).count_nonzero().item<int64_t>(), 0);
  }
}

// An element is off by at most half a quantization step of its block, once for every sending rank and once
// for the sum.
inline void reduction_int8_rounds_to_its_scale(Communicator& comm) {
  Bench bench(comm, "int8", at::kFloat);
  bench.flat.copy_(whole_numbers(bench.flat.numel(), comm.rank(), comm.device()));
  at::Tensor exact = bench.flat.clone();
  comm.all_reduce(exact, ReduceOp::sum).wait();
  bench.reduce();
  const double sent = 1000.0 * comm.size(), step = 1.001 / 127;
  EXPECT_LE((bench.flat - exact).abs().max().item<double>(), (sent + sent * (1 + step)) * step / 2);
  EXPECT_FALSE(bench.flat.equal(exact));
  bench.flat.fill_(std::nan(""));
  bench.reduce();
  EXPECT_TRUE(bench.flat.isnan().all().item<bool>()) << "what is no number must not pass as one";
  bench.flat.zero_();
  bench.reduce();
  EXPECT_EQ(bench.flat.count_nonzero().item<int64_t>(), 0);
}

inline void reduction_keep_replicas_bit_equal(Communicator& comm) {
  std::vector<std::string> all = kLossy;
  all.emplace_back("plain");
  for (const auto& reduction : all) {
    const Outcomes run =
        train({kReducedModel, "adamw(lr=0.01)", at::kFloat, 2, 2, 6}, ddp_with(reduction), comm);
    for (const auto& [name, value] : run.parameters) {
      const at::Tensor of_root = value.clone().to(comm.device());  // the visitor copies to the CPU
      comm.broadcast(of_root, 0).wait();
      EXPECT_TRUE(value.equal(of_root.cpu())) << reduction << " " << name;
    }
  }
}

// With a lossy reduction the loss decreases, though to different values.
inline void reduction_loss_falls(Communicator& comm) {
  for (const auto& reduction : kLossy) {
    const Outcomes run =
        train({kReducedModel, "sgd(lr=0.05)", at::kFloat, 8, 1, 60}, ddp_with(reduction), comm);
    EXPECT_LT(run.losses.back(), 0.9 * run.losses.front()) << reduction;
  }
}

inline void reduction_without_loss_equal_plain(Communicator& comm) {
  for (const auto& optimizer : {"sgd(lr=0.05)", "adamw(lr=0.001, eps=1e-5)"}) {
    // There are at most four samples, so the gradients of matrices have a rank of at most 4.
    const Case c{kReducedModel, optimizer, at::kDouble, 1};
    const Outcomes plain = train(c, ddp_with("plain"), comm);
    for (const auto* reduction : {"topk(ratio=1)", "powersgd(rank=4)"}) {
      const Outcomes run = train(c, ddp_with(reduction), comm);
      EXPECT_LE(parameter_error(run, plain), 1e-10) << reduction << " " << optimizer;
    }
  }
}

// A cast differs from the plain sum only by rounding: half a unit in the last place of each type in the cast
// and in the sum.
inline void reduction_cast_rounds_twice(Communicator& comm) {
  for (const auto& [to, unit] : {std::pair("bf16", 0x1p-8), std::pair("fp16", 0x1p-11)}) {
    Bench bench(comm, std::string("cast(to=") + to + ")", at::kFloat);
    bench.flat.copy_(whole_numbers(bench.flat.numel(), comm.rank(), comm.device()) / 3);
    at::Tensor exact = bench.flat.clone(), sizes = bench.flat.abs();
    comm.all_reduce(exact, ReduceOp::sum).wait();
    comm.all_reduce(sizes, ReduceOp::sum).wait();
    bench.reduce();
    EXPECT_TRUE(((bench.flat - exact).abs() <= 2 * unit * sizes).all().item<bool>()) << to;
    EXPECT_FALSE(bench.flat.equal(exact)) << to;
  }
}

// Counts the bytes that are sent, compared with a ring all-reduce of the same gradients. Top-k with 32-bit
// indices saves a factor of 1/(r N), which is 50 for 2 ranks and 25 for 4 ranks with r = 0.01, apart from the
// rounding of k in each bucket. 16-bit types save a factor of 2.
inline void reduction_save_the_bytes_that_they_promise(Communicator& comm) {
  if (comm.size() == 1) GTEST_SKIP() << "nothing moves";
  const auto bytes = [&](const std::string& reduction) {
    Bench bench(comm, reduction, at::kFloat, "mlp(features=512, width=512)", 100000, 100000);
    bench.flat.normal_();
    comm.reset_traffic();
    bench.reduce();
    return comm.traffic().ring_bytes;
  };
  const double plain = bytes("plain");
  EXPECT_NEAR(plain / bytes("topk(ratio=0.01)") * 0.01 * comm.size(), 1, 0.001);
  EXPECT_NEAR(plain / bytes("int8"), 4.0 * 256 / 260, 0.02);
  EXPECT_EQ(plain / bytes("cast(to=bf16)"), 2);
  EXPECT_EQ(plain / bytes("cast(to=fp16)"), 2);
}

}  // namespace shardmark::checks
