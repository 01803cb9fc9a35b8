// Reads what benchmarks of dispatch and combine print: the tests of DeepEP (and of UCCL-EP, which are the
// same), and ep_bench of NCCL EP. They rate what a rank receives, its own part included, as our algbw does;
// how many rows of tokens that are follows from the numbers of tokens, experts and ranks (specs/tokens.h), so
// that a rate that is not of these is noticed. Sources: github.com/deepseek-ai/DeepEP, tests/legacy/*.py (V1)
// and tests/elastic/test_ep.py (V2); github.com/NVIDIA/nccl, contrib/nccl_ep/ep_bench.cu of 2.29 and 2.30.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "base/value.h"
#include "import/collective_record.h"
#include "import/lines.h"
#include "specs/collectives.h"
#include "specs/tokens.h"

namespace shardmark::imports::expert_parallel {
namespace {

constexpr std::string_view kDispatch = "dispatch", kCombine = "combine";
constexpr std::string_view kBenchTitle = "=== NCCL EP Performance Benchmark ===";

// The number directly after a key, as in "num_tokens=4096,"; NaN if there is none.
double after(std::string_view text, std::string_view key) {
  const size_t at = text.find(key);
  if (at == std::string_view::npos) return Measures::kNone;
  text.remove_prefix(at + key.size());
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return number_in(text.substr(0, text.find_first_not_of("0123456789.")));
}

// The number directly before a unit, as in "153.02 GB/s (NVL)"; NaN if there is none.
double before(std::string_view text, std::string_view unit) {
  const size_t at = text.find(unit);
  if (at == std::string_view::npos) return Measures::kNone;
  text = text.substr(0, at);
  const size_t end = text.find_last_not_of(' ');
  if (end == std::string_view::npos) return Measures::kNone;
  text = text.substr(0, end + 1);
  return number_in(text.substr(text.find_last_of(" =:,(") + 1));
}

constexpr int64_t kMostNumber = 1 << 30;  // of tokens, elements, experts, ranks

// A whole number from 0 on directly after a key; -1 if there is none.
int64_t whole_after(std::string_view text, std::string_view key) {
  const double number = after(text, key);
  return number >= 0 && number <= static_cast<double>(kMostNumber) ? static_cast<int64_t>(number) : -1;
}

// What a log says before its results; 0: not yet.
struct Setting {
  int64_t tokens = 0, width = 0, experts = 0, top_k = 0, ranks = 0, nodes = 0;
};

// What one rank, or a summary of all, says of an operation.
struct Said {
  int64_t rank = 0;
  double time_us = 0, rate_gb_s = 0;
  const char* once_per = "rank";
  std::string element = {};  // "": to be derived
  Line line = {};
};

// Reads a log from top to bottom. What it says about tokens, experts and ranks is kept as the setting of the
// results that follow. Results are collected by operation until all ranks have printed theirs: a rank that
// prints again, another element type, or another setting shows that a new measurement has begun. Then
// finish() stores the result of the slowest rank.
class Reader {
 public:
  Reader(const Source& source, const Given& given) : source_(source), given_(given), left_out_(source) {}

  Contents read() {
    for_each_line(source_, [this](const Line& line) { take(line); });
    finish();
    left_out_.report(contents_.warnings);
    if (num_variants_ > 0)
      contents_.warnings.push_back(fmt::format(
          "{}: {} lines of operations in other forms (expanded, cached, reduced, with a bias) are left out",
          source_.name, num_variants_));
    return std::move(contents_);
  }

 private:
  static bool has(const Line& line, std::string_view text) {
    return line.text.find(text) != std::string_view::npos;
  }

  void take(const Line& line) {
    if (has(line, kBenchTitle)) begin_bench();
    if (is_bench_) return take_bench(line);
    if (has(line, "[config]")) return take_config(line);
    if (has(line, "> Ranks: ") || has(line, "> Experts: ") || has(line, "> Tokens: "))
      return take_elastic(line);
    if (has(line, "> Testing with ")) return take_case(line);
    if (has(line, "GB/s (SU)")) return take_elastic_result(line);
    if (has(line, "] Dispatch bandwidth: ")) return take_low_latency(line);
    if (has(line, "[tuning] Best ")) return take_best(line);
  }

  // Results that are not stored yet are of the numbers before.
  void note(int64_t& value, int64_t said) {
    if (said <= 0 || said == value) return;
    finish();
    value = said;
  }

