// Batch norm over [B, C, H, W], with statistics of the local micro-batch, of all ranks, or constant ones.
#pragma once

#include "models/model.h"

namespace shardmark {

enum class BatchStatistics { local, sync, frozen };

BatchStatistics batch_statistics(const Options& options);  // the option batch_norm

struct BatchNorm {
  BatchStatistics statistics;
  const Model& model;  // sums over ranks, and knows whether it trains
  const at::Tensor &weight, &bias;
  at::Tensor &mean, &variance;  // running statistics, updated in place unless frozen

  BatchNorm(Model& owner, const std::string& name, BatchStatistics kind);
  at::Tensor operator()(const at::Tensor& x) const;
  // relu(norm(x) + added), or relu(norm(x)) if `added` is undefined.
  at::Tensor relu(const at::Tensor& x, const at::Tensor& added = {}) const;
  double momentum() const;  // of the running statistics; 0 while a block is recomputed

 private:
  bool has_kernels(const at::Tensor& x) const;
  at::Tensor by_kernels(const at::Tensor& x, const at::Tensor& added, bool relu) const;
};

}  // namespace shardmark
