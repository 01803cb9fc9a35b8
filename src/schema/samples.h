// Columns of raw samples in a published file, with a different number of values for each point: Note [Study
// file] in published.h.
#pragma once

#include "schema/fields.h"
#include "schema/hdf5.h"

namespace shardmark {

// Writes one series of all points, point by point.
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
  // Makes the window hold values [offset, offset + length).
  void fetch(int64_t offset, int64_t length);

  std::string name_;
  h5::Id values_;
  std::vector<double> window_;  // values from window_offset_ on; points are read in order
  int64_t window_offset_ = 0;
  int64_t total_ = 0;
  std::vector<int64_t> offset_, length_, ranks_;
};

}  // namespace shardmark
