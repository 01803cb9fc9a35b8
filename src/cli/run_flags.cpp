// Defines the flags of `run`, and parses those that launch and submit pass on to it.
#include "cli/run_flags.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "cli/flag_effects.h"
#include "cli/old_spellings.h"
#include "cli/table_output.h"
#include "cli/values.h"
#include "plan/choice_axis.h"

namespace shardmark {
namespace {

std::string check_transport(const std::string& text) {
  if (text != "auto") choices_from_flag({text}, "--transport", transport_kind());
  return "";
}

}  // namespace

void add_world_flags(CLI::App& app, WorldFlags& flags) {
  add_value(app, "--device", flags.device, Word{{"auto", "cpu", "cuda"}},
            "auto: one GPU per rank if there are GPUs, else the CPU")
      ->capture_default_str();
  auto* transport =
      app.add_option("--transport", flags.transport,
                     "auto: nccl on GPUs, else pt2pt; or one that `shardmark list` names, with its options")
          ->check(&check_transport)
          ->capture_default_str();
  offer(transport, {.words = [] {
          std::vector<std::string> words = transport_kind().names;
          words.insert(words.begin(), "auto");
          return words;
        }});
  add_value(app, "--threads", flags.threads, values::kThreads,
            "computing threads of a rank (default: OMP_NUM_THREADS, else the node's cores / its ranks)");
  add_value(
      app, "--timeout", flags.timeout_s, values::kTimeout,
      "seconds without progress after which the job ends with status 5 and names the rank that is behind; "
      "0: never")
      ->capture_default_str();
  add_value(app, "--bind", flags.bind, Word{{"auto", "none"}},
            "auto: bind ranks that the launcher left unbound to cores of their own, near their GPU")
      ->capture_default_str();
}

void add_run_flags(CLI::App& app, RunFlags& flags) {
  app.add_flag("-q,--quiet", flags.quiet, "print no progress");
  add_value(app, "--memory", flags.memory_limit_bytes, values::kMemory,
            "memory limit of a rank, such as 8GiB (default: the suite's, else 0.8 of the node's memory / its "
            "ranks, or of "
            "the GPU)");
  app.add_flag(
      "--check-collectives", flags.check_collectives,
      "before each collective, check that all ranks call the same one, and name those that do not; for "
      "finding a hang, not for measuring");
  app.add_option(
      "--trace", flags.trace,
      "directory for a trace of three steps of each training point, instruction by instruction on all "
      "ranks, for Perfetto or chrome://tracing: a file for each point, named after its id");
  add_overwrite_flag(app, flags.overwrite);
  app.add_option("--openmetrics", flags.openmetrics,
                 "keep the points so far and the sweep's progress in FILE for Prometheus, written anew after "
                 "each point, such as for the node exporter's textfile collector (x.prom)");
  add_world_flags(app, flags.world);
  add_override_flags(app, flags.overrides);
}

// Rewrites the command line as it should have been typed. Each unknown word that is a flag of run moves
// behind `--`. The words that follow it move along, up to the next flag, as many as that flag of run takes.
std::string belonging_to_run(const std::vector<std::string>& words, const std::vector<std::string>& unknown) {
  RunFlags ignored;
  CLI::App app;
  add_run_flags(app, ignored);
  const auto flag_of = [](const std::string& word) { return word.substr(0, word.find('=')); };
  const auto is_of_run = [&](const std::string& word) {
    return word.starts_with('-') && std::find(unknown.begin(), unknown.end(), word) != unknown.end() &&
           app.get_option_no_throw(flag_of(word)) != nullptr;
  };
  std::vector<std::string> own, handed, names;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--") {
      handed.insert(handed.end(), words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end());
      break;
    }
    if (!is_of_run(words[i])) {
      own.push_back(words[i]);
      continue;
    }
    names.push_back(flag_of(words[i]));
    handed.push_back(words[i]);
    const bool has_value = words[i].find('=') != std::string::npos;
    int values = has_value ? 0 : app.get_option_no_throw(names.back())->get_items_expected_max();
    for (; values > 0 && i + 1 < words.size() && !words[i + 1].starts_with('-'); --values)
      handed.push_back(words[++i]);
  }
  if (names.empty()) return "";
  return fmt::format("{} {} to run: shardmark {} -- {}", fmt::join(names, ", "),
                     names.size() == 1 ? "belongs" : "belong", shell_line(own), shell_line(handed));
}

RunFlags parse_run_flags(const std::vector<std::string>& flags) {
  RunFlags read;
  for (const std::string& flag : flags) {
    if (flag == "--resume" || flag == "--rerun-failed")
      throw UsageError("after --: " + flag + " goes before -- (submit with -o always resumes)");
    constexpr const char* kOfLaunchAndSubmit[] = {"-n",
                                                  "-o",
                                                  "--output",
                                                  "--launcher",
                                                  "--launcher-flag",
                                                  "--container",
                                                  "--ranks-per-node",
                                                  "--print",
                                                  "--requeue",
                                                  "--report",
                                                  "--to",
                                                  "--nodes",
                                                  "--gpus-per-node",
                                                  "--time",
                                                  "--submit-flag",
                                                  "--env"};
    for (const char* const own : kOfLaunchAndSubmit)
      if (flag.substr(0, flag.find('=')) == own) throw UsageError("after --: " + flag + " goes before --");
  }
  CLI::App app;
  add_run_flags(app, read);
  refuse_empty_values(app);
  try {
    app.parse(std::vector<std::string>(flags.rbegin(), flags.rend()));  // CLI11 takes them in reverse order
    refuse_idle_flags("run", app);
  } catch (const CLI::ExtrasError&) {  // its own message would list them in reverse
    if (const std::string message = instead_of_flag("run", app.remaining(), flags); !message.empty())
      throw UsageError("after --: " + message);
    throw UsageError(fmt::format("after --: not flags of run: {} (see shardmark run --help)",
                                 shell_line(app.remaining())));
  } catch (const CLI::ParseError& error) {
    throw UsageError(std::string("after --: ") + error.what() + " (see shardmark run --help)");
  } catch (const UsageError& error) {
    throw UsageError(std::string("after --: ") + error.what());
  }
  return read;
}

}  // namespace shardmark
