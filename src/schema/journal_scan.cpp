// Reads a journal from start to end in one pass. journal.h explains the format: Note [Journal].
#include <fcntl.h>

#include <algorithm>

#include "base/error.h"
#include "schema/content_hash.h"
#include "schema/journal.h"
#include "schema/journal_line.h"
#include "schema/series.h"

namespace shardmark {
namespace {

// Reads the samples at a place. Returns nothing if the file is too short or the checksum does not match.
std::optional<std::vector<Series>> read_samples(const File& file, const std::string& path,
                                                SamplesPlace place) {
  uint64_t hash = kHashStart;
  int64_t offset = place.offset;
  // Reads the last byte first: memory for all values is taken only if the file is long enough to have them.
  char last = 0;
  if (place.end() > offset && !read_at(file, path, place.end() - 1, &last, 1)) return {};
  for (Series& s : place.series) {
    s.values.resize(static_cast<size_t>(s.rows * s.columns));
    const size_t count = s.values.size() * sizeof(double);
    if (!read_at(file, path, offset, s.values.data(), count)) return {};
    hash = hash_bytes(bytes_of(s.values), hash);
    offset += static_cast<int64_t>(count);
  }
  if (hash_text(hash) != place.checksum) return {};
  return std::move(place.series);
}

class Scanner {
 public:
  Scanner(const std::string& study, Load load, const RecordSink& sink)
      : study_(study),
        path_(journal_path(study)),
        samples_path_(samples_path(study)),
        load_(load),
        sink_(sink) {}

  std::optional<JournalScan> run() {
    auto opened = open_input(path_, kMostJournalBytes);
    samples_ = open_if_exists(samples_path_, O_RDONLY);
    if (!opened || !samples_) return {};
    std::ifstream& lines = *opened;
    std::string line;
    int64_t end = 0, num_broken = 0;
    for (int64_t number = 1; std::getline(lines, line); ++number) {
      end += static_cast<int64_t>(line.size()) + 1;
      // A last line without a newline was only partly written.
      const bool whole = !lines.eof() && take(line, number);
      if (number == 1 && !whole)
        throw UsageError(path_ + " is not a study's journal, or its first line is damaged");
      if (!whole) {
        ++num_broken;
        continue;
      }
      // A crash can damage only the end of the file. Broken lines before a complete one were damaged later.
      scan_.num_damaged += std::exchange(num_broken, 0);
      scan_.whole_bytes = end;
    }
    // The journal is empty, so it only reserves the name.
    if (end == 0 && !has_journal(study_)) return {};
    if (end == 0) throw UsageError(path_ + " is empty");
    scan_.torn = num_broken > 0;
    if (scan_.began) scan_.began->samples = joined();
    return std::move(scan_);
  }

 private:
  bool take(const std::string& line, int64_t number) {
    auto content = read_line(line, path_ + ":" + std::to_string(number));
    if (!content || (number == 1 && !std::holds_alternative<Environment>(*content))) return false;
    return std::visit([this](auto& held) { return keep(std::move(held)); }, *content);
  }

  // Each keep() returns false if the line turns out not to be complete: its samples are not there.
  bool keep(Environment&& environment) {
    scan_.environment = std::move(environment);
    begin_nothing();  // the former job ended without a record of its point
    return true;
  }
  bool keep(Began&& began) {
    begin_nothing();
    scan_.began = std::move(began.record);
    return true;
  }
  bool keep(Extended&& progress) {
    scan_.samples_bytes = std::max(scan_.samples_bytes, progress.samples.end());
    if (has_begun(progress.id)) pieces_.push_back(std::move(progress.samples));
    return true;
  }
  bool keep(Foreign&&) { return true; }
  bool keep(Due&& due) {
    scan_.due.insert(due.ids.begin(), due.ids.end());
    return true;
  }
  bool keep(Recorded&& recorded) {
    auto& [record, place] = recorded;
    const int64_t end = place.end();
    if (record.ended_job && place.series.empty() && has_begun(record.id)) {
      record.samples = joined();
    } else if (load_ == Load::everything) {
      auto samples = read_samples(samples_, samples_path_, std::move(place));
      if (!samples) return false;
      record.samples = std::move(*samples);
    }
    scan_.samples_bytes = std::max(scan_.samples_bytes, end);
    if (has_begun(record.id)) begin_nothing();
    scan_.due.erase(record.id);
    sink_(std::move(record));
    return true;
  }

  bool has_begun(const std::string& id) const { return scan_.began && scan_.began->id == id; }
  void begin_nothing() {
    scan_.began.reset();
    pieces_.clear();
  }

  // Joins the series of the point that has begun from its progress lines. A piece whose checksum does not
  // match is left out: progress is not synced, and if all goes well a complete record follows anyway.
  std::vector<Series> joined() {
    std::vector<std::vector<Series>> pieces;
    if (load_ == Load::everything)
      for (SamplesPlace& place : pieces_)
        if (auto piece = read_samples(samples_, samples_path_, std::move(place)))
          pieces.push_back(std::move(*piece));
    return join_columns(pieces);
  }

  std::string study_, path_, samples_path_;
  Load load_;
  const RecordSink& sink_;
  File samples_;
  JournalScan scan_;
  std::vector<SamplesPlace> pieces_;  // pieces of the series of scan_.began
};

}  // namespace

std::optional<JournalScan> scan_journal(const std::string& study, Load load, const RecordSink& sink) {
  return Scanner(study, load, sink).run();
}

}  // namespace shardmark
