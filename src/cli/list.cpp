// shardmark list: the available suites, the names that a suite may use with their options and defaults, and
// the reference collection.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <memory>
#include <set>
#include <span>

#include "analysis/reference/tables.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/candidates.h"
#include "cli/command.h"
#include "cli/find_suite.h"
#include "cli/shared_folder.h"
#include "plan/suite.h"
#include "schema/json.h"
#include "specs/collectives.h"
#include "specs/routing.h"
#include "specs/specs.h"
#include "strategies/reductions/reduction.h"
#include "strategies/strategy.h"

namespace shardmark {
namespace {

struct Entry {
  std::string name;
  std::string description;
  std::vector<std::string> options = {};  // one line each
};

std::string default_text(const OptionSpec& spec) {
  if (spec.default_value.is_nothing()) return "required";
  return spec.default_value.is<std::string>() ? spec.default_value.get<std::string>()
                                              : to_json(spec.default_value).dump();
}

// One aligned line per option: "layers = 12  transformer blocks".
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

template <class Specs>
std::vector<Entry> entries_of(const Specs& specs) {
  std::vector<Entry> entries;
  entries.reserve(specs.size());
  for (const auto& [name, spec] : specs)
    entries.push_back({name, spec.description, option_lines(spec.options)});
  return entries;
}

template <class Rows>
std::vector<Entry> rows_of(const Rows& rows) {
  std::vector<Entry> entries;
  entries.reserve(rows.size());
  for (const auto& row : rows) entries.push_back({row.name, row.description});
  return entries;
}

// Bytes per parameter of a whole model with AdamW; sharded strategies hold a part of them. In "4 + 2", the
// first number is that of the main copy, and the second one that of the narrower copy with which blocks
// compute.
std::vector<Entry> precisions() {
  std::vector<Entry> entries;
  for (const auto& spec : specs::precision_specs()) {
    const auto bytes = specs::bytes_per_parameter(specs::element_bytes(spec.name, "same"), 2);
    const auto pair = [](int64_t main, int64_t copy) {
      return copy == 0 ? fmt::format("{}", main) : fmt::format("{} + {}", main, copy);
    };
    entries.push_back({spec.name,
                       spec.description,
                       {fmt::format("{} bytes a parameter with AdamW: weights {}, gradients {}, moments {}",
                                    bytes.total(), pair(bytes.master, bytes.copy),
                                    pair(bytes.main_gradient, bytes.gradient), bytes.state)}});
  }
  return entries;
}

std::vector<Entry> suites_in(const std::filesystem::path& folder) {
  std::set<std::filesystem::path> paths;
  std::error_code none;  // a missing folder has no suites
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

struct Section {
  std::string title;
  std::vector<Entry> entries;
  // Whether the short list has a line for each entry; otherwise it lists only their names.
  bool has_lines = true;
  std::string kind = "";  // another name of the section, which several share
  std::string note = "";  // below it
};

std::string full_text(const Section& section) {
  size_t width = 0;
  for (const auto& entry : section.entries) width = std::max(width, entry.name.size());
  std::string text = section.title + "\n";
  for (const auto& entry : section.entries) {
    text += fmt::format("  {:<{}}  {}\n", entry.name, width, printable(entry.description, ""));
    for (const auto& option : entry.options) text += fmt::format("  {:<{}}    {}\n", "", width, option);
  }
  if (!section.note.empty()) text += section.note + "\n";
  return text + "\n";
}

std::string short_text(Section section) {
  for (Entry& entry : section.entries) entry.options.clear();
  if (section.has_lines) return full_text(section);
  std::vector<std::string> names;
  names.reserve(section.entries.size());
  for (const Entry& entry : section.entries) names.push_back(entry.name);
  return fmt::format("{:<14}  {}\n", section.title, fmt::join(names, ", "));
}

// What to try first: small, on any machine, and one for each of the commonest questions.
constexpr const char* kFirstSuites[] = {"quick", "memory", "layouts"};
// Beside those that are named after GPUs. Their models are too large for CPU ranks.
constexpr const char* kSuitesForGpus[] = {"gpt2", "llama", "strategies"};

bool is_among(const Entry& entry, std::span<const char* const> names) {
  const std::string name = std::filesystem::path(entry.name).stem();
  return std::any_of(names.begin(), names.end(), [&](const char* one) { return name == one; });
}

// Suites of the working directory are listed by their file, and those that came with the program by their
// name, unless the working directory has them, too.
std::vector<Section> suites() {
  const std::string here = "suites", installed = installed_suites();
  std::error_code none;
  std::vector<Entry> all = suites_in(here);
  std::set<std::string> names;
  for (const Entry& entry : all) names.insert(std::filesystem::path(entry.name).stem());
  const bool is_elsewhere = !installed.empty() && !std::filesystem::equivalent(here, installed, none);
  if (is_elsewhere)
    for (Entry& entry : suites_in(installed)) {
      entry.name = std::filesystem::path(entry.name).stem();
      if (!names.contains(entry.name)) all.push_back(std::move(entry));
    }
  std::vector<Section> groups = {
      {"Suites: start here", {}}, {"Suites: one question each", {}}, {"Suites for GPUs", {}}};
  for (Entry& entry : all) {
    const bool is_for_gpus = std::filesystem::path(entry.name).stem().string().starts_with("gpu-") ||
                             is_among(entry, kSuitesForGpus);
    groups[is_among(entry, kFirstSuites) ? 0 : is_for_gpus ? 2 : 1].entries.push_back(std::move(entry));
  }
  for (Section& group : groups) group.kind = "suites";
  std::erase_if(groups, [](const Section& group) { return group.entries.empty(); });
  if (is_elsewhere && !groups.empty())
    groups.back().note = "Suites without a folder are in " + installed + ".";
  return groups;
}

std::vector<Section> sections() {
  std::vector<Section> all = suites();
  for (Section& section : std::vector<Section>{
           {"Models", entries_of(Registry<specs::ModelSpec>::instance().entries())},
           {"Strategies", entries_of(Registry<strategies::Strategy>::instance().entries())},
           {"Reductions", entries_of(Registry<strategies::Reduction>::instance().entries()), false},
           {"Routings", entries_of(specs::routing_specs()), false},
           {"Data", entries_of(specs::data_specs()), false},
           {"Optimizers", entries_of(specs::optimizer_specs()), false},
           {"Collectives", rows_of(specs::operations()), false},
           {"Transports", entries_of(specs::transport_specs()), false},
           {"Precisions", precisions(), false},
       })
    all.push_back(std::move(section));
  Section types{"Element types", {}, false}, operations{"Reduce ops", {}, false};
  for (const auto& name : specs::dtype_names())
    types.entries.push_back({name, "element type of collectives"});
  for (const auto& name : specs::reduction_names())
    operations.entries.push_back({name, "operator of a reduction"});
  all.push_back(types);
  all.push_back(operations);
  return all;
}

// It is no section, because reading all reference studies takes longer than the rest of the list.
constexpr const char* kReference = "reference";

std::string reference_text() {
  std::vector<StudyData> studies;
  for (const std::string& file : reference_files())
    studies.push_back(read_study(file, Load::without_samples));
  if (studies.empty())
    throw UsageError(
        fmt::format("no reference studies in {}, and none came with this program; shardmark report x.h5 "
                    "--share DIR writes one",
                    kReferencesHere));
  return to_text(collection_table(studies));
}

// The text about everything called `name`. A section is printed whole if its title, with a small first
// letter, or its kind is the name. Other sections are reduced to their entries of that name.
std::string named(const std::vector<Section>& all, const std::string& name) {
  if (name == kReference) return reference_text();
  std::string text;
  for (Section section : all) {
    std::string title = section.title;
    title[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(title[0])));
    if (title != name && section.kind != name)
      std::erase_if(section.entries, [&](const Entry& entry) { return entry.name != name; });
    if (!section.entries.empty()) text += full_text(section);
  }
  if (text.empty()) throw UsageError("unknown name '" + name + "'; shardmark list shows the names");
  return text;
}

struct Flags {
  std::vector<std::string> names;
  bool all = false;
};

int list(const Flags& flags) {
  const std::vector<Section> all = sections();
  std::string text;
  for (const std::string& name : flags.names) text += named(all, name);
  if (!flags.names.empty()) {
    print(text);
    return kDone;
  }
  // full_text() ends with an empty line. Sections that list only names follow each other without one, so it
  // is added behind the last of them.
  bool was_names = false;
  for (const Section& section : all) {
    const bool is_names = !flags.all && !section.has_lines;
    if (was_names && !is_names) text += "\n";
    text += flags.all ? full_text(section) : short_text(section);
    was_names = is_names;
  }
  print(text);
  if (!flags.all)
    print(
        "shardmark list NAME ... shows the options of a model, a strategy ...; list reference the machines "
        "that "
        "were measured; --all everything.\n");
  return kDone;
}

std::function<int()> define_list(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  auto* names = app.add_option(
      "names", flags->names,
      "such as fsdp, or strategies: with their options and defaults; reference: the collection of "
      "measured machines");
  offer(names, {.words = [] {
          std::vector<std::string> words = {kReference};
          for (const Section& section : sections())
            for (const Entry& entry : section.entries) words.push_back(entry.name);
          return words;
        }});
  app.add_flag("--all", flags->all, "everything, with options and defaults")->excludes(names);
  return [flags] { return list(*flags); };
}

const Registration<CommandEntry> list_command{
    "list", {"suites, models, strategies and their options, reference machines", define_list}};

}  // namespace
}  // namespace shardmark
