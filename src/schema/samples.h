// Ragged columns of raw samples in a published file; see Note [Study file].
#pragma once

#include "schema/fields.h"
#include "schema/hdf5.h"

namespace shardmark {

// Writes one series of all points, a piece at a time.
class SeriesWriter {
 public:
  SeriesWriter(const h5::Id& samples, const SeriesInfo& info);
  void append(const Series* series);  // nullptr: the point has none
  void finish();                      // the rest, and the index

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
  // Appends the series of a point if it has one. Throws UsageError when the index does not fit the values.
  void read(size_t point, std::vector<Series>& samples);

 private:
  void fetch(int64_t offset, int64_t length);

  std::string name_;
  h5::Id values_;
  std::vector<double> window_;  // values from window_offset_ on: points are read in order
  int64_t window_offset_ = 0;
  int64_t total_ = 0;
  std::vector<int64_t> offset_, length_, ranks_;
};

}  // namespace shardmark
