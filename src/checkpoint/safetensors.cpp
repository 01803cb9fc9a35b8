// Header, data and checksum of safetensors files.
#include "checkpoint/safetensors.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <ranges>

#include "base/error.h"
#include "schema/content_hash.h"
#include "schema/json.h"

namespace shardmark {
namespace {

using Event = nlohmann::ordered_json::parse_event_t;
using List = nlohmann::ordered_json::array_t;
using Object = nlohmann::ordered_json::object_t;

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr int64_t kSizeBytes = 8;
constexpr int64_t kLargestHeader = 100'000'000;  // the limit of the format's own library
constexpr int kDeepest = 3;                      // depth of a number in a tensor's shape
constexpr const char* kIndex = ".json";
constexpr const char* kMetadata = "__metadata__";
// Keys in the metadata. Files of earlier versions have the slower one (schema/content_hash.h).
constexpr const char *kFastHash = "xxh3", *kChecksum = "checksum";

const std::map<std::string, at::ScalarType>& dtypes() {
  static const std::map<std::string, at::ScalarType> types = {
      {"F64", at::kDouble}, {"F32", at::kFloat}, {"F16", at::kHalf}, {"BF16", at::kBFloat16}};
  return types;
}

std::string dtype_name(at::ScalarType type) {
  for (const auto& [name, known] : dtypes())
    if (known == type) return name;
  ENSURE(false, "a tensor that is not floating");
}

std::string_view bytes_of(const at::Tensor& tensor) {
  return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

}  // namespace

// The header comes first in the file, but its contents are known last. So room for it is left at the start,
// filled with blanks, which JSON allows, and the tensors are appended behind it. A state is written tensor
// by tensor like this, and is never in memory as a whole. The temporary file disappears with this object
// unless finish() renames it.
SafetensorsWriter::SafetensorsWriter(const std::string& path, int64_t header_room)
    : path_(follow_links(path)), header_room_((header_room + 1023) / 1024 * 1024), beside_(path_) {
  if (!beside_) fail_to_write(beside_.name());
  require_regular(path_);
  file_ = AppendFile(open_or_create(beside_.name(), O_RDWR), beside_.name());
  file_.write(std::string(static_cast<size_t>(kSizeBytes + header_room_), ' '));
}

void SafetensorsWriter::add(const std::string& name, const at::Tensor& value) {
  at::Tensor tensor = value.contiguous();
  const std::string_view bytes = bytes_of(tensor);
  const int64_t begin = file_.size() - kSizeBytes - header_room_;
  header_[name] = {{"dtype", dtype_name(tensor.scalar_type())},
                   {"shape", tensor.sizes().vec()},
                   {"data_offsets", {begin, begin + static_cast<int64_t>(bytes.size())}}};
  file_.write(bytes);
  hash_.add(bytes);
}

// The hash covers the data in the order of the file, and then the header as it is without the hash. The
// header's length fills the first 8 bytes, little-endian; it includes the blanks. The file gets its name
// last.
void SafetensorsWriter::finish(const TextMap& metadata, bool sync) {
  header_[kMetadata] = metadata;
  hash_.add(header_.dump());
  header_[kMetadata][kFastHash] = hash_text(hash_.value());
  std::string header = header_.dump();
  ENSURE(std::ssize(header) <= header_room_, "no room for the header");
  header.resize(static_cast<size_t>(header_room_), ' ');
  std::string start(kSizeBytes, '\0');
  for (size_t byte = 0; byte < start.size(); ++byte)
    start[byte] = static_cast<char>(static_cast<uint64_t>(header_room_) >> (8 * byte));
  write_at(file_.file(), file_.path(), 0, start + header);
  require_regular(path_);  // what has appeared there since the start
  if (!beside_.take_place(sync)) fail_to_write(path_);
}

SafetensorsFile::SafetensorsFile(const std::string& path)
    : path_(path), file_(open_if_exists(path, O_RDONLY)) {
  struct stat info;
  if (!file_ || ::fstat(file_.get(), &info) != 0) throw UsageError("'" + path + "': no such file");
  size_ = info.st_size;
  try {
    if (path.ends_with(kIndex))
      read_index();
    else
      read_header();
  } catch (const nlohmann::json::exception&) {
    fail("has a damaged header");
  }
}

void SafetensorsFile::fail(const std::string& what) const {
  throw UsageError("'" + path_ + "' " + what + "; give a whole safetensors file");
}

// Limits the nesting. A deeply nested text would overflow the stack when its JSON tree is copied.
nlohmann::ordered_json SafetensorsFile::parsed(const std::string& text) const {
  return nlohmann::ordered_json::parse(text, [&](int depth, Event, const auto&) {
    if (depth > kDeepest) fail("has a damaged header: it nests too deep");
    return true;
  });
}

// Opens each file that the index names once, and takes over the entries of their tensors. The files have to
// lie beside the index.
void SafetensorsFile::read_index() {
  const auto index = parsed(read_input(path_, kMostSuiteBytes).value_or(""));
  std::map<std::string, size_t> numbers;
  for (const auto& [name, value] : index.at("weight_map").get_ref<const Object&>()) {
    const auto& file = value.get_ref<const std::string&>();
    const auto [number, is_new] = numbers.emplace(file, parts_.size());
    const std::string beside = directory_of(path_) + "/" + file;
    if (is_new && (file.ends_with(kIndex) || !file_exists(beside)))
      throw UsageError(
          fmt::format("'{}' names the file '{}', which is not there; put every part of the model "
                      "beside its index",
                      path_, beside));
    if (is_new) parts_.emplace_back(beside);
    const auto& entries = parts_[number->second].entries();
    const auto found = entries.find(name);
    if (found == entries.end())
      throw UsageError(
          fmt::format("'{}' says that {} is in '{}', which has no such tensor; give the index that "
                      "was written with these files",
                      path_, name, beside));
    entries_.insert(*found);
    part_of_[name] = number->second;
  }
}

void SafetensorsFile::read_header() {
  unsigned char start[kSizeBytes];
  if (!read_at(file_, path_, 0, start, sizeof start)) fail("is too short for a safetensors file");
  uint64_t length = 0;
  for (size_t byte = 0; byte < sizeof start; ++byte)
    length |= static_cast<uint64_t>(start[byte]) << (8 * byte);
  if (length > kLargestHeader) fail("is not a safetensors file");
  const auto data_begin = kSizeBytes + static_cast<int64_t>(length);
  std::string text(length, '\0');
  if (!read_at(file_, path_, kSizeBytes, text.data(), text.size()))
    fail("is truncated: it ends in its header");
  // The keys keep their order, so that without the hash dump() gives the text again that the writer hashed.
  auto header = parsed(text);
  for (const auto& [name, value] : header.items()) {
    if (name == kMetadata)
      metadata_ = value.get<TextMap>();
    else
      entries_[name] = entry_of(name, value, data_begin);
  }
  check_places(data_begin);
  if (has_checksum())
    for (const char* key : {kFastHash, kChecksum}) header[kMetadata].erase(key);
  checked_header_ = header.dump();
}

SafetensorsFile::Entry SafetensorsFile::entry_of(const std::string& name, const nlohmann::ordered_json& value,
                                                 int64_t data_begin) const try {
  Entry entry{value.at("dtype"), {}, 0, 0};
  for (const auto& extent : value.at("shape").get_ref<const List&>())
    entry.shape.push_back(whole_number(extent));
  const List& offsets = value.at("data_offsets").get_ref<const List&>();
  const int64_t begin = whole_number(offsets.at(0)), end = whole_number(offsets.at(1));
  // Numbers of a damaged header may be anything, so that sums are checked for overflow.
  if (offsets.size() != 2 || begin < 0 || end < begin ||
      __builtin_add_overflow(data_begin, begin, &entry.begin))
    throw std::out_of_range("data_offsets");
  entry.num_bytes = end - begin;
  return entry;
} catch (const std::exception&) {
  fail("has a damaged header: tensor " + name);
}

bool SafetensorsFile::has_checksum() const {
  return metadata_.contains(kFastHash) || metadata_.contains(kChecksum);
}

// The format allows no gaps: the tensors fill the file to its end.
void SafetensorsFile::check_places(int64_t data_begin) const {
  std::vector<std::pair<int64_t, int64_t>> places;
  for (const auto& [name, entry] : entries_) {
    places.emplace_back(entry.begin, entry.num_bytes);
    const auto type = dtypes().find(entry.dtype);
    if (type == dtypes().end()) continue;  // no model here can use it
    auto bytes = static_cast<int64_t>(at::elementSize(type->second));
    for (const int64_t extent : entry.shape)
      if (extent < 0 || __builtin_mul_overflow(bytes, extent, &bytes))
        fail("has a damaged header: tensor " + name);
    if (bytes != entry.num_bytes) fail("has a damaged header: tensor " + name);
  }
  std::sort(places.begin(), places.end());
  int64_t end = data_begin;
  for (const auto& [begin, num_bytes] : places) {
    if (begin != end || num_bytes < 0 || __builtin_add_overflow(begin, num_bytes, &end))
      fail("has a damaged header: its tensors overlap or leave gaps");
  }
  if (size_ != end)
    fail("is " + std::to_string(size_) + " bytes instead of " + std::to_string(end) +
         (size_ < end ? ": truncated" : ": damaged"));
}

at::ScalarType SafetensorsFile::type_of(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) fail("has no tensor " + name);
  const auto type = dtypes().find(found->second.dtype);
  if (type != dtypes().end()) return type->second;
  throw UsageError(fmt::format("'{}' holds {} as {}; accepted: {}", path_, name, found->second.dtype,
                               fmt::join(std::views::keys(dtypes()), ", ")));
}

at::Tensor SafetensorsFile::read(const std::string& name) const {
  if (const auto part = part_of_.find(name); part != part_of_.end()) return parts_[part->second].read(name);
  const at::ScalarType type = type_of(name);
  const Entry& entry = entries_.at(name);
  at::Tensor tensor = at::empty(entry.shape, type);
  if (!read_at(file_, path_, entry.begin, tensor.mutable_data_ptr(), tensor.nbytes()))
    fail("is truncated: it ends in " + name);
  return tensor;
}

// Reads the data in pieces, whatever tensors they belong to: the tensors fill the file to its end
// (check_places()), so that the data begin at its size less their bytes.
void SafetensorsFile::verify(const std::function<void()>& on_piece) const {
  for (const SafetensorsFile& part : parts_) part.verify(on_piece);
  if (!has_checksum()) return;
  const bool is_fast = metadata_.contains(kFastHash);
  int64_t data_bytes = 0;
  for (const auto& [name, entry] : entries_) data_bytes += entry.num_bytes;
  std::string piece(1 << 22, '\0');
  FastHash fast;
  uint64_t slow = kHashStart;
  const auto add = [&](std::string_view bytes) {
    if (is_fast)
      fast.add(bytes);
    else
      slow = hash_bytes(bytes, slow);
  };
  for (int64_t at = size_ - data_bytes; at < size_;) {
    const auto count = std::min<int64_t>(std::ssize(piece), size_ - at);
    if (!read_at(file_, path_, at, piece.data(), static_cast<size_t>(count))) fail("is truncated");
    add(std::string_view(piece).substr(0, static_cast<size_t>(count)));
    at += count;
    on_piece();
  }
  add(checked_header_);
  if (hash_text(is_fast ? fast.value() : slow) != metadata_.at(is_fast ? kFastHash : kChecksum))
    fail("is damaged: its checksum does not match");
}

}  // namespace shardmark
