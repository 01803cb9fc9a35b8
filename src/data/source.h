// A data source: samples by index. Which rank sees which sample is the sampler's business (sampler.h).
#pragma once

#include <memory>
#include <vector>

#include "base/registry.h"
#include "models/model.h"

namespace shardmark {

class DataSource {
 public:
  virtual ~DataSource() = default;
  virtual int64_t size() const = 0;  // samples
  // The samples of these indices, stacked, on the CPU. epoch: for augmentation, a function of (seed, epoch, index) alone.
  virtual Batch fetch(const std::vector<int64_t>& indices, int64_t epoch) const = 0;
};

struct DataContext {
  laws::SampleShape sample;
  at::ScalarType dtype;  // of images and rows
  int64_t seed;
};

// Registered by src/data/<name>.cpp.
struct DataEntry {
  std::string description;
  std::unique_ptr<DataSource> (*make)(const Options& options, const DataContext& context);
};

// From a resolved choice. UsageError: a missing or damaged file, with its name and where to get the set.
std::unique_ptr<DataSource> make_source(const Choice& choice, const DataContext& context);

}  // namespace shardmark
