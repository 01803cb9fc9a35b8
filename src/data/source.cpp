// Makes a source from a choice.
#include "data/source.h"

#include <algorithm>

#include "specs/specs.h"

namespace shardmark {
namespace {

// read(begin, count): that part of the whole.
template <class Read>
uint64_t hash_pieces(size_t size, uint64_t hash, Read read) {
  constexpr size_t kPieces = 4096, kPieceBytes = 16384;
  if (size <= kPieces * kPieceBytes) {
    for (size_t begin = 0; begin < size; begin += kPieceBytes)
      hash = hash_bytes(read(begin, std::min(kPieceBytes, size - begin)), hash);
    return hash;
  }
  const size_t last = size - kPieceBytes;
  for (size_t i = 0; i < kPieces; ++i) hash = hash_bytes(read(last * i / (kPieces - 1), kPieceBytes), hash);
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
  return hash_pieces(all.size(), hash, [&](size_t begin, size_t count) { return all.substr(begin, count); });
}

uint64_t hash_content(const SampleFile& file, uint64_t hash) {
  std::string piece;
  return hash_pieces(static_cast<size_t>(file.size()), hash, [&](size_t begin, size_t count) {
    piece.resize(count);
    file.read(static_cast<int64_t>(begin), piece.data(), count);
    return std::string_view(piece);
  });
}

at::Tensor empty_on_host(at::IntArrayRef shape, at::ScalarType dtype, bool pinned) {
  return at::empty(shape, at::TensorOptions(dtype).pinned_memory(pinned));
}

}  // namespace shardmark
