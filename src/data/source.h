// A data source returns samples by index. The sampler decides which rank sees which sample
// (data/order/sampler.h).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/registry.h"
#include "data/files/sample_file.h"
#include "data/order/sampler.h"
#include "models/model.h"
#include "schema/content_hash.h"

namespace shardmark {

class DataSource {
 public:
  virtual ~DataSource() = default;
  // The number of samples to train on; their indices are [0, size).
  virtual int64_t size() const = 0;
  // The number of samples to evaluate on, with indices [size, size + num_held_out). 0 unless the context
  // asked for them.
  virtual int64_t num_held_out() const { return 0; }
  // A hash of the files behind the source (files/sample_file.h); empty if there are none.
  virtual std::string content() const { return {}; }
  // Returns the drawn samples, stacked, on the CPU. With `pinned` they are in page-locked memory, from which
  // a GPU copies asynchronously. May be called from several threads at once.
  virtual Batch fetch(const std::vector<Draw>& draws, bool pinned = false) const = 0;
};

struct DataContext {
  specs::SampleShape sample;
  at::ScalarType dtype;  // of images and rows
  int64_t seed;
  bool holds_out = false;   // keep samples back for evaluation
  std::string folder = {};  // the suite's, for relative paths (base/glob.h)
};

// Each src/data/<name>.cpp registers one.
struct DataEntry {
  std::string description;
  std::unique_ptr<DataSource> (*make)(const Options& options, const DataContext& context);
};

// Makes the source of a resolved choice. Throws UsageError if a file is missing or damaged, naming the file
// and where to get the data set, or if the model cannot take the samples.
std::unique_ptr<DataSource> make_source(const Choice& choice, const DataContext& context);

// The number of samples to hold out, for sources without an evaluation set of their own: the last twentieth.
// Throws UsageError if there are fewer than two samples.
int64_t held_out_of(int64_t num_samples, const DataContext& context);

// For sources: returns an uninitialised tensor on the CPU, page-locked if `pinned`.
at::Tensor empty_on_host(at::IntArrayRef shape, at::ScalarType dtype, bool pinned);

}  // namespace shardmark