  // "[config] num_tokens=4096, hidden=7168, num_topk_groups=4, num_topk=8". Users add num_experts=256.
  void take_config(const Line& line) {
    finish();
    note(setting_.tokens, whole_after(line.text, "num_tokens="));
    note(setting_.width, whole_after(line.text, "hidden="));
    note(setting_.top_k, whole_after(line.text, "num_topk="));
    note(setting_.experts, whole_after(line.text, "num_experts="));
  }

  // " > Ranks: 2 x 8", " > Experts: 8/256", " > Tokens: 8192 (max: 8192), hidden: 7168". Each node's first
  // rank prints them, and a rank has one token less than the one before it. The first number of ranks is that
  // of domains, which are nodes if there are several.
  void take_elastic(const Line& line) {
    const int64_t domains = whole_after(line.text, "> Ranks: "), each = whole_after(line.text, " x ");
    if (domains > 0 && each > 0 && domains <= values::kRanks.most / each) {
      note(setting_.ranks, domains * each);
      setting_.nodes = domains > 1 ? domains : 0;
    }
    note(setting_.top_k, whole_after(line.text, "> Experts: "));
    if (has(line, "> Experts: ")) note(setting_.experts, whole_after(line.text, "/"));
    note(setting_.tokens, whole_after(line.text, "(max: "));
    note(setting_.width, whole_after(line.text, "hidden: "));
  }

  // " > Testing with do_handle_copy=1, expert_alignment=128, use_fp8_dispatch=1, num_bias=0, ..."
  void take_case(const Line& line) {
    finish();
    const int64_t fp8 = whole_after(line.text, "use_fp8_dispatch=");
    case_element_ = fp8 == 1 ? "fp8" : fp8 == 0 ? "bfloat16" : "";
    case_has_bias_ = whole_after(line.text, "num_bias=") > 0;
  }

  // "* EP:   3/16 | dispatch: 115 GB/s (SO), 376 GB/s (SU), 1064.000 us, 400593024 bytes | copy: ..."
  void take_elastic_result(const Line& line) {
    const bool is_dispatch = has(line, "| dispatch:");
    if ((!is_dispatch && !has(line, "| combine:")) || (!is_dispatch && case_has_bias_)) {
      ++num_variants_;
      return;
    }
    Said said{.rank = whole_after(line.text, "EP: "),
              .time_us = before(line.text, " us,"),
              .rate_gb_s = before(line.text, "GB/s (SU)"),
              .once_per = setting_.nodes > 1 ? "node" : "rank",
              .element = is_dispatch ? case_element_ : "bfloat16",
              .line = line};
    // The rate has few digits: bytes / time is the same rate with more.
    const double bytes = before(line.text, " bytes");
    if (std::abs(bytes / said.time_us / 1e3 - said.rate_gb_s) <= 0.5)
      said.rate_gb_s = bytes / said.time_us / 1e3;
    add(is_dispatch ? kDispatch : kCombine, "", said);
  }

  // "[rank 7] Dispatch bandwidth: 130.99 GB/s, avg_t=57.34 us | Combine bandwidth: 200.77 GB/s, avg_t=72.40
  // us"
  void take_low_latency(const Line& line) {
    const size_t middle = line.text.find('|');
    if (middle == std::string_view::npos) return left_out_.add(line, "it is not whole");
    for (const auto& [operation, part] :
         {std::pair(kDispatch, line.text.substr(0, middle)), std::pair(kCombine, line.text.substr(middle))})
      add(operation, "low_latency",
          {.rank = whole_after(line.text, "[rank "),
           .time_us = after(part, "avg_t="),
           .rate_gb_s = after(part, "bandwidth: "),
           .once_per = "copy",
           .line = line});
  }

  // "[tuning] Best dispatch (FP8): SMs 24, NVL chunk 16, 155.30 GB/s (NVL), t: 1234.00 us", with RDMA "...
  // RDMA chunk 28: 36 + 950 us, 57.43 GB/s (RDMA), 187.44 GB/s (NVL)", where the first time is of counting.
  // The first rank of each node prints it.
  void take_best(const Line& line) {
    const bool is_dispatch = has(line, "Best dispatch");
    add(is_dispatch ? kDispatch : kCombine, "",
        {.rank = num_best_++,
         .time_us = before(line.text, " us"),
         .rate_gb_s = before(line.text, "GB/s (NVL)"),
         .once_per = has(line, "GB/s (RDMA)") ? "node" : "rank",
         .element = !is_dispatch || has(line, "(BF16)") ? "bfloat16" : "fp8",
         .line = line});
  }

