// Makes a source from a choice, after checking that its samples fit the model.
#include "data/source.h"

#include "specs/specs.h"

namespace shardmark {
std::unique_ptr<DataSource> make_source(const Choice& choice, const DataContext& context) {
  const DataEntry& entry = Registry<DataEntry>::instance().get(choice.name, "data source");
  const std::string mismatch = specs::data_specs().at(choice.name).mismatch(context.sample);
  if (!mismatch.empty())
    throw UsageError("data '" + choice.name + "': " + mismatch +
                     "; choose data that fits the model (synthetic fits all)");
  if (const std::string reason = specs::documents_reason(choice, context.sample); !reason.empty())
    throw UsageError("data '" + choice.name + "': " + reason);
  return entry.make(choice.options, context);
}

int64_t held_out_of(int64_t num_samples, const DataContext& context) {
  if (!context.holds_out) return 0;
  if (num_samples < 2)
    throw UsageError(
        "a single sample cannot be both trained on and held out; give more data, or shorten the sequence");
  return std::max<int64_t>(1, num_samples / 20);
}

at::Tensor empty_on_host(at::IntArrayRef shape, at::ScalarType dtype, bool pinned) {
  return at::empty(shape, at::TensorOptions(dtype).pinned_memory(pinned));
}

}  // namespace shardmark
