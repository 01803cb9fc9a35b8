// Makes a source from a choice.
#include "data/source.h"

#include "specs/specs.h"

namespace shardmark {
namespace {

// read(begin, count): that part of the whole.
template <class Read>
uint64_t hash_pieces(int64_t size, uint64_t hash, Read read) {
  for_pieces(size, 16384, 4096, [&](int64_t begin, int64_t count) {
    hash = hash_bytes(read(static_cast<size_t>(begin), static_cast<size_t>(count)), hash);
  });
  return hash;
}

}  // namespace

std::unique_ptr<DataSource> make_source(const Choice& choice, const DataContext& context) {
  const DataEntry& entry = Registry<DataEntry>::instance().get(choice.name, "data source");
  const std::string mismatch = specs::data_specs().at(choice.name).mismatch(context.sample);
  if (!mismatch.empty())
    throw UsageError("data '" + choice.name + "': " + mismatch +
                     "; choose data that fits the model (synthetic fits all)");
  return entry.make(choice.options, context);
}

int64_t held_out_of(int64_t num_samples, const DataContext& context) {
  if (!context.holds_out) return 0;
  if (num_samples < 2)
    throw UsageError(
        "a single sample cannot be both trained on and held out; give more data, or shorten the sequence");
  return std::max<int64_t>(1, num_samples / 20);
}

uint64_t hash_content(std::span<const uint8_t> bytes, uint64_t hash) {
  const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return hash_pieces(std::ssize(all), hash,
                     [&](size_t begin, size_t count) { return all.substr(begin, count); });
}

uint64_t hash_content(const SampleFile& file, uint64_t hash) {
  std::string piece;
  return hash_pieces(file.size(), hash, [&](size_t begin, size_t count) {
    piece.resize(count);
    file.read(static_cast<int64_t>(begin), piece.data(), count);
    return std::string_view(piece);
  });
}

at::Tensor empty_on_host(at::IntArrayRef shape, at::ScalarType dtype, bool pinned) {
  return at::empty(shape, at::TensorOptions(dtype).pinned_memory(pinned));
}

}  // namespace shardmark
