// shardmark list: the words that a suite may use, with their options and defaults, and the suites at hand.
#include <fmt/format.h>

#include <filesystem>
#include <set>

#include "base/log.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/find_suite.h"
#include "laws/collectives.h"
#include "laws/vocabulary.h"
#include "plan/suite.h"
#include "schema/json.h"
#include "strategies/reductions/reduction.h"
#include "strategies/strategy.h"

namespace shardmark {
namespace {

struct Entry {
  std::string name;
  std::string description;
  std::vector<std::string> options = {};  // a line each
};

std::string default_text(const OptionSpec& spec) {
  if (spec.default_value.is_nothing()) return "required";
  return spec.default_value.is<std::string>() ? spec.default_value.get<std::string>()
                                              : to_json(spec.default_value).dump();
}

// "layers = 12  transformer blocks", one line per option, aligned.
std::vector<std::string> option_lines(const OptionTable& table) {
  size_t key_width = 0, default_width = 0;
  for (const auto& spec : table) {
    key_width = std::max(key_width, spec.key.size());
    default_width = std::max(default_width, default_text(spec).size());
  }
  std::vector<std::string> lines;
  for (const auto& spec : table)
    lines.push_back(fmt::format(
        "{:<{}} = {:<{}}  {}{}", spec.key, key_width, default_text(spec), default_width, spec.description,
        spec.accepted.empty() ? "" : fmt::format(" ({})", fmt::join(spec.accepted, ", "))));
  return lines;
}

template <class Laws>
std::vector<Entry> entries_of(const Laws& laws) {
  std::vector<Entry> entries;
  entries.reserve(laws.size());
  for (const auto& [name, law] : laws) entries.push_back({name, law.description, option_lines(law.options)});
  return entries;
}

template <class Rows>
std::vector<Entry> rows_of(const Rows& rows) {
  std::vector<Entry> entries;
  entries.reserve(rows.size());
  for (const auto& row : rows) entries.push_back({row.name, row.description});
  return entries;
}

// What a whole model takes, with AdamW; sharded strategies hold a part of it.
std::vector<Entry> precisions() {
  std::vector<Entry> entries;
  for (const auto& law : laws::precision_laws()) {
    const auto bytes = laws::bytes_per_parameter(laws::element_bytes(law.name, "same"), 2);
    const auto pair = [](int64_t main, int64_t copy) {
      return copy == 0 ? fmt::format("{}", main) : fmt::format("{} + {}", main, copy);
    };
    entries.push_back({law.name,
                       law.description,
                       {fmt::format("{} bytes a parameter with AdamW: weights {}, gradients {}, moments {}",
                                    bytes.total(), pair(bytes.master, bytes.copy),
                                    pair(bytes.main_gradient, bytes.gradient), bytes.state)}});
  }
  return entries;
}

std::vector<Entry> suites_in(const std::filesystem::path& folder) {
  std::set<std::filesystem::path> paths;
  std::error_code none;  // a folder that is not there holds no suites
  for (const auto& file : std::filesystem::directory_iterator(folder, none))
    if (file.path().extension() == ".yaml") paths.insert(file.path());
  std::vector<Entry> entries;
  for (const auto& path : paths) {
    try {
      const Suite suite = read_suite(path.string());
      entries.push_back({path.string(), suite.description});
    } catch (const UsageError& error) {
      entries.push_back({path.string(), std::string("damaged: ") + error.what()});
    }
  }
  return entries;
}

std::string section(const std::string& title, const std::vector<Entry>& entries) {
  if (entries.empty()) return "";
  size_t width = 0;
  for (const auto& entry : entries) width = std::max(width, entry.name.size());
  std::string text = title + "\n";
  for (const auto& entry : entries) {
    text += fmt::format("  {:<{}}  {}\n", entry.name, width, printable(entry.description, ""));
    for (const auto& option : entry.options) text += fmt::format("  {:<{}}    {}\n", "", width, option);
  }
  return text + "\n";
}

// Those of the working directory by their files, those that came with the program by their names.
std::string suites() {
  const std::string here = "suites", installed = installed_suites();
  std::error_code none;
  std::string text = section("Suites in the working directory", suites_in(here));
  if (installed.empty() || std::filesystem::equivalent(here, installed, none)) return text;
  std::vector<Entry> entries = suites_in(installed);
  for (Entry& entry : entries) entry.name = std::filesystem::path(entry.name).stem();
  return text + section("Suites in " + installed + ", by name in any directory", entries);
}

int list() {
  print(section("Models", entries_of(Registry<laws::ModelLaw>::instance().entries())) +
        section("Strategies", entries_of(Registry<strategies::Strategy>::instance().entries())) +
        section("Reductions of ddp's buckets",
                entries_of(Registry<strategies::Reduction>::instance().entries())) +
        section("Data", entries_of(laws::data_laws())) +
        section("Optimizers", entries_of(laws::optimizer_laws())) +
        section("Collectives", rows_of(laws::collectives())) +
        section("Transports", entries_of(laws::transport_laws())) + section("Precisions", precisions()) +
        fmt::format("Element types of collectives: {}\nReductions: {}\n\n",
                    fmt::join(laws::dtype_names(), ", "), fmt::join(laws::reduction_names(), ", ")) +
        suites());
  return kDone;
}

std::function<int()> define(CLI::App&) { return list; }

const Registration<CommandEntry> registered{
    "list", {"list models, strategies, data sources, optimizers, collectives and suites", define}};

}  // namespace
}  // namespace shardmark
