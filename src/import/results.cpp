// Turns what the formats return into records of one study: transport, launch, repeat and identity.
#include "import/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "base/value.h"
#include "import/lines.h"
#include "import/placement.h"
#include "import/plain_text.h"
#include "schema/choice.h"
#include "schema/content_hash.h"
#include "schema/imported.h"
#include "schema/possible.h"

namespace shardmark::imports {
namespace {

// Reports everything that is missing in one message.
void require_said(const std::vector<Read>& all, const Given& given) {
  for (const auto& [source, contents] : all) {
    std::vector<std::string> missing;
    if (contents.devices.empty() && given.device.empty())
      missing.emplace_back(
          "on which devices its ranks ran: give --device, such as --device \"NVIDIA H100 80GB HBM3\" or the "
          "name of the processor");
    if (contents.transport.empty() && given.transport.empty())
      missing.emplace_back("what moved bytes between its ranks: give --transport, such as --transport nccl");
    if (!missing.empty())
      throw UsageError(fmt::format("{}: it does not say {}", source->name, fmt::join(missing, "; nor ")));
  }
}

// In one study, times of two kinds would be taken for repeats of each other.
void require_one_kind(const std::vector<Read>& all) {
  for (const auto& [source, contents] : all)
    if (contents.times != all.front().second.times)
      throw UsageError(
          fmt::format("{} has times of another kind ({}) than {} ({}); import them into two studies",
                      source->name, contents.times, all.front().first->name, all.front().second.times));
}

// A flag provides a fact that a file lacks. If the file states it, the flag must agree.
void require_flags(const std::vector<Read>& all, const Given& given) {
  for (const auto& [source, contents] : all) {
    // nccl-tests also measure rccl, msccl and other libraries with NCCL's interface.
    if (contents.transport == "nccl" && !given.transport.empty() &&
        given.transport.find("ccl") == std::string::npos)
      throw UsageError(
          fmt::format("{}: nccl-tests measure NCCL, or a library with its interface, not {} as "
                      "--transport says; leave that out",
                      source->name, given.transport));
    for (const Measured& one : contents.measured) {
      const Point& point = one.record.point;
      const std::string where = place(*source, one.line);
      ranks_of(point.ranks, given, where);
      if (given.operation.empty() || point.collective.operation == given.operation) continue;
      throw UsageError(fmt::format("{}it is {}, not {} as --operation says; leave that out", where,
                                   point.workload == "collective" ? point.collective.operation : "training",
                                   given.operation));
    }
  }
}

// Throws UsageError if there are times of two kinds, if a flag contradicts a source, or if a fact is missing
// everywhere.
void require_agreement(const std::vector<Read>& all, const Given& given) {
  require_one_kind(all);
  require_flags(all, given);
  require_said(all, given);
}

using Facts = nlohmann::ordered_json;

std::string hash_of_text(const Source& source) { return hash_text(hash_bytes(source.text)); }

std::vector<Read> read_all(const std::vector<Source>& sources, const Given& given,
                           std::vector<std::string>& formats) {
  std::vector<Read> all;
  std::map<std::string, std::string> names;  // by hash
  int64_t num_results = 0;
  for (const Source& source : sources) {
    const auto [same, is_new] = names.emplace(hash_of_text(source), source.name);
    if (!is_new)
      throw UsageError(fmt::format("{} and {} hold the same: a launch counts once; leave one of them out",
                                   same->second, source.name));
    const Source text = plain(source);
    const auto& [format, reader] = format_of(text);
    all.emplace_back(&source, reader.read(text, given));
    formats.push_back(format);
    num_results += std::ssize(all.back().second.measured);
    require_few(num_results, source);
    if (all.back().second.measured.empty()) {
      const auto& warnings = all.back().second.warnings;
      throw UsageError(warnings.empty() ? source.name + ": no result in it"
                                        : fmt::format("{}; nothing of it can be imported", warnings.front()));
    }
  }
  return all;
}

// The transport with its options, such as "nccl(link=ndr400)". The link is one of them, so that results over
// different links are never joined; so is what makes times another kind.
std::string transport_text(const Contents& contents, const Given& given) {
  Choice transport{contents.transport};
  if (!given.transport.empty()) try {
      transport = choice_from_text(given.transport);
    } catch (const UsageError& error) {
      throw UsageError(std::string("--transport: ") + error.what());
    }
  for (const auto& [key, value] : contents.transport_options) transport.options[key] = value;
  if (given.link.empty()) return to_text(transport);
  if (transport.options.contains("link"))
    throw UsageError("--link and the link of --transport are the same: give one of them");
  transport.options["link"] = given.link;
  return to_text(transport);
}

// Names from a log may contain bytes that a terminal does not show; they are written as "\x1b".
void make_printable(std::string& text) { text = printable(text, ""); }
void make_printable(Choice& choice) { choice = choice_or_name(printable(to_text(choice), "")); }

void make_printable(Contents& contents) {
  for (auto* texts : {&contents.devices, &contents.rank_nodes})
    for (std::string& text : *texts) make_printable(text);
  for (auto* maps : {&contents.versions, &contents.variables, &contents.facts})
    for (auto& [name, text] : *maps) make_printable(text);
  make_printable(contents.version);
  for (Measured& one : contents.measured) {
    Point& point = one.record.point;
    for (Choice* choice : {&point.training.model, &point.training.optimizer}) make_printable(*choice);
    make_printable(point.collective.dtype);
    make_printable(point.collective.reduction);
    make_printable(one.record.reason);
  }
}

Facts flags_of(const Given& given) {
  Facts flags = Facts::object();
  for (const auto& [name, value] : {std::pair("device", given.device),
                                    {"transport", given.transport},
                                    {"link", given.link},
                                    {"operation", given.operation}})
    if (!value.empty()) flags[name] = value;
  for (const auto& [name, value] :
       {std::pair("ranks", given.ranks), {"nodes", given.nodes}, {"ranks_per_node", given.ranks_per_node}})
    if (value > 0) flags[name] = value;
  return flags;
}

Facts source_facts(const Source& source, const Contents& contents, const std::string& format) {
  Facts facts = {{"file", printable(source.name, "")},
                 {"hash", hash_of_text(source)},
                 {"format", format},
                 {"version", contents.version},
                 {"times", contents.times}};
  for (const auto& [name, value] : contents.facts) facts[name] = value;
  return facts;
}

// Numbers the repeats of each configuration in a study, and remembers the launch of each repeat. Every
// launch begins behind the last repeat of the launches before it. So each repeat belongs to one launch, even
// if launches measured different configurations. If a launch measured a configuration several times, several
// repeats belong to that launch.
class Repeats {
 public:
  void begin(std::string launch) {
    first_ = launches_.size();
    seen_.clear();
    name_ = std::move(launch);
  }
  void number(Record& record) {
    record.id = point_id(record.point);
    const size_t repeat = first_ + seen_[record.id]++;
    if (repeat == launches_.size()) launches_.push_back(name_);
    if (repeat == 0) return;
    record.point.repeat = static_cast<int64_t>(repeat);
    record.id = point_id(record.point);
  }
  const std::vector<std::string>& launches() const { return launches_; }

