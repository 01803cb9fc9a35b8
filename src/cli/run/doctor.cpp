// shardmark doctor: reports what this machine has, what would go wrong, and how to fix it; on one process or
// on all ranks of a job.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <ostream>

#include "base/error.h"
#include "cli/command.h"
#include "cli/junit_output.h"
#include "cli/run/doctor_output.h"
#include "cli/run/preflight.h"
#include "cli/table_output.h"
#include "cli/whole_program.h"
#include "launch/process.h"
#include "schema/file.h"

namespace shardmark {
namespace {

struct DoctorFlags {
  std::string output;  // empty: results/ if it exists, else here
  bool json = false;
  bool strict = false;
  bool pairs = false;
  std::string topology;
  LinkTests links;
  std::string html;
  std::string junit;
  bool overwrite = false;
  WorldFlags world;
};

std::string slurm_text() {
  const char* job = std::getenv("SLURM_JOB_ID");
  const std::string plugins = output_of({"sh", "-c", "command -v srun && srun --mpi=list 2>&1; true"});
  if (plugins.empty()) return "no srun here";
  if (plugins.find("error") != plugins.npos) return "srun is here, but not configured";
  return fmt::format(
      "srun {}; {}",
      plugins.find("pmix") != plugins.npos ? "has PMIx" : "lacks PMIx: start ranks with mpirun",
      job != nullptr ? fmt::format("inside job {}", job) : "outside of a job");
}

bool needs_fixing(const std::vector<doctor::Finding>& findings) {
  return std::any_of(findings.begin(), findings.end(), [](const doctor::Finding& finding) {
    return finding.severity != doctor::Severity::note;
  });
}

constexpr const char* kNameAPage = "name a writable file: --html FILE";
// The timeout in seconds unless --timeout is given. A link that is down must not hold the job for as long as
// a training step may take.
constexpr double kPatienceOfPairsS = 60;

// Where studies will be written: a folder, or the path of a study.
std::string place_of(const std::string& output) {
  const auto is_folder = [](const std::filesystem::path& path) {
    std::error_code ignored;  // a loop of links is not a folder
    return std::filesystem::is_directory(path, ignored);
  };
  if (output.empty()) return is_folder("results") ? "results/x.h5" : "x.h5";
  if (is_folder(output)) return output + "/x.h5";
  const auto folder = std::filesystem::path(output).parent_path();
  if (!folder.empty() && !is_folder(folder))
    throw UsageError("--output " + output + ": there is no folder " + folder.string() +
                     "; make it, or name another");
  return output;
}

// Reports a file that cannot be read or written now, and not after half a minute of measuring.
void check(DoctorFlags& flags, const HostGroup& world) {
  if (flags.pairs && world.size() < 2)
    throw UsageError("doctor --pairs needs two ranks or more: mpirun -n 8 shardmark doctor --pairs");
  if (world.rank() != 0) return;
  if (!flags.topology.empty()) flags.links.switches = doctor::read_switches(flags.topology);
  check_junit(flags.junit, flags.overwrite, {});
  if (flags.html.empty()) return;
  require_free(flags.html, flags.overwrite, {});
  require_writable(flags.html, kNameAPage);
}

void show(const DoctorFlags& flags, const Preflight& found, const std::optional<LinkReport>& links) {
  if (flags.json) {
    nlohmann::ordered_json document;
    document["ranks"] = nlohmann::json(found.ranks);
    document["findings"] = findings_json(found.findings);
    if (links) add_to(document, *links);
    print_data(document.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    return;
  }
  print(to_text(machine_table(found.ranks, {{"Slurm", slurm_text()}})) + "\n");
  if (found.ranks.size() > 1) print(to_text(placement_table(found.ranks)) + "\n");
  if (links) print(to_text(*links));
  print(findings_text(found.findings, links ? links->num_bad() : 0));
}

int run_doctor(DoctorFlags flags, bool has_timeout) {
  const bool is_short = flags.pairs && !has_timeout && flags.world.timeout_s > 0;
  const Ranks ranks(flags.world, is_short ? kPatienceOfPairsS : flags.world.timeout_s);
  const HostGroup& world = *ranks.world;
  together(world, [&] {
    check(flags, world);
    if (world.rank() == 0) flags.output = place_of(flags.output);
  });
  const Preflight found = gather_facts(flags.world, ranks, world.broadcast(flags.output, 0));
  std::optional<LinkReport> links;
  const bool stopped = !found.findings.empty() && found.findings.front().severity == doctor::Severity::error;
  if (flags.pairs && world.broadcast(static_cast<int64_t>(stopped), 0) == 0) {
    together(world, [&] {
      if (world.rank() == 0) check_links(flags.links, found.ranks);
    });
    links = measure_links(flags.world, ranks, found, flags.links);
  }
  together(world, [&] {
    if (world.rank() != 0) return;
    show(flags, found, links);
    write_junit(flags.junit, doctor_tests(found.ranks, found.findings, links));
    if (!flags.html.empty())
      write_whole(flags.html, kNameAPage,
                  [&](std::ostream& out) { out << to_html(links.value_or(LinkReport())); });
  });
  const bool is_bad = links && links->num_bad() > 0;
  // Findings are the result of the command, so the status is 0: mpirun would report any other status as a
  // failed job.
  const int64_t status = flags.strict && (needs_fixing(found.findings) || is_bad) ? kWrong : kDone;
  return static_cast<int>(world.broadcast(status, 0));
}

std::function<int()> define_doctor(CLI::App& app) {
  auto flags = std::make_shared<DoctorFlags>();
  app.add_option("-o,--output", flags->output,
                 "where studies will be written: a folder or a study (default: results, or here)");
  app.add_flag("--json", flags->json, "all facts of all ranks, and the findings, as one JSON document");
  app.add_flag("--strict", flags->strict,
               "exit with status 1 where something stops or slows a run; without it findings are 0, too");
  auto* pairs = app.add_flag(
      "--pairs", flags->pairs,
      "measure every pair of ranks within nodes and every pair of nodes, in half a minute; then both "
      "halves of the machine against each other");
  app.add_option(
         "--topology", flags->topology,
         "file that says which nodes hang on which switch, in the form of Slurm's topology.conf: --pairs "
         "measures what leaves each switch, and names switches")
      ->needs(pairs);
  app.add_flag(
         "--halve", flags->links.halve,
         "after --pairs: halve the machine, and halves that are slow, down to the nodes that make them slow")
      ->needs(pairs);
  app.add_option("--html", flags->html, "write the maps of --pairs as a page")->needs(pairs);
  add_junit_flag(app, flags->junit);
  add_overwrite_flag(app, flags->overwrite);
  add_world_flags(app, flags->world);
  const CLI::Option* timeout = app.get_option("--timeout");
  return [flags, timeout] { return run_doctor(*flags, timeout->count() > 0); };
}

const Registration<CommandEntry> doctor_command{"doctor",
                                                {whole_command("doctor")->description, define_doctor}};

}  // namespace
}  // namespace shardmark
