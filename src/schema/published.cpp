// Writes and reads the HDF5 file of a study. published.h explains the format: Note [Study file].
#include "schema/published.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "schema/columns.h"
#include "schema/fields.h"
#include "schema/hdf5.h"
#include "schema/json.h"
#include "schema/older.h"
#include "schema/possible.h"
#include "schema/seal.h"
#include "schema/text_heap.h"
#include "schema/version.h"

namespace shardmark {
namespace {

// Columns of raw samples have a different number of values for each point: Note [Study file] in published.h.
// This writes one series of all points, point by point.
class SeriesWriter {
 public:
  SeriesWriter(const h5::Id& samples, const SeriesInfo& info);
  void append(const Series* series);  // nullptr: the point has no such series
  void finish();                      // writes the rest of the buffer and the index

 private:
  void flush(size_t count);

  h5::Id group_, values_;
  SeriesInfo info_;
  std::vector<double> buffer_;  // not yet written
  int64_t written_ = 0;
  std::vector<int64_t> offset_, length_, ranks_;
};

// Reads one series point by point.
class SeriesReader {
 public:
  SeriesReader(const h5::Id& samples, const SeriesInfo& info);
  // Appends the series of a point to `samples` if it has one. Throws UsageError if the index does not fit the
  // values.
  void read(size_t point, std::vector<Series>& samples);

 private:
  // Makes the window hold values [offset, offset + length). Points are read in order, so the window is read
  // ahead by several chunks.
  void fetch(int64_t offset, int64_t length);

  std::string name_;
  h5::Id values_;
  std::vector<double> window_;  // values from window_offset_ on; points are read in order
  int64_t window_offset_ = 0;
  int64_t total_ = 0;
  std::vector<int64_t> offset_, length_, ranks_;
};

SeriesWriter::SeriesWriter(const h5::Id& samples, const SeriesInfo& info)
    : group_(h5::create_group(samples, std::string(info.name))),
      values_(h5::create_growing(group_, "values")),
      info_(info) {
  h5::describe(values_, std::string(info.unit), std::string(info.description));
}

void SeriesWriter::append(const Series* series) {
  offset_.push_back(written_ + static_cast<int64_t>(buffer_.size()));
  length_.push_back(series ? static_cast<int64_t>(series->values.size()) : 0);
  ranks_.push_back(series ? series->rows : 0);
  if (!series) return;
  buffer_.insert(buffer_.end(), series->values.begin(), series->values.end());
  // Only whole chunks are written, because HDF5 would have to decompress and compress a chunk that was
  // written in part once more. finish() writes the rest.
  flush(buffer_.size() / h5::kChunkValues * h5::kChunkValues);
}

void SeriesWriter::flush(size_t count) {
  if (count == 0) return;
  const auto end = buffer_.begin() + static_cast<std::ptrdiff_t>(count);
  h5::append_piece(values_, written_, {buffer_.begin(), end});
  buffer_.erase(buffer_.begin(), end);
  written_ += static_cast<int64_t>(count);
}

void SeriesWriter::finish() {
  flush(buffer_.size());
  h5::describe(h5::write_column(group_, "offset", offset_), "values", "first value of each point");
  h5::describe(h5::write_column(group_, "length", length_), "values", "number of values of each point");
  h5::describe(h5::write_column(group_, "ranks", ranks_), "",
               "rows of each point; 0 where it has no such series");
}

SeriesReader::SeriesReader(const h5::Id& samples, const SeriesInfo& info) : name_(info.name) {
  if (!h5::has_member(samples, name_)) return;  // the series was added after the file was written
  const h5::Id group = h5::open_group(samples, name_);
  values_ = h5::open_dataset(group, "values");
  total_ = h5::length(values_);
  offset_ = h5::read_column<int64_t>(group, "offset");
  length_ = h5::read_column<int64_t>(group, "length");
  ranks_ = h5::read_column<int64_t>(group, "ranks");
}

void SeriesReader::read(size_t point, std::vector<Series>& samples) {
  if (!values_) return;
  if (point >= offset_.size() || point >= length_.size() || point >= ranks_.size())
    throw UsageError("series '" + name_ + "' lacks points");
  const int64_t offset = offset_[point], length = length_[point], ranks = ranks_[point];
  if (ranks == 0) return;
  if (ranks < 0 || offset < 0 || length < 0 || offset > total_ || length > total_ - offset ||
      length % ranks != 0)
    throw UsageError("series '" + name_ + "' has an index outside its values");
  fetch(offset, length);
  const auto start = window_.begin() + (offset - window_offset_);
  samples.push_back({name_, ranks, length / ranks, {start, start + length}});
}

void SeriesReader::fetch(int64_t offset, int64_t length) {
  const auto window_end = window_offset_ + static_cast<int64_t>(window_.size());
  if (offset >= window_offset_ && offset + length <= window_end) return;
  window_.resize(static_cast<size_t>(std::min(total_ - offset, std::max(length, 8 * h5::kChunkValues))));
  window_offset_ = offset;
  h5::read_piece(values_, offset, window_);
}

using Text = std::vector<std::string>;

// How members of an Environment are stored: scalars, lists of text, and JSON as text.
h5::Id write_fact(const h5::Id& group, const char* name, const std::string& text) {
  return h5::write_scalar(group, name, text);
}
h5::Id write_fact(const h5::Id& group, const char* name, int64_t number) {
  return h5::write_scalar(group, name, number);
}
h5::Id write_fact(const h5::Id& group, const char* name, const Text& list) {
  return h5::write_column(group, name, list);
}
h5::Id write_fact(const h5::Id& group, const char* name, const JsonObject& json) {
  return h5::write_scalar(group, name, dump_line(*json));
}

// A published file that is open for reading.
struct OpenFile {
  TextHeap texts;
  h5::Id root;
  int minor = 0;  // minor version of its schema

