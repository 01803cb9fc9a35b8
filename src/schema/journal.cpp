// Writes the journal of a running study. journal.h explains the format: Note [Journal].
#include "schema/journal.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "schema/content_hash.h"
#include "schema/fields.h"
#include "schema/journal_line.h"

namespace shardmark {
namespace {

std::string temporary_path(const std::string& study) { return journal_path(study) + ".tmp"; }

[[noreturn]] void refuse_busy(const std::string& study) {
  throw StudyBusy(study + " is being written by another process; wait for it, or choose another output");
}

void require_valid(const std::vector<Series>& samples) {
  for (auto s = samples.begin(); s != samples.end(); ++s) {
    const auto same_name = [&](const auto& other) { return other.name == s->name; };
    ENSURE(std::any_of(kSeries.begin(), kSeries.end(), same_name),
           "no series '" + s->name + "' in series_info.h");
    ENSURE(std::none_of(samples.begin(), s, same_name), "two series '" + s->name + "'");
    ENSURE(s->rows > 0 && s->columns >= 0 && s->rows * s->columns == static_cast<int64_t>(s->values.size()),
           "shape of series '" + s->name + "'");
  }
}

// Undoes a failed write. The error of that write is the one to report, so an error here is ignored: if the
// disk has become read-only, a partly written line stays, and the next open() removes it.
void cut_back(AppendFile& file, int64_t size) noexcept {
  try {
    file.cut(size);
  } catch (const std::exception&) {
  }
}

}  // namespace

bool has_journal(const std::string& study) {
  struct stat lines, samples;
  if (::stat(journal_path(study).c_str(), &lines) != 0) return false;
  // An empty journal is a reservation, unless there are samples: then it is a damaged journal.
  return lines.st_size > 0 || (::stat(samples_path(study).c_str(), &samples) == 0 && samples.st_size > 0);
}

bool reserve_study(const std::string& study) {
  const std::string path = journal_path(study);
  const File file(::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666));
  if (!file && errno != EEXIST)
    throw UsageError("cannot write " + path + ": " + std::strerror(errno) + "; choose another place with -o");
  if (!file) return false;
  if (!file_exists(study)) return true;
  remove_file(path);  // checked last, because a job may have published the study meanwhile
  return false;
}

void release_study(const std::string& study) noexcept {
  try {
    if (!file_exists(journal_path(study)) || has_journal(study)) return;
    const Journal claimed = Journal::claim(study);  // from here on no rank can begin the study
    for (const std::string& path : {samples_path(study), journal_path(study), temporary_path(study)})
      remove_file(path);
  } catch (const std::exception&) {  // the study was begun after all, or the files cannot be removed
  }
}

// The lock on the temporary file decides which process starts the study. If another process has replaced that
// file since it was opened, the attempt is repeated.
Journal Journal::claim(const std::string& study) {
  const std::string path = temporary_path(study);
  for (;;) {
    File file = open_or_create(path, O_RDWR);
    const Lock lock = lock_file(file, path);
    if (lock == Lock::held_by_another) refuse_busy(study);
    if (lock == Lock::replaced) continue;
    if (has_journal(study)) {  // another process was faster
      remove_file(path);
      refuse_busy(study);
    }
    Journal journal(study);
    journal.lines_ = AppendFile(std::move(file), path);
    return journal;
  }
}

std::optional<Journal> Journal::open(const std::string& study) {
  const std::string path = journal_path(study);
  for (;;) {
    File file = open_if_exists(path, O_RDWR);
    if (!file) return {};
    const Lock lock = lock_file(file, path);
    if (lock == Lock::held_by_another) refuse_busy(study);
    if (lock == Lock::replaced) continue;
    // The journal is empty, so it only reserves the name.
    if (!has_journal(study)) return {};
    Journal journal(study);
    auto scan = scan_journal(study, Load::everything, [&](Record&& record) { journal.know(record); });
    if (!scan)
      throw UsageError(samples_path(study) + ", which belongs to " + path + ", is missing; put it back");
    journal.found_ = std::move(*scan);
    if (journal.found_.began) journal.found_.began->samples.clear();  // they stay in the file of samples
    for (auto& [id, known] : journal.known_)
      if (journal.found_.due.contains(id)) known.attempts = 0;
    journal.lines_ = AppendFile(std::move(file), path);
    journal.lines_.cut(journal.found_.whole_bytes);
    journal.samples_ = AppendFile(open_or_create(samples_path(study), O_RDWR), samples_path(study));
    journal.samples_.cut(journal.found_.samples_bytes);
    return journal;
  }
}

