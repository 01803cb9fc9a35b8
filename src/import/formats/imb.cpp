// Reads Intel MPI Benchmarks, IMB-MPI1: one table for each benchmark and number of processes, with the least,
// the largest and the mean time of a rank. Sendrecv is a ring, like our send_recv. Source:
// github.com/intel/mpi-benchmarks, src_c/IMB_output.c (2019 to 2021.8).
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/value.h"
#include "import/collective_record.h"
#include "import/formats/mpi.h"
#include "import/lines.h"

namespace shardmark::imports::imb {
namespace {

using enum specs::Collective;

constexpr std::array<MpiBenchmark, 9> kImbBenchmarks = {{{"Allreduce", all_reduce},
                                                         {"Reduce_scatter", reduce_scatter},
                                                         {"Allgather", all_gather, true},
                                                         {"Bcast", broadcast},
                                                         {"Reduce", reduce},
                                                         {"Alltoall", all_to_all, true},
                                                         {"Gather", gather, true},
                                                         {"Scatter", scatter, true},
                                                         {"Sendrecv", send_recv}}};

class ImbReader {
 public:
  explicit ImbReader(const Source& source) : source_(source), damaged_(source) {}

  Contents read() {
    said_.times = "mean over repetitions, of the slowest rank";
    for_each_line(source_, [this](const Line& line) { take(line); });
    damaged_.report(said_.warnings);
    if (!others_.empty())
      said_.warnings.push_back(
          fmt::format("{}: left out: {}: a study holds collectives; known: Allreduce, Allgather, "
                      "Alltoall, Bcast, Gather, Reduce, Reduce_scatter, Scatter, Sendrecv",
                      source_.name, fmt::join(others_, ", ")));
    return std::move(said_);
  }

 private:
  void take(const Line& line) {
    const std::vector<std::string_view> words = words_in(line.text);
    const auto is = [&](size_t at, std::string_view word) { return at < words.size() && words[at] == word; };
    if (is(0, "#") && is(1, "Benchmarking") && words.size() > 2) {
      begin(words[2]);
    } else if (is(0, "#") && is(1, "#processes") && is(2, "=") && words.size() > 3) {
      ranks_ = whole_in(words[3]);
    } else if (is(0, "#") && is(1, "Intel(R)") && is(2, "MPI") && is(3, "Benchmarks") && words.size() > 4) {
      said_.version = words[4].substr(0, words[4].find(','));
    } else if (is(0, "#") && (is(1, "MPI_Datatype") || is(1, "MPI_Op"))) {
      // For example "# MPI_Datatype for reductions    :   MPI_DOUBLE", printed for -red_data_type.
      std::string& word = is(1, "MPI_Op") ? reduction_ : is(2, "for") ? reduced_element_ : element_;
      word = words.back();
    } else if (is(0, "#bytes")) {
      columns_.assign(words.begin(), words.end());
    } else if (benchmark_ != nullptr && ranks_ > 0 && !words.empty() &&
               (whole_in(words.front()) >= 0 || looks_like_row(words))) {
      take_row(line, words);
    }
  }

  // Whether the line is a row whose size is damaged or preceded by other text.
  bool looks_like_row(const std::vector<std::string_view>& words) const {
    return !columns_.empty() && !words.front().starts_with('#') &&
           std::count_if(words.begin(), words.end(), is_number) + 1 >= std::ssize(columns_);
  }

  void begin(std::string_view name) {
    benchmark_ = find_benchmark(kImbBenchmarks, name);
    ranks_ = 0;
    columns_.clear();
    constexpr size_t kMostNamed = 20;
    if (benchmark_ == nullptr && others_.size() < kMostNamed &&
        std::find(others_.begin(), others_.end(), name) == others_.end())
      others_.emplace_back(name);
  }

  // Columns are found by their names, because their number depends on the benchmark and its flags. The time
  // is that of the slowest rank.
  void take_row(const Line& line, const std::vector<std::string_view>& words) {
    const auto at = [&](std::string_view column) {
      const auto found = std::find(columns_.begin(), columns_.end(), column);
      return found == columns_.end() ? "" : words[static_cast<size_t>(found - columns_.begin())];
    };
    if (words.size() != columns_.size() || !line.is_whole) return damaged_.add(line, "it is not whole");
    const int64_t bytes = whole_in(at("#bytes"));
    const double time_us = number_in(at("t_max[usec]"));
    if (bytes == 0) return;  // without a message
    if (bytes < 0) return damaged_.add(line, "its size is no whole number of bytes");
    if (bytes > values::kMessage.most) return damaged_.add(line, "no run has such a message");
    if (!(time_us > 0)) return damaged_.add(line, "it has no time above 0");
    const bool reduces = specs::collective(benchmark_->collective).reduces;
    Record record = mpi_record(*benchmark_, bytes, ranks_, time_us, whole_in(at("#repetitions")),
                               reduces ? reduced_element_ : element_);
    if (reduces) record.point.collective.reduction = reduction_of(reduction_);
    // The column tells that results are wrong, and not how many. One stands for any number.
    if (const double defects = number_in(at("defects")); defects >= 0)
      set_wrong(defects > 0 ? 1 : 0, fmt::format("defects: {}", defects), record);
    said_.measured.push_back({std::move(record), line.number, 0, ""});
    require_few(std::ssize(said_.measured), source_);
  }

  const Source& source_;
  LeftOut damaged_;
  Contents said_;
  const MpiBenchmark* benchmark_ = nullptr;
  int64_t ranks_ = 0;
  // IMB's defaults, used if the header does not name others.
  std::string element_ = "MPI_BYTE", reduced_element_ = "MPI_FLOAT", reduction_ = "MPI_SUM";
  std::vector<std::string> columns_, others_;
};

bool is_imb(const std::string& text) { return text.find("# Benchmarking ") != std::string::npos; }

Contents read_imb(const Source& source, const Given& given) {
  Contents said = ImbReader(source).read();
  for (const Measured& one : said.measured) ranks_of(one.record.point.ranks, given, place(source, one.line));
  return said;
}

const Registration<Format> registered{
    "imb",
    {"Intel MPI Benchmarks: IMB-MPI1 Allreduce ...",
     {"# Benchmarking ", "# #processes = ", "# MPI_Datatype ", "# MPI_Op ", "# Calling sequence was"},
     is_imb,
     read_imb}};

}  // namespace
}  // namespace shardmark::imports::imb
