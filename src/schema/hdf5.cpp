// Implements the typed calls with HDF5's C library.
#include "schema/hdf5.h"

#include <hdf5.h>

#include "base/error.h"

namespace shardmark::h5 {
namespace {

// The type that HDF5 uses in memory for one value: a pointer for text, the type itself for all others.
template <class T>
struct Memory {
  using type = T;
};
template <>
struct Memory<std::string> {
  using type = char*;
};

template <class T>
Id type_of();
template <>
Id type_of<double>() {
  return Id(H5_CHECK(H5Tcopy(H5T_IEEE_F64LE)));
}
template <>
Id type_of<int64_t>() {
  return Id(H5_CHECK(H5Tcopy(H5T_STD_I64LE)));
}
template <>
Id type_of<std::string>() {
  Id type(H5_CHECK(H5Tcopy(H5T_C_S1)));
  H5_CHECK(H5Tset_size(type.get(), H5T_VARIABLE));
  H5_CHECK(H5Tset_cset(type.get(), H5T_CSET_UTF8));
  return type;
}
template <>
Id type_of<Flag>() {  // h5py reads this enumeration as bool
  Id type(H5_CHECK(H5Tenum_create(H5T_STD_I8LE)));
  for (const auto& [name, value] : {std::pair{"FALSE", Flag::no}, std::pair{"TRUE", Flag::yes}})
    H5_CHECK(H5Tenum_insert(type.get(), name, &value));
  return type;
}

Id space_of(int64_t count) {
  const auto extent = static_cast<hsize_t>(count);
  return Id(H5_CHECK(H5Screate_simple(1, &extent, nullptr)));
}

template <class T>
void write_values(const Id& dataset, const std::vector<T>& values) {
  const Id type = type_of<T>();
  if constexpr (std::is_same_v<T, std::string>) {
    std::vector<const char*> texts;
    texts.reserve(values.size());
    for (const std::string& value : values) texts.push_back(value.c_str());
    H5_CHECK(H5Dwrite(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, texts.data()));
  } else {
    H5_CHECK(H5Dwrite(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()));
  }
}

template <class T>
Id write_dataset(const Id& parent, const std::string& name, const Id& space, const std::vector<T>& values) {
  Id dataset(H5_CHECK(H5Dcreate2(parent.get(), name.c_str(), type_of<T>().get(), space.get(), H5P_DEFAULT,
                                 H5P_DEFAULT, H5P_DEFAULT)));
  write_values(dataset, values);
  return dataset;
}

// Must be called before any other function of the library. At exit, HDF5 1.10 crashes when it closes a file
// that it could not flush because the disk was full. We flush files ourselves and give up a file whose flush
// failed. The call fails if it was made before; then there is nothing left to do.
void leave_the_exit_alone() { static_cast<void>(H5dont_atexit()); }

Id file_access() {
  leave_the_exit_alone();
  H5_CHECK(H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr));
  Id access(H5_CHECK(H5Pcreate(H5P_FILE_ACCESS)));
  // Published files appear by renaming and never change, so HDF5's own locks are not needed. They would only
  // cause failures on file systems without locks.
  H5_CHECK(H5Pset_file_locking(access.get(), false, true));
  // The file format of HDF5 1.10 (2016) has checksums for its own structures, so that damage is reported as
  // an error and does not crash.
  H5_CHECK(H5Pset_libver_bounds(access.get(), H5F_LIBVER_V110, H5F_LIBVER_V110));
  return access;
}

Id select(const Id& dataset, int64_t offset, int64_t count) {
  Id space(H5_CHECK(H5Dget_space(dataset.get())));
  const auto start = static_cast<hsize_t>(offset), extent = static_cast<hsize_t>(count);
  H5_CHECK(H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, &start, nullptr, &extent, nullptr));
  return space;
}

