// powersgd: multiplies gradient matrices by narrow factors, and orthonormalizes the left factors in between.
// Every rank does the latter by itself. All of them start from the same bits, and so end with the same bits.
#include <ATen/ops/linalg_qr.h>
#include <ATen/ops/mm.h>

#include "executor/reductions/reduction.h"
#include "models/initial.h"
#include "strategies/reductions/reduction.h"

namespace shardmark::powersgd {
namespace {

class PowerSgd final : public ReductionKernels {
 public:
  explicit PowerSgd(const KernelContext& context) : ranks_(context.ranks) {
    const auto rank = context.options.at("rank").get<int64_t>();
    for (const ReducedTensors& bucket : context.buckets)
      add_bucket(context, bucket, strategies::low_rank(context.model, context.layout, bucket.bucket, rank));
  }

  // left = residual right, which the first call sums over ranks.
  void pack(size_t index) override {
    BucketTensors& bucket = buckets_[index];
    bucket.residual.add_(bucket.gradients);
    for (Matrix& m : bucket.matrices) at::mm_out(m.left, m.residual, m.right);
    for (const Other& other : bucket.others) other.sent.copy_(other.residual);
  }

  // left becomes an orthonormal basis of its columns, and right = residual' left, which the second call sums
  // over ranks.
  void combine(size_t index) override {
    for (Matrix& m : buckets_[index].matrices) {
      const bool wide = m.left.element_size() > 2;  // LAPACK has no 16-bit types
      m.left.copy_(std::get<0>(at::linalg_qr(wide ? m.left : m.left.to(at::kFloat))));
      at::mm_out(m.right, m.residual.t(), m.left);
    }
  }

  // What was sent counts as sent by all ranks in equal shares, 1/N of the sum each.
  void unpack(size_t index) override {
    BucketTensors& bucket = buckets_[index];
    for (Matrix& m : bucket.matrices) {
      at::mm_out(m.gradients, m.left, m.right.t());
      m.residual.sub_(m.gradients, 1.0 / static_cast<double>(ranks_));
    }
    for (Other& other : bucket.others) {
      other.gradients.copy_(other.sent);
      other.residual.zero_();
    }
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
  struct BucketTensors {
    at::Tensor gradients, residual;  // [numel]
    std::vector<Matrix> matrices;
    std::vector<Other> others;
  };

  void add_bucket(const KernelContext& context, const ReducedTensors& tensors,
                  const strategies::LowRankBucket& cut) {
    const at::Tensor &gradients = tensors.gradients, &residual = tensors.scratch.at("residual");
    const at::Tensor &lefts = tensors.scratch.at("left factors"),
                     &rights = tensors.scratch.at("right factors");
    BucketTensors bucket{gradients, residual, {}, {}};
    int64_t left = 0, right = 0;
    for (const auto& m : cut.matrices) {
      const auto matrix = [&](const at::Tensor& flat, int64_t begin, int64_t rows, int64_t columns) {
        return flat.narrow(0, begin, rows * columns).view({rows, columns});
      };
      bucket.matrices.push_back(
          {matrix(gradients, m.begin, m.rows, m.columns), matrix(residual, m.begin, m.rows, m.columns),
           matrix(lefts, left, m.rows, m.rank), matrix(rights, right, m.columns, m.rank)});
      left += m.rows * m.rank;
      right += m.columns * m.rank;
      bucket.matrices.back().right.copy_(
          initial_value({"powersgd." + m.name, {m.columns, m.rank}, specs::Initial::normal, 1}, context.seed,
                        gradients.scalar_type()));
    }
    for (const specs::Range& other : cut.others) {
      bucket.others.push_back({gradients.narrow(0, other.begin, other.numel),
                               residual.narrow(0, other.begin, other.numel),
                               lefts.narrow(0, left, other.numel)});
      left += other.numel;
    }
    buckets_.push_back(std::move(bucket));
  }

  int64_t ranks_;
  std::vector<BucketTensors> buckets_;
};

const Registration<KernelsEntry> registered{
    "powersgd",
    {"matrices as products of two narrow ones",
     [](const KernelContext& context) -> std::unique_ptr<ReductionKernels> {
       return std::make_unique<PowerSgd>(context);
     }}};

}  // namespace
}  // namespace shardmark::powersgd
