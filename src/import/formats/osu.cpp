// Reads OSU micro-benchmarks of blocking collectives: a table of sizes and latencies; with -f also the least
// and the largest time of a rank. The logs do not say how many ranks took part. Elements are floats if the
// operation reduces and chars otherwise, unless a line "# Datatype:" names another type (7.1 and later). With
// -f, version 7.3 prints more numbers than column names. Source: osu_util_mpi.c and mpi/collective/*.c of
// 5.x, 7.3 and 7.4.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "base/value.h"
#include "import/collective_record.h"
#include "import/formats/mpi.h"
#include "import/lines.h"

namespace shardmark::imports::osu {
namespace {

using enum specs::Collective;

constexpr std::array<MpiBenchmark, 8> kOsuBenchmarks = {
    {{"Allreduce", all_reduce},
     {"Reduce_scatter", reduce_scatter},
     {"Allgather", all_gather, true},
     {"Broadcast", broadcast},
     {"Reduce", reduce},
     {"All-to-All Personalized Exchange", all_to_all, true},
     {"Gather", gather, true},
     {"Scatter", scatter, true}}};

constexpr std::string_view kTitle = "# OSU ";

struct OsuColumns {
  size_t avg = 0, max = 0, iterations = 0, validation = 0;  // index of the column; 0: there is none
  size_t count = 0;
};

class OsuReader {
 public:
  OsuReader(const Source& source, const Given& given) : source_(source), given_(given), damaged_(source) {}

  Contents read() {
    for_each_line(source_, [this](const Line& line) { take(line); });
    damaged_.report(said_.warnings);
    return std::move(said_);
  }

 private:
  void take(const Line& line) {
    const std::vector<std::string_view> words = words_in(line.text);
    if (line.text.starts_with(kTitle)) {
      begin(line);
    } else if (line.text.starts_with("# Datatype: ") && words.size() > 2) {
      element_ = words[2].substr(0, words[2].find_last_not_of('.') + 1);
    } else if (line.text.starts_with("# Size")) {
      read_columns(line);
    } else if (columns_.count > 0 && !words.empty() &&
               (whole_in(words.front()) >= 0 || looks_like_row(words))) {
      take_row(line, words);
    }
  }

  // Whether the line is a row whose size is damaged or preceded by other text.
  bool looks_like_row(const std::vector<std::string_view>& words) const {
    if (words.front().starts_with('#') || words.size() < columns_.count) return false;
    const size_t numbers = words.size() == columns_.count ? columns_.count - 1 : columns_.count;
    return std::all_of(words.end() - static_cast<std::ptrdiff_t>(numbers), words.end(), is_number);
  }

  // Parses "# OSU MPI-CUDA Allreduce Latency Test v7.4": the benchmark's name is between the kind of MPI and
  // "Latency".
  void begin(const Line& line) {
    const std::string_view text = line.text;
    const size_t begin = text.find(' ', kTitle.size()), end = text.find(" Latency Test"),
                 version = text.rfind(" v");
    benchmark_ = begin < end && end != std::string_view::npos
                     ? find_benchmark(kOsuBenchmarks, text.substr(begin + 1, end - begin - 1))
                     : nullptr;
    if (benchmark_ == nullptr)
      throw UsageError(
          fmt::format("{}{}: a study holds blocking collectives, not messages between two ranks, barriers or "
                      "overlaps: leave the "
                      "file out, or import osu_allreduce, osu_allgather, osu_reduce_scatter ...",
                      place(source_, line.number), quoted_line(std::string(text))));
    note_buffers(text.substr(kTitle.size(), begin - kTitle.size()), line);
    if (version != std::string_view::npos) said_.version = text.substr(version + 2);
    ranks_ = ranks_of(0, given_, place(source_, line.number));
    element_ = specs::collective(benchmark_->collective).reduces ? "MPI_FLOAT" : "MPI_CHAR";
    columns_ = {};
  }

  // With "MPI-CUDA" the buffers are in GPU memory. This becomes an option of the transport, so that no table
  // joins these results with those of host memory.
  void note_buffers(std::string_view kind, const Line& line) {
    const size_t dash = kind.find('-');
    Options options;
    if (dash != std::string_view::npos) options["buffers"] = std::string(kind.substr(dash + 1));
    if (!said_.measured.empty() && said_.transport_options != options)
      throw UsageError(place(source_, line.number) +
                       "its buffers are in another memory than those above; split the file");
    said_.transport_options = options;
  }