 private:
  size_t first_ = 0;
  std::string name_;
  std::map<std::string, size_t> seen_;  // how often this launch measured a configuration
  std::vector<std::string> launches_;   // [repeat]
};

void add_launch(const Source& source, const std::vector<Measured*>& measured, const std::string& transport,
                Repeats& repeats, Imported& imported) {
  for (Measured* one : measured) {
    Record& record = one->record;
    record.point.transport = transport;
    repeats.number(record);
    try {
      require_possible(record);
    } catch (const UsageError& error) {
      throw UsageError(fmt::format("{}:{}: {}", source.name, one->line, error.what()));
    }
    imported.records.push_back(std::move(record));
  }
}

// The first collective of a single rank; nullptr if there is none.
const Measured* alone_in(const Contents& contents) {
  for (const Measured& one : contents.measured)
    if (one.record.point.workload == "collective" && one.record.point.ranks == 1) return &one;
  return nullptr;
}

void add_source(const Source& source, Contents& contents, const Given& given, Repeats& repeats,
                Imported& imported) {
  const std::string transport = transport_text(contents, given);
  if (!imported.environment.transport.empty() && imported.environment.transport != transport)
    throw UsageError(
        fmt::format("{}: it used {}, others {}; a study is of one transport: import them into two",
                    source.name, transport, imported.environment.transport));
  imported.environment.transport = transport;
  if (const Measured* alone = alone_in(contents); alone != nullptr)
    contents.warnings.push_back(
        place(source, alone->line) +
        "one rank took part, so nothing moved between ranks; where several were meant, the program was built "
        "without MPI, or started by the mpirun of another one");
  std::map<std::string, std::vector<Measured*>> launches;
  for (Measured& one : contents.measured) launches[one.launch].push_back(&one);
  for (const auto& [launch, measured] : launches) {
    repeats.begin(hash_of_text(source) + (launch.empty() ? "" : " " + launch));
    add_launch(source, measured, transport, repeats, imported);
  }
  for (const auto& [name, version] : contents.versions) (*imported.environment.versions)[name] = version;
  for (const auto& [name, value] : contents.variables) (*imported.environment.variables)[name] = value;
  imported.warnings.insert(imported.warnings.end(), contents.warnings.begin(), contents.warnings.end());
}

}  // namespace

int64_t ranks_of(int64_t said, const Given& given, const std::string& where) {
  if (said == 0 && given.ranks == 0)
    throw UsageError(where + "it does not say how many ranks took part: give --ranks");
  if (said > 0 && given.ranks > 0 && said != given.ranks)
    throw UsageError(fmt::format("{}{} ranks took part, not {} as --ranks says; leave that out", where, said,
                                 given.ranks));
  if (said > values::kRanks.most) throw UsageError(fmt::format("{}{} ranks, which no run has", where, said));
  return said > 0 ? said : given.ranks;
}

void require_few(int64_t results, const Source& source) {
  if (results > kMostResults)
    throw UsageError(
        fmt::format("{}: more than {} results, which a study does not hold; import them in parts",
                    source.name, kMostResults));
}

const std::pair<const std::string, Format>& format_of(const Source& source) {
  const auto& all = Registry<Format>::instance().entries();
  std::vector<const std::pair<const std::string, Format>*> found;
  std::string known, names;
  for (const auto& entry : all) {
    known += fmt::format("{}{} ({})", known.empty() ? "" : "; ", entry.first, entry.second.description);
    if (!entry.second.recognises(source.text)) continue;
    found.push_back(&entry);
    names += (names.empty() ? "" : " and ") + entry.first;
  }
  if (found.size() > 1) throw UsageError(fmt::format("{}: it holds {}: split it", source.name, names));
  if (found.empty()) {
    const std::string met = met_instead(source);
    throw UsageError(fmt::format("{}: nothing that import knows{}; known: {}", source.name,
                                 met.empty() ? "" : ": " + met, known));
  }
  return *found.front();
}

Imported imported_results(const std::vector<Source>& sources, const Given& given) {
  std::vector<std::string> formats;
  std::vector<Read> all = read_all(sources, given, formats);
  require_agreement(all, given);
  for (auto& [source, contents] : all) make_printable(contents);
  Imported imported;
  Environment& environment = imported.environment;
  environment.world_ranks = most_ranks(all);
  environment.threads_per_rank = 0;  // unknown
  environment.rank_nodes = placement_of(all, given);
  environment.devices = devices_of(all, given, environment.world_ranks);
  std::set<std::string> seen;
  for (const std::string& node : environment.rank_nodes)
    if (seen.insert(node).second) environment.nodes.push_back(node);
  Repeats repeats;
  Facts descriptions = Facts::array();
  for (size_t i = 0; i < all.size(); ++i) {
    auto& [source, contents] = all[i];
    descriptions.push_back(source_facts(*source, contents, formats[i]));
    if (!contents.version.empty()) (*environment.versions)[formats[i]] = contents.version;
    add_source(*source, contents, given, repeats, imported);
  }
  const std::set<std::string> launches(repeats.launches().begin(), repeats.launches().end());
  imported.num_launches = std::ssize(launches);
  *environment.facts = {
      {"times", all.front().second.times},
      {kImportedFact,
       {{"sources", descriptions}, {"flags", flags_of(given)}, {"launches", repeats.launches()}}}};
  return imported;
}

}  // namespace shardmark::imports
