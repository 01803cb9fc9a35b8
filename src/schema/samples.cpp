// Writes and reads the raw samples of a published file. The writer buffers up to one chunk, and the reader
// holds a window of the values, so that memory does not grow with the size of the study.
#include "schema/samples.h"

#include <algorithm>

#include "base/error.h"

namespace shardmark {
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

}  // namespace shardmark