  // Parses "# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations". The names
  // themselves contain blanks.
  void read_columns(const Line& line) {
    columns_ = {.count = 1};
    const std::vector<std::string_view> words = words_in(line.text);
    for (size_t i = 2; i < words.size(); ++i) {
      const bool begins = words[i] == "Avg" || words[i] == "Max" || words[i] == "Min" ||
                          words[i] == "Iterations" || words[i] == "Validation" ||
                          (words[i].starts_with("P") && i + 1 < words.size());
      if (words[i] == "Avg") columns_.avg = columns_.count;
      if (words[i] == "Max") columns_.max = columns_.count;
      if (words[i] == "Iterations") columns_.iterations = columns_.count;
      if (words[i] == "Validation") columns_.validation = columns_.count;
      if (begins) ++columns_.count;
    }
    if (benchmark_ == nullptr || columns_.avg == 0)
      throw UsageError(place(source_, line.number) + "a table without a column 'Avg Latency(us)'");
  }

  void note_times(const Line& line) {
    const std::string times =
        columns_.max > 0 ? "mean over iterations, of the slowest rank" : "mean over iterations and ranks";
    if (!said_.times.empty() && said_.times != times)
      throw UsageError(fmt::format("{}its times are another kind ({}) than those above ({}); split the file",
                                   place(source_, line.number), times, said_.times));
    said_.times = times;
  }

  // With -f, a row of 7.3 is "4 49.70 17.48 105.89 1000": size, mean, least, largest, iterations.
  void find_unnamed_columns(const std::vector<std::string_view>& words, const Line& line) {
    if (columns_.count != 2 || words.size() != 5) return;
    const double mean = number_in(words[1]), least = number_in(words[2]), most = number_in(words[3]);
    if (!(least <= mean && mean <= most && whole_in(words[4]) > 0)) return;
    columns_ = {.avg = 1, .max = 3, .iterations = 4, .count = 5};
    said_.warnings.push_back(place(source_, line.number) +
                             "its header names one time, its rows have three and a count: taken as mean, "
                             "least and most of a rank, and "
                             "iterations, as OSU 7.3 prints them with -f");
  }

  // With the time of the slowest rank (-f) that time is taken, because a collective ends with its slowest
  // rank; without it, the mean over ranks. note_times() keeps both kinds apart.
  void take_row(const Line& line, const std::vector<std::string_view>& words) {
    find_unnamed_columns(words, line);
    if (line.is_whole && words.size() != columns_.count && std::all_of(words.begin(), words.end(), is_number))
      return damaged_.add(line, fmt::format("it has {} numbers, and the header names {} columns",
                                            words.size(), columns_.count));
    const size_t at = columns_.max > 0 ? columns_.max : columns_.avg;
    if (words.size() != columns_.count || !line.is_whole || !(number_in(words[at]) > 0))
      return damaged_.add(line, "it is not whole");
    const int64_t steps = columns_.iterations > 0 ? whole_in(words[columns_.iterations]) : 0;
    const int64_t bytes = whole_in(words.front());
    if (bytes == 0) return;  // without a message
    if (bytes < 0) return damaged_.add(line, "its size is no whole number of bytes");
    if (bytes > values::kMessage.most) return damaged_.add(line, "no run has such a message");
    note_times(line);
    Record record = mpi_record(*benchmark_, bytes, ranks_, number_in(words[at]), steps, element_);
    if (columns_.validation > 0)
      set_wrong(words[columns_.validation] == "Fail" ? 1 : 0, "validation failed", record);
    said_.measured.push_back({std::move(record), line.number, 0, ""});
    require_few(std::ssize(said_.measured), source_);
  }

  const Source& source_;
  const Given& given_;
  LeftOut damaged_;
  Contents said_;
  const MpiBenchmark* benchmark_ = nullptr;
  int64_t ranks_ = 0;
  std::string element_;
  OsuColumns columns_;
};

bool is_osu(const std::string& text) {
  return text.starts_with(kTitle) || text.find("\n# OSU ") != std::string::npos;
}

Contents read_osu(const Source& source, const Given& given) { return OsuReader(source, given).read(); }

const Registration<Format> registered{"osu",
                                      {"OSU micro-benchmarks: osu_allreduce and its siblings",
                                       {"# OSU ", "# Size ", "# Datatype: "},
                                       is_osu,
                                       read_osu}};

}  // namespace
}  // namespace shardmark::imports::osu