  // Reads a column. References to text are checked first, because the library follows them without a check.
  template <class T>
  std::vector<T> read(const h5::Id& group, const std::string& name) const {
    if constexpr (std::is_same_v<T, std::string>) {
      const int64_t count = h5::length(h5::open_dataset(group, name));
      if (count > 0) texts.require_texts(h5::place_of(group, name), count);
    }
    return h5::read_column<T>(group, name);
  }
};

void read_fact(const OpenFile& file, const h5::Id& group, const char* name, std::string& text) {
  text = file.read<std::string>(group, name).at(0);
}
void read_fact(const OpenFile& file, const h5::Id& group, const char* name, int64_t& number) {
  number = file.read<int64_t>(group, name).at(0);
}
void read_fact(const OpenFile& file, const h5::Id& group, const char* name, Text& list) {
  list = file.read<std::string>(group, name);
}
void read_fact(const OpenFile& file, const h5::Id& group, const char* name, JsonObject& json) {
  *json = nlohmann::ordered_json::parse(file.read<std::string>(group, name).at(0));
}

void write_environment(const h5::Id& file, const Environment& environment) {
  h5::write_attribute(file, "creator", "shardmark");
  h5::write_attribute(file, "schema_version", schema_version());
  visit_provenance(environment, [&](const char* name, const char*, const char*, const std::string& text) {
    h5::write_attribute(file, name, text);
  });
  const h5::Id group = h5::create_group(file, "environment");
  visit_environment(environment,
                    [&](const char* name, const char* unit, const char* description, const auto& member) {
                      h5::describe(write_fact(group, name, member), unit, description);
                    });
}

Environment read_environment(const OpenFile& file) {
  Environment environment;
  visit_provenance(environment, [&](const char* name, const char*, const char*, std::string& text) {
    text = h5::read_attribute(file.root, name);
  });
  const h5::Id group = h5::open_group(file.root, "environment");
  visit_environment(environment, [&](const char* name, const char*, const char*, auto& member) {
    if (h5::has_member(group, name)) read_fact(file, group, name, member);
  });
  return environment;
}

void write_points(const h5::Id& file, const std::vector<RecordColumn>& columns) {
  const h5::Id points = h5::create_group(file, "points");
  for (const RecordColumn& column : columns)
    std::visit(
        [&](const auto& values) {
          h5::describe(h5::write_column(points, column.name, values), column.unit, column.description);
        },
        column.values);
}

// Columns that a later minor version added stay empty.
std::vector<RecordColumn> read_points(const OpenFile& file) {
  const h5::Id points = h5::open_group(file.root, "points");
  const auto num_points = static_cast<size_t>(h5::length(h5::open_dataset(points, "id")));
  std::vector<RecordColumn> columns = make_columns();
  for (RecordColumn& column : columns)
    std::visit(
        [&](auto& values) {
          if (!h5::has_member(points, column.name)) {
            if (file.minor < kSchemaMinor) return;
            throw UsageError("column '" + column.name + "' is missing");
          }
          values = file.read<typename std::decay_t<decltype(values)>::value_type>(points, column.name);
          if (values.size() != num_points)
            throw UsageError("column '" + column.name + "' has another length than 'id'");
        },
        column.values);
  return columns;
}

Environment read_renewed(const OpenFile& file) {
  Environment environment = read_environment(file);
  Older(file.minor, environment).renew(environment);
  return environment;
}

// Samples go to the file as the records come, because together they may be larger than memory. The columns
// are small and are written at the end.
void write_file(const std::string& path, const std::function<Environment(const RecordSink&)>& records) {
  const h5::Id file = h5::create_file(path, kSealBytes);
  std::vector<RecordColumn> columns = make_columns();
  std::vector<SeriesWriter> series;
  series.reserve(kSeries.size());
  const h5::Id samples = h5::create_group(file, "samples");
  for (const SeriesInfo& info : kSeries) series.emplace_back(samples, info);
  const Environment environment = records([&](Record&& record) {
    append_row(columns, record);
    for (size_t i = 0; i < kSeries.size(); ++i) series[i].append(record.series(kSeries[i].name));
  });
  for (SeriesWriter& s : series) s.finish();
  write_points(file, columns);
  write_environment(file, environment);
  h5::flush(file);
}

// A full disk may be reported only when the file is synced.
void sync_file(const std::string& path) {
  const File file = open_if_exists(path, O_RDONLY);
  if (::fsync(file.get()) != 0 && errno != EINVAL) throw SystemError(std::strerror(errno));
}

// Opens the file, checks it, calls read(file), and turns every error into one line for the user. The seal is
// checked before HDF5 opens the file, and the heaps of texts before HDF5 reads a text, because HDF5 may
// crash on damaged ones.
template <class Read>
auto with_file(const std::string& path, Read read) {
  try {
    const int64_t user_block_bytes = require_sealed(path);
    OpenFile file{TextHeap(path, user_block_bytes), h5::open_file(path)};
    file.texts.require_heaps();
    if (h5::read_attribute(file.root, "creator") != "shardmark")
      throw UsageError(path + (user_block_bytes > 0 ? " is damaged: it does not name its creator"
                                                    : " is an HDF5 file, but not a study"));
    file.minor = require_readable(h5::read_attribute(file.root, "schema_version"), path);
    return read(file);
  } catch (const UsageError& error) {
    const std::string what = error.what();
    throw UsageError(what.starts_with(path) ? what : path + " is damaged: " + what);
  } catch (const std::exception& error) {
    throw UsageError(path + " is damaged, or not a study: " + error.what());
  }
}

}  // namespace

void write_published(const std::string& study, const std::function<Environment(const RecordSink&)>& records) {
  // The temporary name has no process id: the caller holds the lock on the study's journal or its
  // reservation, so no other process writes it. What a killed writer left there is overwritten.
  const std::string temporary = study + ".tmp";
  try {
    write_file(temporary, records);
    seal_file(temporary);
    sync_file(temporary);
  } catch (const SystemError& error) {
    remove_file(temporary);
    throw SystemError("cannot write " + study + ": " + error.what());
  } catch (...) {
    remove_file(temporary);
    throw;
  }
  rename_file(temporary, study);
}

Environment read_published_environment(const std::string& study) { return with_file(study, read_renewed); }

Environment read_published(const std::string& study, Load load, const RecordSink& sink) {
  return with_file(study, [&](const OpenFile& file) {
    Environment environment = read_renewed(file);
    Older older(file.minor, environment);
    const std::vector<RecordColumn> columns = read_points(file);
    const h5::Id samples = h5::open_group(file.root, "samples");
    std::vector<SeriesReader> series;
    if (load == Load::everything)
      for (const SeriesInfo& info : kSeries) series.emplace_back(samples, info);
    const size_t num_points = std::visit([](const auto& ids) { return ids.size(); }, columns.front().values);
    for (size_t i = 0; i < num_points; ++i) {
      Record record = row(columns, i);
      require_possible(record);
      for (SeriesReader& s : series) s.read(i, record.samples);
      older.renew(record);
      sink(std::move(record));
    }
    return environment;
  });
}

}  // namespace shardmark
