// The one way from a choice to a source, and what all sources check.
#include "data/source.h"

namespace shardmark {
namespace {

std::string kind_name(laws::SampleShape::Kind kind) {
  switch (kind) {
    case laws::SampleShape::Kind::image:
      return "images";
    case laws::SampleShape::Kind::tokens:
      return "tokens";
    case laws::SampleShape::Kind::rows:
      return "rows";
  }
  return "?";
}

}  // namespace

std::unique_ptr<DataSource> make_source(const Choice& choice, const DataContext& context) {
  return Registry<DataEntry>::instance().get(choice.name, "data source").make(choice.options, context);
}

void require_sample(const std::string& source, const DataContext& context, laws::SampleShape::Kind kind,
                    int64_t num_classes) {
  if (context.sample.kind != kind)
    throw UsageError("data '" + source + "' gives " + kind_name(kind) + ", the model takes " +
                     kind_name(context.sample.kind) +
                     "; choose data that fits the model (synthetic fits all)");
  if (context.sample.num_classes < num_classes)
    throw UsageError("data '" + source + "' has targets up to " + std::to_string(num_classes - 1) +
                     ", the model knows " + std::to_string(context.sample.num_classes) + " (0 to " +
                     std::to_string(context.sample.num_classes - 1) + "); give the model at least " +
                     std::to_string(num_classes) +
                     (kind == laws::SampleShape::Kind::tokens ? " tokens of vocabulary" : " classes"));
}

at::Tensor empty_on_host(at::IntArrayRef shape, at::ScalarType dtype, bool pinned) {
  return at::empty(shape, at::TensorOptions(dtype).pinned_memory(pinned));
}

}  // namespace shardmark
