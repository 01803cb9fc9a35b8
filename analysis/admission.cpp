// The checks are the report's own (overview.h, findings.h), and few more.
#include "analysis/admission.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>

#include "analysis/overview/overview.h"
#include "analysis/reference/matched.h"
#include "analysis/stats/sustained.h"
#include "schema/journal.h"
#include "schema/published.h"
#include "schema/seal.h"
#include "schema/settings.h"
#include "specs/specs.h"
#include "strategies/brief_text.h"

namespace shardmark {
namespace {

// What changes how fast libraries are, and says nothing of who ran it where.
constexpr std::array kKeptVariables = {"OMP_NUM_THREADS",
                                       "OMP_PROC_BIND",
                                       "MKL_NUM_THREADS",
                                       "NVIDIA_TF32_OVERRIDE",
                                       "CUDA_LAUNCH_BLOCKING",
                                       "CUDA_DEVICE_MAX_CONNECTIONS",
                                       "NCCL_ALGO",
                                       "NCCL_PROTO",
                                       "NCCL_NVLS_ENABLE",
                                       "NCCL_P2P_DISABLE",
                                       "NCCL_P2P_LEVEL",
                                       "NCCL_SHM_DISABLE",
                                       "NCCL_IB_DISABLE",
                                       "NCCL_NET_GDR_LEVEL",
                                       "NCCL_MIN_NCHANNELS",
                                       "NCCL_MAX_NCHANNELS",
                                       "NCCL_BUFFSIZE",
                                       "NCCL_NTHREADS"};
constexpr std::array kKeptVersions = {"torch", "mpi",    "nccl",     "cuda",
                                      "cudnn", "cublas", "compiler", "kernel"};
constexpr std::array kKeptFacts = {"cores_per_node",         "ranks_per_node",     "communication_thread",
                                   "device_memory_bytes",    "peak_flops",         "datasheet_flops",
                                   "memory_of_a_rank_bytes", "collectives_checked"};
constexpr const char* kTunedCollectives = "OMPI_MCA_coll_";
constexpr const char* kFilesOfSuites = "texts/";  // beside the suites

// "3 points, such as x", "1 point, x", of those for which it holds; "" for none.
template <class Holds>
std::string points_text(const std::vector<MergedPoint>& points, Holds holds) {
  const auto first = std::find_if(points.begin(), points.end(), holds);
  if (first == points.end()) return "";
  const auto count = std::count_if(points.begin(), points.end(), holds);
  return fmt::format("{} point{}, {}{}", count, count == 1 ? "" : "s", count == 1 ? "" : "such as ",
                     brief_text(first->point));
}

// Whether some option is a text that people choose themselves, such as a path.
bool has_own_text(const Choice& choice, const OptionTable& table) {
  return std::any_of(table.begin(), table.end(), [&](const OptionSpec& spec) {
    const OptionValue* const option = choice.options.find(spec.key);
    if (option == nullptr || !option->is<std::string>() || !spec.accepted.empty()) return false;
    if (spec.type == OptionType::choice) return false;
    const auto text = option->get<std::string>();
    const bool is_of_suites = text.starts_with(kFilesOfSuites) && text.find(' ') == std::string::npos &&
                              text.find("..") == std::string::npos;
    return !(*option == spec.default_value) && !is_of_suites;
  });
}

// Paths of data and of checkpoints, which others do not have.
bool has_files_of_its_own(const MergedPoint& merged) {
  if (!is_training(merged)) return false;
  const TrainingPoint& t = merged.point.training;
  const auto data = specs::data_specs().find(t.data.name);
  const auto save = specs::save_specs().find(t.save.name);
  return data == specs::data_specs().end() || save == specs::save_specs().end() ||
         has_own_text(t.data, data->second.options) || has_own_text(t.save, save->second.options);
}

// A variable's value is kept if it is a short word: without a dot, slash or hyphen it holds no path and no
// full host name.
bool is_plain_word(const std::string& text) {
  return text.size() <= 32 && std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == ',' || c == '^' || c == ':';
         });
}

// The value of other settings may be a path, or the name of a host or of its network port.
bool has_settings_of_its_own(const MergedPoint& merged) {
  const Settings settings = settings_from_text(merged.point.environment);
  return std::any_of(settings.begin(), settings.end(), [](const auto& setting) {
    const auto& [name, value] = setting;
    if (value.find_first_not_of("0123456789") == std::string::npos) return false;
    const bool is_kept =
        !is_variable(name) || name.starts_with(kTunedCollectives) ||
        std::find(kKeptVariables.begin(), kKeptVariables.end(), name) != kKeptVariables.end();
    return !is_kept || !is_plain_word(value);
  });
}

void check_file(const std::string& path, std::vector<std::string>& reasons) {
  if (has_journal(path))
    reasons.emplace_back("not published: its job still runs or was interrupted; finish it with --resume");
  else if (require_sealed(path) == 0)
    reasons.emplace_back("no seal: it was made before studies had one, so it may have been changed since");
}

