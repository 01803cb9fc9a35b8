// shardmark import: turns results of other programs into a study, which report, compare and predict can read.
#include <fmt/format.h>

#include <memory>

#include "base/error.h"
#include "base/log.h"
#include "base/revision.h"
#include "base/text.h"
#include "base/units.h"
#include "base/utc.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/values.h"
#include "import/results.h"
#include "plan/axis_values.h"
#include "schema/file.h"
#include "schema/imported.h"
#include "schema/study.h"

namespace shardmark {
namespace {

constexpr int64_t kMostSourceBytes = 256 << 20;
constexpr size_t kLongestName = 200;  // bytes

struct ImportOptions {
  std::vector<std::string> files;
  std::string output;
  imports::Given given;
};

std::vector<imports::Source> read_sources(const std::vector<std::string>& files) {
  std::vector<imports::Source> sources;
  int64_t bytes = 0;
  for (const std::string& file : files) {
    auto text = read_input(file, kMostSourceBytes);
    if (!text) throw UsageError(file + ": no such file; name logs or tables of results");
    bytes += std::ssize(*text);
    if (bytes > kMostSourceBytes)
      throw UsageError(
          fmt::format("{}: up to here the files have {}, and together they may have {}; import them "
                      "in parts",
                      file, format_bytes(static_cast<double>(bytes)),
                      format_bytes(static_cast<double>(kMostSourceBytes))));
    sources.push_back({file, std::move(*text)});
  }
  return sources;
}

// Adds a flag for a name that the study stores and reports show.
CLI::Option* add_name(CLI::App& app, const std::string& flag, std::string& name,
                      const std::string& description) {
  const auto refuse = [](const std::string& text) -> std::string {
    if (text.size() > kLongestName)
      return fmt::format("a name of {} bytes; at most {} are kept", text.size(), kLongestName);
    if (printable(text, "") != text)
      return quoted_line(text) + " holds control characters, or bytes that are no UTF-8";
    const bool has_margin = !text.empty() && (text.front() == ' ' || text.back() == ' ');
    return has_margin ? quoted_line(text) + " begins or ends with a blank" : "";
  };
  return app.add_option(flag, name, description)
      ->transform(CLI::Validator([refuse](std::string& text) { return refuse(text); }, ""));
}

int import_files(const ImportOptions& options) {
  imports::Imported imported = imports::imported_results(read_sources(options.files), options.given);
  Environment& environment = imported.environment;
  environment.command_line = command_line();
  environment.revision = revision();
  environment.started = utc_now();
  write_study(options.output, environment, imported.records);
  for (const std::string& warning : imported.warnings) log_warning(warning);
  print(fmt::format("{}: {} point{} of {} launch{}, {}; look at it: shardmark report {}\n", options.output,
                    imported.records.size(), imported.records.size() == 1 ? "" : "s", imported.num_launches,
                    imported.num_launches == 1 ? "" : "es", imported_text(environment), options.output));
  return kDone;
}

std::function<int()> define_import(CLI::App& app) {
  auto options = std::make_shared<ImportOptions>();
  app.add_option(
         "files", options->files,
         "results that you have, recognised by their content: nccl-tests (also -J), OSU "
         "micro-benchmarks, Intel MPI "
         "Benchmarks, DeepEP and NCCL EP, MLPerf logs, tables as CSV, YAML or JSON; each file is a launch")
      ->required();
  app.add_option("-o,--output", options->output, "the study to write, such as results/theirs.h5")->required();
  imports::Given& given = options->given;
  constexpr const char* kMachine = "What the files do not say; what nobody says is absent";
  add_name(app, "--device", given.device, "name of the GPU, or of the processor, of each rank")
      ->group(kMachine);
  add_value(app, "--ranks", given.ranks, values::kRanks, "ranks that took part")->group(kMachine);
  add_value(app, "--nodes", given.nodes, values::kNodes, "nodes that they were on")->group(kMachine);
  add_value(app, "--ranks-per-node", given.ranks_per_node, values::kRanksPerNode,
            "the same where files have several numbers of ranks")
      ->group(kMachine);
  add_name(app, "--transport", given.transport, "what moved bytes between ranks, such as nccl, rccl or mpi")
      ->group(kMachine);
  add_name(app, "--link", given.link,
           "over what, such as nvlink4 or ndr400; points over other links are kept apart")
      ->group(kMachine);
  add_value(app, "--operation", given.operation, Word{words_of("operation")},
            "collective of nccl-tests before June 2025")
      ->group(kMachine);
  return [options] { return import_files(*options); };
}

const Registration<CommandEntry> import_command{
    "import", {"a study of results of nccl-tests, OSU, IMB, MLPerf, tables", define_import}};

}  // namespace
}  // namespace shardmark