// HDF5 keeps a stack of errors, from the function that was called down to the one that failed. The last
// description is that of the cause.
herr_t keep_innermost(unsigned, const H5E_error2_t* error, void* reason) {
  if (error->desc && *error->desc) *static_cast<std::string*>(reason) = error->desc;
  return 0;
}

// Keeps the message of the system: "file write failed: time = ..., error message = 'No space left on device',
// buf = ..." becomes "No space left on device".
std::string without_details(const std::string& reason) {
  static constexpr std::string_view kMessage = "error message = '";
  if (const size_t start = reason.find(kMessage); start != std::string::npos)
    return reason.substr(start + kMessage.size(),
                         reason.find('\'', start + kMessage.size()) - start - kMessage.size());
  return reason.substr(0, reason.find('\n'));
}

}  // namespace

void failure(const char* call) {
  std::string reason = "no reason given";
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, keep_innermost, &reason);
  const std::string whole(call);
  throw SystemError(whole.substr(0, whole.find('(')) + ": " + without_details(reason));
}

std::string library_version() {
  leave_the_exit_alone();
  unsigned major = 0, minor = 0, release = 0;
  H5_CHECK(H5get_libversion(&major, &minor, &release));
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(release);
}

Id create_file(const std::string& path, int64_t user_block_bytes) {
  const Id access = file_access(), creation(H5_CHECK(H5Pcreate(H5P_FILE_CREATE)));
  H5_CHECK(H5Pset_userblock(creation.get(), static_cast<hsize_t>(user_block_bytes)));
  return Id(H5_CHECK(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation.get(), access.get())));
}

Id open_file(const std::string& path) {
  const Id access = file_access();
  return Id(H5_CHECK(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get())));
}

void flush(const Id& file) { H5_CHECK(H5Fflush(file.get(), H5F_SCOPE_LOCAL)); }

Id create_group(const Id& parent, const std::string& name) {
  const Id order(H5_CHECK(H5Pcreate(H5P_GROUP_CREATE)));
  H5_CHECK(H5Pset_link_creation_order(order.get(), H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED));
  return Id(H5_CHECK(H5Gcreate2(parent.get(), name.c_str(), H5P_DEFAULT, order.get(), H5P_DEFAULT)));
}

Id open_group(const Id& parent, const std::string& name) {
  return Id(H5_CHECK(H5Gopen2(parent.get(), name.c_str(), H5P_DEFAULT)));
}

int64_t place_of(const Id& parent, const std::string& name) {
  const haddr_t offset = H5Dget_offset(open_dataset(parent, name).get());
  if (offset == HADDR_UNDEF) throw UsageError("'" + name + "' does not lie in one piece");
  return static_cast<int64_t>(offset);
}

bool has_member(const Id& parent, const std::string& name) {
  return H5_CHECK(H5Lexists(parent.get(), name.c_str(), H5P_DEFAULT)) > 0;
}

template <class T>
Id write_column(const Id& parent, const std::string& name, const std::vector<T>& values) {
  return write_dataset(parent, name, space_of(static_cast<int64_t>(values.size())), values);
}

template <class T>
Id write_scalar(const Id& parent, const std::string& name, const T& value) {
  return write_dataset(parent, name, Id(H5_CHECK(H5Screate(H5S_SCALAR))), std::vector<T>{value});
}

template <class T>
std::vector<T> read_column(const Id& parent, const std::string& name) {
  const Id dataset = open_dataset(parent, name);
  const Id type = type_of<T>();
  std::vector<typename Memory<T>::type> values(static_cast<size_t>(length(dataset)));
  if (values.empty()) return {};
  H5_CHECK(H5Dread(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()));
  if constexpr (std::is_same_v<T, std::string>) {
    std::vector<std::string> texts;
    texts.reserve(values.size());
    for (const char* text : values) texts.emplace_back(text ? text : "");
    const Id space(H5_CHECK(H5Dget_space(dataset.get())));
    H5_CHECK(H5Dvlen_reclaim(type.get(), space.get(), H5P_DEFAULT, values.data()));
    return texts;
  } else {
    return values;
  }
}