void check_points(const std::vector<MergedPoint>& points, std::vector<std::string>& reasons) {
  if (points.empty()) reasons.emplace_back("no result: no point has outcome ok");
  const auto add = [&](const char* kind, const std::string& which, const std::string& advice) {
    if (!which.empty()) reasons.push_back(fmt::format("{}: {}; {}", kind, which, advice));
  };
  add("not checked",
      points_text(points, [](auto& one) { return !is_training(one) && one.measures.num_wrong < 0; }),
      "let collectives verify their elements");
  add("too few repeats", points_text(points, [](auto& one) { return one.repeats < kLeastRepeats; }),
      fmt::format("run it with --repeats {} or more", kLeastRepeats));
  add("files of its own", points_text(points, has_files_of_its_own),
      "others need the same data, synthetic or the texts beside the suites, and checkpoints in the working "
      "directory");
  add("settings of its own", points_text(points, has_settings_of_its_own),
      fmt::format("others may set numbers, {}... and the variables that change algorithms, such as NCCL_ALGO",
                  kTunedCollectives));
}

// The leading part that is made of such words as versions are: what a distribution or an administrator added
// to it, after a comma or (of a kernel) a hyphen, may name a host.
std::string version_part(const std::string& text, bool is_kernel) {
  const auto end = std::find_if(text.begin(), text.end(), [&](unsigned char c) {
    return is_kernel ? std::isdigit(c) == 0 && c != '.'
                     : std::isalnum(c) == 0 &&
                           std::string_view(" .+-_").find(static_cast<char>(c)) == std::string_view::npos;
  });
  return {text.begin(), end};
}

// Copies what is on a list, and nothing else: a list of what to remove would miss what nobody thought of.
// Nodes get numbers in the order of the study, so it still shows which ranks share a node.
Environment anonymous(const Environment& before, const std::string& suite) {
  Environment after;
  after.revision = before.revision;
  after.suite_path = suite;
  after.started = before.started;
  after.transport = before.transport;
  after.world_ranks = before.world_ranks;
  after.order_seed = before.order_seed;
  after.threads_per_rank = before.threads_per_rank;
  after.devices = before.devices;
  std::map<std::string, std::string> names;
  for (const std::string& node : before.nodes) {
    names.try_emplace(node, fmt::format("node{}", names.size() + 1));
    after.nodes.push_back(names.at(node));
  }
  for (const std::string& node : before.rank_nodes)
    after.rank_nodes.push_back(
        names.try_emplace(node, fmt::format("node{}", names.size() + 1)).first->second);
  for (const char* name : kKeptVersions)
    if (const auto text = (*before.versions).value(name, ""); !text.empty())
      (*after.versions)[name] = version_part(text, std::string_view(name) == "kernel");
  for (const char* name : kKeptVariables)
    if (const auto text = (*before.variables).value(name, ""); !text.empty() && is_plain_word(text))
      (*after.variables)[name] = text;
  const nlohmann::ordered_json& facts = *before.facts;
  for (const char* name : kKeptFacts)
    if (facts.contains(name)) (*after.facts)[name] = facts.at(name);
  return after;
}

// "NVIDIA H100 80GB HBM3" -> "nvidia-h100-80gb-hbm3"
std::string file_word(const std::string& text) {
  std::string word;
  for (const unsigned char c : text) {
    if (std::isalnum(c) != 0)
      word += static_cast<char>(std::tolower(c));
    else if (!word.empty() && word.back() != '-')
      word += '-';
  }
  while (word.ends_with('-')) word.pop_back();
  return word;
}

}  // namespace

std::vector<std::string> reasons_against(const StudyData& study, const std::vector<std::string>& files) {
  std::vector<std::string> reasons;
  check_file(study.path, reasons);
  const std::vector<StudyData> studies = {study};
  const std::vector<MergedPoint> points = merge_repeats(studies);
  check_points(points, reasons);
  for (std::string& caution : cautions_of(studies, points, unfinished_runs(studies)))
    reasons.push_back(std::move(caution));
  const std::string& revision = study.environment.revision;
  if (revision.empty() || revision.find("-dirty") != std::string::npos)
    reasons.push_back(fmt::format("revision {}: the program was built from files that no revision holds",
                                  revision.empty() ? "unknown" : revision));
  if (references_for(studies, files).holds_them) reasons.emplace_back("in the collection already");
  return reasons;
}

StudyData anonymous(StudyData study, const std::string& suite) {
  study.environment = anonymous(study.environment, suite);
  std::erase_if(study.records, [](const Record& record) {
    return record.outcome != Outcome::ok || !is_known_workload(record.point) ||
           record.point.workload == "train";
  });
  for (Record& record : study.records) {
    record.reason.clear();
    record.measures.network_ports.clear();  // has the nodes' names
  }
  return study;
}

std::string reference_name(const StudyData& study) {
  const Environment& e = study.environment;
  const std::string suite = e.suite_path.substr(0, e.suite_path.find('.'));
  return fmt::format("{}-{}-{}{}.h5", file_word(e.devices.empty() ? "device" : e.devices.front()),
                     e.world_ranks, suite.empty() ? "" : suite + "-",
                     e.started.substr(0, e.started.find('T')));
}

void write_reference(const StudyData& study, const std::string& path) {
  write_published(path, [&](const RecordSink& sink) {
    for (const Record& record : study.records) sink(Record(record));
    return study.environment;
  });
}

}  // namespace shardmark