  // The program prints its configuration, a line for each rank, and a summary of all. Later versions print a
  // second summary, of the kernels alone.
  void begin_bench() {
    finish();
    setting_ = {};
    is_bench_ = true;
    is_of_kernels_ = false;
  }

  void take_bench(const Line& line) {
    const std::string_view text = line.text;
    note(setting_.ranks, whole_after(text, "  Ranks: "));
    note(setting_.tokens, whole_after(text, "  Tokens: "));
    note(setting_.width, whole_after(text, "  Hidden: "));
    note(setting_.top_k, whole_after(text, "  Top-k: "));
    note(setting_.experts, whole_after(text, "  Experts: "));
    if (has(line, "=== Summary (")) {
      is_low_latency_ = has(line, "Low Latency");
      is_of_kernels_ = false;
    }
    if (has(line, "Kernel-only")) {
      end_bench_result();
      is_of_kernels_ = true;
    }
    if (is_of_kernels_) return;
    // Lines of single ranks have no max.
    const bool is_result = has(line, "avg=") && has(line, "max=") && has(line, " us");
    const bool is_dispatch = has(line, "Dispatch"), is_combine = has(line, "Combine");
    if (is_result && (is_dispatch || is_combine || has(line, "Total"))) {
      end_bench_result();
      if (is_dispatch == is_combine) return;  // of both together
      bench_operation_ = is_dispatch ? kDispatch : kCombine;
      bench_ = {.time_us = after(text, "avg="),
                .once_per = is_low_latency_ ? "copy" : "rank",
                .element = has(line, "(FP8)")    ? "fp8"
                           : has(line, "(BF16)") ? "bfloat16"
                                                 : "",
                .line = line};
    } else if (has(line, "throughput: avg=") && bench_.time_us > 0) {
      bench_.rate_gb_s = after(text, "throughput: avg=");
      end_bench_result();
    }
  }

  void end_bench_result() {
    if (bench_.time_us > 0)
      add(bench_operation_, is_low_latency_ ? "low_latency" : "high_throughput", bench_);
    bench_ = {};
  }

  // Ranks print one after the other; where one prints again, another measurement has begun. `mode`: the form
  // of the library's kernels, where there are several.
  void add(std::string_view operation, const std::string& mode, Said said) {
    if (said.rank < 0 || said.rank > values::kRanks.most || !(said.time_us > 0) || !(said.rate_gb_s > 0))
      return left_out_.add(said.line, "it has no rank, time and rate");
    const std::string transport = is_bench_ ? "nccl_ep" : "deepep";
    if (!contents_.transport.empty() && (contents_.transport != transport || mode_ != mode))
      throw UsageError(place(source_, said.line.number) +
                       "its results are of other kernels than those above; split the file");
    contents_.transport = transport;
    mode_ = mode;
    if (!mode.empty()) contents_.transport_options["mode"] = mode;
    Group& group = groups_[std::string(operation)];
    if (group.ranks.contains(said.rank) || (!group.ranks.empty() && group.slowest.element != said.element))
      finish(std::string(operation));
    if (group.ranks.empty() || said.time_us > group.slowest.time_us) group.slowest = said;
    group.ranks.insert(said.rank);
  }

  void finish() {
    end_bench_result();
    for (const std::string_view operation : {kDispatch, kCombine}) finish(std::string(operation));
    num_best_ = 0;
  }

  void finish(const std::string& operation) {
    Group& group = groups_[operation];
    if (!group.ranks.empty()) store(operation, group.slowest);
    group = {};
  }