#define INSTANTIATE(T)                                                                                  \
  template Id write_column<T>(const Id& parent, const std::string& name, const std::vector<T>& values); \
  template Id write_scalar<T>(const Id& parent, const std::string& name, const T& value);               \
  template std::vector<T> read_column<T>(const Id& parent, const std::string& name);
INSTANTIATE(std::string)
INSTANTIATE(int64_t)
INSTANTIATE(double)
INSTANTIATE(Flag)
#undef INSTANTIATE

void write_attribute(const Id& object, const std::string& name, const std::string& text) {
  const Id type = type_of<std::string>();
  const Id space(H5_CHECK(H5Screate(H5S_SCALAR)));
  const Id attribute(
      H5_CHECK(H5Acreate2(object.get(), name.c_str(), type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT)));
  const char* value = text.c_str();
  H5_CHECK(H5Awrite(attribute.get(), type.get(), &value));
}

void describe(const Id& dataset, const std::string& unit, const std::string& description) {
  write_attribute(dataset, "unit", unit);
  write_attribute(dataset, "description", description);
}

std::string read_attribute(const Id& object, const std::string& name) {
  if (H5_CHECK(H5Aexists(object.get(), name.c_str())) == 0) return "";
  const Id attribute(H5_CHECK(H5Aopen(object.get(), name.c_str(), H5P_DEFAULT)));
  const Id type = type_of<std::string>();
  char* value = nullptr;
  H5_CHECK(H5Aread(attribute.get(), type.get(), &value));
  std::string text(value ? value : "");
  H5free_memory(value);
  return text;
}

Id create_growing(const Id& parent, const std::string& name) {
  const hsize_t empty = 0, unlimited = H5S_UNLIMITED, chunk = kChunkValues;
  const Id space(H5_CHECK(H5Screate_simple(1, &empty, &unlimited)));
  const Id layout(H5_CHECK(H5Pcreate(H5P_DATASET_CREATE)));
  H5_CHECK(H5Pset_chunk(layout.get(), 1, &chunk));
  // Shuffling puts bytes of equal significance next to each other, which helps the compression of similar
  // numbers.
  H5_CHECK(H5Pset_shuffle(layout.get()));
  H5_CHECK(H5Pset_deflate(layout.get(), 1));
  return Id(H5_CHECK(H5Dcreate2(parent.get(), name.c_str(), type_of<double>().get(), space.get(), H5P_DEFAULT,
                                layout.get(), H5P_DEFAULT)));
}

void append_piece(const Id& dataset, int64_t offset, const std::vector<double>& piece) {
  const auto count = static_cast<int64_t>(piece.size());
  const hsize_t extent = static_cast<hsize_t>(offset) + piece.size();
  H5_CHECK(H5Dset_extent(dataset.get(), &extent));
  const Id memory = space_of(count), space = select(dataset, offset, count);
  H5_CHECK(
      H5Dwrite(dataset.get(), type_of<double>().get(), memory.get(), space.get(), H5P_DEFAULT, piece.data()));
}

void read_piece(const Id& dataset, int64_t offset, std::vector<double>& piece) {
  const auto count = static_cast<int64_t>(piece.size());
  const Id memory = space_of(count), space = select(dataset, offset, count);
  H5_CHECK(
      H5Dread(dataset.get(), type_of<double>().get(), memory.get(), space.get(), H5P_DEFAULT, piece.data()));
}

int64_t length(const Id& dataset) {
  const Id space(H5_CHECK(H5Dget_space(dataset.get())));
  return static_cast<int64_t>(H5_CHECK(H5Sget_simple_extent_npoints(space.get())));
}

Id open_dataset(const Id& parent, const std::string& name) {
  return Id(H5_CHECK(H5Dopen2(parent.get(), name.c_str(), H5P_DEFAULT)));
}

}  // namespace shardmark::h5
