// HDF5 in a few typed calls: owners of handles, datasets and attributes of text, integers, numbers and flags.
// Errors are SystemErrors that carry HDF5's own reason; its printing is off.
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

Id create_file(const std::string& path, int64_t user_block_bytes = 0);  // bytes that HDF5 leaves alone
Id open_file(const std::string& path);                                  // read only
void flush(const Id& file);

// Groups list their members in the order of creation.
Id create_group(const Id& parent, const std::string& name);
Id open_group(const Id& parent, const std::string& name);
bool has_member(const Id& parent, const std::string& name);

// T: std::string (UTF-8 of any length), int64_t, double or Flag. A scalar is a dataset too.
template <class T>
Id write_column(const Id& parent, const std::string& name, const std::vector<T>& values);
template <class T>
std::vector<T> read_column(const Id& parent, const std::string& name);
template <class T>
Id write_scalar(const Id& parent, const std::string& name, const T& value);
// Where a dataset's values lie, bytes from the file's begin: of texts, the references to them. UsageError:
// they lie in pieces.
int64_t place_of(const Id& parent, const std::string& name);

void write_attribute(const Id& object, const std::string& name, const std::string& text);
void describe(const Id& dataset, const std::string& unit, const std::string& description);
std::string read_attribute(const Id& object, const std::string& name);  // "" when absent

// A column of numbers of any length: grows by appended pieces, compressed; read in pieces.
Id create_growing(const Id& parent, const std::string& name);
void append_piece(const Id& dataset, int64_t offset, const std::vector<double>& piece);
void read_piece(const Id& dataset, int64_t offset, std::vector<double>& piece);  // as many as `piece` holds
int64_t length(const Id& dataset);
Id open_dataset(const Id& parent, const std::string& name);

inline constexpr int64_t kChunkValues = 1
                                        << 15;  // 256 KiB: a piece that compresses well and fits HDF5's cache

}  // namespace shardmark::h5

// H5_CHECK(call): throws SystemError naming the call.
#define H5_CHECK(call) ::shardmark::h5::check((call), #call)