// Everything is written and synced under the temporary name before the journal gets its own name, so no
// reader ever sees a part of it.
void Journal::start(const Environment& environment, const RecordSource& existing, const DueRule& is_due) {
  try {
    lines_.cut(0);
    samples_ = AppendFile(open_or_create(samples_path(study_), O_RDWR | O_TRUNC), samples_path(study_));
    lines_.write(to_line(environment));
    existing([&](Record&& record) {
      lines_.write(to_line(record, write_samples(record.samples)));
      know(record);
    });
    mark_due(is_due);
    samples_.sync();
    lines_.sync();
  } catch (...) {
    remove_file(samples_path(study_));
    remove_file(lines_.path());
    throw;
  }
  rename_file(lines_.path(), journal_path(study_));
  lines_.renamed(journal_path(study_));
}

SamplesPlace Journal::write_samples(const std::vector<Series>& samples) {
  require_valid(samples);
  SamplesPlace place{samples_.size(), {}, {}};
  uint64_t hash = kHashStart;
  for (const Series& s : samples) {
    samples_.write(bytes_of(s.values));
    hash = hash_bytes(bytes_of(s.values), hash);
    place.series.push_back({s.name, s.rows, s.columns, {}});
  }
  place.checksum = hash_text(hash);
  return place;
}

void Journal::know(const Record& record) {
  known_[record.id] = {record.outcome,
                       record.attempts,
                       record.ended_job,
                       num_records_++,
                       record.ended_job ? record.reason : "",
                       record.measures.num_operations,
                       record.measures.num_load_units};
}

void Journal::append(const Record& record) {
  const auto before = known_.find(record.id);
  ENSURE(before == known_.end() || !before->second.is_over(), "recorded already: " + record.id);
  write_with_samples(
      record.samples, [&](const SamplesPlace& place) { return to_line(record, place); }, /*durable=*/true);
  know(record);
}

void Journal::extend(const std::string& id, const std::vector<Series>& columns, bool durable) {
  write_with_samples(
      columns,
      [&](const SamplesPlace& place) {
        return to_line(Extended{id, place});
      },
      durable);
}

// Writes samples and then the line that points to them. If either fails, both files are cut back to their
// former size.
void Journal::write_with_samples(const std::vector<Series>& samples,
                                 const std::function<std::string(const SamplesPlace&)>& line, bool durable) {
  const int64_t num_lines_bytes = lines_.size(), num_samples_bytes = samples_.size();
  try {
    const SamplesPlace place = write_samples(samples);
    samples_are_synced_ = samples_are_synced_ && samples.empty();
    if (durable && !samples_are_synced_) {
      samples_.sync();
      samples_are_synced_ = true;
    }
    lines_.write(line(place));
    if (durable) lines_.sync();
  } catch (...) {
    cut_back(lines_, num_lines_bytes);
    cut_back(samples_, num_samples_bytes);
    throw;
  }
}

void Journal::begin(const Record& record) { write_line(to_began_line(record)); }

void Journal::append(const Environment& environment) {
  write_line(to_line(environment));
  lines_.sync();
}

void Journal::mark_due(const DueRule& is_due) {
  Due due;
  for (const auto& [id, known] : known_)
    if (is_due && is_due(id, known)) due.ids.push_back(id);
  if (due.ids.empty()) return;
  write_line(to_line(due));
  for (const std::string& id : due.ids) known_.at(id).attempts = 0;
}

void Journal::write_line(const std::string& line) {
  const int64_t before = lines_.size();
  try {
    lines_.write(line);
  } catch (...) {
    cut_back(lines_, before);
    throw;
  }
}

// The journal is renamed first, to the name that claim() locks, and deleted last. So the lock is held under a
// name that others look at until the samples are gone.
void Journal::remove() {
  rename_file(journal_path(study_), temporary_path(study_));
  remove_file(samples_path(study_));
  remove_file(temporary_path(study_));
}

}  // namespace shardmark
