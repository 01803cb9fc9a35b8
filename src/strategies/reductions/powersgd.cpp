// powersgd: each matrix M of gradients (with what was not sent before) as P Q', where P is an orthonormal
// basis of M Q for the Q of the step before, and Q then is M' P; both are sums over ranks. Source: Vogels et
// al., NeurIPS 2019, algorithms 1 and 2. P is made orthonormal on every rank by itself: from the same bits,
// so to the same bits.
#include <ATen/ops/linalg_qr.h>
#include <ATen/ops/mm.h>

#include "device/meter.h"
#include "laws/compressed.h"
#include "models/initial.h"
#include "strategies/reductions/reduction.h"

namespace shardmark {
namespace {

class PowerSgd final : public Reduction {
 public:
  explicit PowerSgd(const ReductionContext& context) : comm_(context.comm) {
    const auto rank = context.options.at("rank").get<int64_t>();
    for (size_t b = 0; b < context.buckets.size(); ++b)
      add_bucket(context, laws::low_rank(context.model, context.layout, context.buckets[b], rank),
                 context.gradients[b]);
  }

  void start(size_t index) override {
    Bucket& bucket = buckets_[index];
    bucket.residual.add_(bucket.gradients);
    for (Matrix& m : bucket.matrices) at::mm_out(m.left, m.residual, m.right);
    for (const Other& other : bucket.others) other.sent.copy_(other.residual);
    bucket.work = comm_.all_reduce(bucket.left, ReduceOp::sum);
  }

  void finish() override {
    for (Bucket& bucket : buckets_) {
      bucket.work.wait();
      for (Matrix& m : bucket.matrices) {
        const bool wide = m.left.element_size() > 2;  // LAPACK has no 16-bit types
        m.left.copy_(std::get<0>(at::linalg_qr(wide ? m.left : m.left.to(at::kFloat))));
        at::mm_out(m.right, m.residual.t(), m.left);
      }
      if (!bucket.matrices.empty()) bucket.work = comm_.all_reduce(bucket.right, ReduceOp::sum);
    }
    for (Bucket& bucket : buckets_) {
      bucket.work.wait();
      unpack(bucket);
    }
  }

  std::vector<at::Tensor> residuals() const override {
    std::vector<at::Tensor> all;
    all.reserve(buckets_.size());
    for (const Bucket& bucket : buckets_) all.push_back(bucket.residual);
    return all;
  }

 private:
  struct Matrix {
    at::Tensor gradients, residual;  // [rows, columns]
    at::Tensor left;                 // P: [rows, rank]
    at::Tensor right;                // Q: [columns, rank]
  };
  struct Other {
    at::Tensor gradients, residual, sent;  // [numel]
  };
  struct Bucket {
    at::Tensor gradients, residual;  // [numel]
    at::Tensor left;                 // the left factors and the others: the first message
    at::Tensor right;                // the right factors: the second
    std::vector<Matrix> matrices;
    std::vector<Other> others;
    Work work;
  };

  at::Tensor allocate(MemoryUse use, int64_t numel, const at::Tensor& like) {
    const meter::Scope scope(use);
    return comm_.allocate(numel, like.scalar_type());
  }

  void add_bucket(const ReductionContext& context, const laws::LowRankBucket& cut,
                  const at::Tensor& gradients) {
    Bucket bucket{gradients,
                  allocate(MemoryUse::gradients, gradients.numel(), gradients),
                  allocate(MemoryUse::transient, cut.left_numel, gradients),
                  allocate(MemoryUse::gradients, cut.right_numel, gradients),
                  {},
                  {},
                  {}};
    int64_t left = 0, right = 0;
    for (const auto& m : cut.matrices) {
      const auto matrix = [&](const at::Tensor& flat, int64_t begin, int64_t rows, int64_t columns) {
        return flat.narrow(0, begin, rows * columns).view({rows, columns});
      };
      bucket.matrices.push_back(
          {matrix(gradients, m.begin, m.rows, m.columns), matrix(bucket.residual, m.begin, m.rows, m.columns),
           matrix(bucket.left, left, m.rows, m.rank), matrix(bucket.right, right, m.columns, m.rank)});
      left += m.rows * m.rank;
      right += m.columns * m.rank;
      bucket.matrices.back().right.copy_(
          initial_value({"powersgd." + m.name, {m.columns, m.rank}, laws::Initial::normal, 1}, context.seed,
                        gradients.scalar_type()));
    }
    for (const laws::Range& other : cut.others) {
      bucket.others.push_back({gradients.narrow(0, other.begin, other.numel),
                               bucket.residual.narrow(0, other.begin, other.numel),
                               bucket.left.narrow(0, left, other.numel)});
      left += other.numel;
    }
    buckets_.push_back(std::move(bucket));
  }

  // Every rank's share of what was sent is the same, 1/N of the sum.
  void unpack(Bucket& bucket) {
    for (Matrix& m : bucket.matrices) {
      at::mm_out(m.gradients, m.left, m.right.t());
      m.residual.sub_(m.gradients, 1.0 / comm_.size());
    }
    for (Other& other : bucket.others) {
      other.gradients.copy_(other.sent);
      other.residual.zero_();
    }
  }

  Communicator& comm_;
  std::vector<Bucket> buckets_;
};

std::unique_ptr<Reduction> make(const ReductionContext& context) {
  return std::make_unique<PowerSgd>(context);
}

const Registration<ReductionEntry> registered{"powersgd", {"matrices as products of two narrow ones", make}};

}  // namespace
}  // namespace shardmark
