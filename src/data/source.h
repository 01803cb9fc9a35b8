// A data source: samples by index. Which rank sees which sample is up to the sampler (data/order/sampler.h).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/registry.h"
#include "data/files/content.h"
#include "data/order/sampler.h"
#include "models/model.h"
#include "schema/content_hash.h"

namespace shardmark {

class DataSource {
 public:
  virtual ~DataSource() = default;
  virtual int64_t size() const = 0;  // samples to train on: indices [0, size)
  // Samples to evaluate on: indices [size, size + num_held_out). None unless the context asked for them.
  virtual int64_t num_held_out() const { return 0; }
  // A hash of the files behind it: hash_content() below. Empty: there are none.
  virtual std::string content() const { return {}; }
  // The drawn samples, stacked, on the CPU. pinned: in page-locked memory, from which a GPU copies without
  // the host. Called from several threads at once.
  virtual Batch fetch(const std::vector<Draw>& draws, bool pinned = false) const = 0;
};

struct DataContext {
  specs::SampleShape sample;
  at::ScalarType dtype;  // of images and rows
  int64_t seed;
  bool holds_out = false;   // keeps samples back for evaluation
  std::string folder = {};  // of the suite, for relative paths (base/glob.h)
};

// Registered by src/data/<name>.cpp.
struct DataEntry {
  std::string description;
  std::unique_ptr<DataSource> (*make)(const Options& options, const DataContext& context);
};

// From a resolved choice. UsageError: a missing or damaged file, with its name and where to get the set;
// samples that the model cannot take.
std::unique_ptr<DataSource> make_source(const Choice& choice, const DataContext& context);

// For sources without an evaluation set of their own: the last twentieth of their samples. UsageError with
// fewer than two.
int64_t held_out_of(int64_t num_samples, const DataContext& context);

// For the sources: an uninitialised tensor on the CPU, page-locked if pinned.
at::Tensor empty_on_host(at::IntArrayRef shape, at::ScalarType dtype, bool pinned);

}  // namespace shardmark
