// A small typed interface to HDF5: handles that release themselves, datasets and attributes of text,
// integers, numbers and flags. Errors are SystemErrors with HDF5's own reason; HDF5 itself prints nothing.
#pragma once

#include <H5Ipublic.h>

#include <string>
#include <vector>

#include "base/handle.h"
#include "schema/stored.h"

namespace shardmark::h5 {

struct Release {
  void operator()(hid_t id) const noexcept { H5Idec_ref(id); }  // closes an object of any kind
};

class Id : public Handle<hid_t, Release> {
 public:
  explicit Id(hid_t id = H5I_INVALID_HID) : Handle(id, H5I_INVALID_HID) {}
};

[[noreturn]] void failure(const char* call);
template <class Result>
Result check(Result result, const char* call) {
  if (result < 0) failure(call);
  return result;
}

std::string library_version();  // "1.10.8"

// user_block_bytes: the number of bytes at the start of the file that HDF5 leaves to its user.
Id create_file(const std::string& path, int64_t user_block_bytes = 0);
Id open_file(const std::string& path);  // read only
void flush(const Id& file);

// Groups list their members in the order of creation.
Id create_group(const Id& parent, const std::string& name);
Id open_group(const Id& parent, const std::string& name);
bool has_member(const Id& parent, const std::string& name);

// T is std::string (UTF-8 of any length), int64_t, double or Flag. A scalar is stored as a dataset, too.
template <class T>
Id write_column(const Id& parent, const std::string& name, const std::vector<T>& values);
template <class T>
std::vector<T> read_column(const Id& parent, const std::string& name);
template <class T>
Id write_scalar(const Id& parent, const std::string& name, const T& value);
// Returns the offset of a dataset's values in bytes from the start of the file. For text these are the
// references to the text. Throws UsageError if the values are not stored contiguously.
int64_t place_of(const Id& parent, const std::string& name);

void write_attribute(const Id& object, const std::string& name, const std::string& text);
void describe(const Id& dataset, const std::string& unit, const std::string& description);
std::string read_attribute(const Id& object, const std::string& name);  // "" when absent

// A compressed column of numbers that grows by appended pieces and is read in pieces.
Id create_growing(const Id& parent, const std::string& name);
void append_piece(const Id& dataset, int64_t offset, const std::vector<double>& piece);
void read_piece(const Id& dataset, int64_t offset, std::vector<double>& piece);  // fills `piece`
int64_t length(const Id& dataset);
Id open_dataset(const Id& parent, const std::string& name);

// 256 KiB: a chunk of this size compresses well and fits into HDF5's cache.
inline constexpr int64_t kChunkValues = 1 << 15;

}  // namespace shardmark::h5

// H5_CHECK(call) throws a SystemError that names the call if it fails.
#define H5_CHECK(call) ::shardmark::h5::check((call), #call)