  void store(const std::string& operation, const Said& said) {
    const std::string where = place(source_, said.line.number);
    for (const int64_t number : {setting_.tokens, setting_.width, setting_.experts, setting_.top_k})
      if (number == 0)
        throw UsageError(
            where +
            "the log does not say how many tokens, of which width, went to which of how many experts; "
            "add what is missing above the results, as in '[config] num_tokens=4096, hidden=7168, "
            "num_topk=8, num_experts=256'");
    const int64_t ranks = ranks_of(setting_.ranks, given_, where);
    Choice parts{"experts"};
    parts.options["width"] = setting_.width;
    parts.options["experts"] = setting_.experts;
    parts.options["top_k"] = setting_.top_k;
    parts.options["routing"] = std::string("balanced");  // by chance, so that it is on average
    parts.options["once_per"] = std::string(said.once_per);
    std::string text;
    try {
      text = to_text(resolve(parts, specs::token_exchange_options(), "parts"));
      const specs::TokenExchange exchange(choice_from_text(text));
      if (const std::string why = exchange_impossible(exchange, ranks, setting_.tokens * setting_.width);
          !why.empty())
        throw UsageError(why);
    } catch (const UsageError& error) {
      throw UsageError(where + error.what());
    }
    // The element type follows from the rate: rate x time are the bytes that a rank receives, and the
    // setting says how many elements these are. A token is received once for each of its experts by
    // low-latency kernels, and otherwise once for each rank that has experts of it. If the result is neither
    // one byte nor two, the rate and the setting are not of the same measurement.
    const double rows = std::string_view(said.once_per) == "copy"
                            ? static_cast<double>(setting_.top_k)
                            : specs::distinct_parts(ranks, setting_.experts, setting_.top_k);
    const auto elements = static_cast<double>(setting_.tokens * setting_.width);
    const std::string element = element_of(said.rate_gb_s * said.time_us * 1e3 / (rows * elements));
    if (element.empty() || (!said.element.empty() && element != said.element))
      return left_out_.add(said.line,
                           fmt::format("its rate is not that of {} tokens that go to {} of {} experts",
                                       setting_.tokens, setting_.top_k, setting_.experts));
    const int64_t bytes = setting_.tokens * setting_.width * (element == "fp8" ? 1 : 2);
    if (bytes > values::kMessage.most) return left_out_.add(said.line, "no run has such a message");
    Record record = collective_record(specs::operation(operation), ranks, bytes, said.time_us * 1e-6);
    record.point.collective.dtype = element;
    record.point.collective.parts = text;
    const int64_t nodes = std::max({setting_.nodes, given_.nodes, int64_t{1}});
    const specs::TokenTraffic traffic =
        token_traffic(specs::TokenExchange(choice_from_text(text)), ranks,
                      ranks % nodes == 0 ? ranks / nodes : ranks, setting_.tokens);
    // The printed rate includes what a rank sends to itself. The bus bandwidth counts only what crosses to
    // other ranks.
    record.measures.algbw_gb_s = said.rate_gb_s;
    record.measures.busbw_gb_s =
        said.rate_gb_s * static_cast<double>(traffic.exchanged) / static_cast<double>(traffic.logical);
    contents_.times =
        is_bench_ ? "mean over iterations and ranks" : "mean over iterations, of the slowest rank shown";
    contents_.measured.push_back({std::move(record), said.line.number, setting_.nodes, ""});
    require_few(std::ssize(contents_.measured), source_);
  }

  // By the bytes of an element: 1 with scales, indices and weights, or 2.
  static std::string element_of(double bytes) {
    if (bytes > 0.9 && bytes < 1.15) return "fp8";
    return bytes > 1.8 && bytes < 2.2 ? "bfloat16" : "";
  }

  // The ranks that have printed an operation so far, and the slowest of them, which decides.
  struct Group {
    std::set<int64_t> ranks;
    Said slowest;
  };

  const Source& source_;
  const Given& given_;
  LeftOut left_out_;
  Contents contents_;
  Setting setting_;
  std::map<std::string, Group> groups_;  // by operation
  std::string mode_, case_element_;
  int64_t num_variants_ = 0, num_best_ = 0;
  bool case_has_bias_ = false;
  bool is_bench_ = false, is_low_latency_ = false, is_of_kernels_ = false;
  Said bench_;
  std::string_view bench_operation_ = kDispatch;
};

bool is_expert_parallel(const std::string& text) {
  for (const std::string_view mark :
       {std::string_view("GB/s (SU)"), std::string_view("] Dispatch bandwidth: "),
        std::string_view("[tuning] Best "), kBenchTitle})
    if (text.find(mark) != std::string::npos) return true;
  return false;
}

Contents read_expert_parallel(const Source& source, const Given& given) {
  return Reader(source, given).read();
}

const Registration<Format> registered{"expert-parallel",
                                      {"dispatch and combine of DeepEP, UCCL-EP and NCCL's ep_bench",
                                       {},
                                       is_expert_parallel,
                                       read_expert_parallel}};

}  // namespace
}  // namespace shardmark::imports::expert_parallel
