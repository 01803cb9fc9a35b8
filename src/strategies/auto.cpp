// auto: becomes ddp or a form of fsdp, which is decided where it runs: the candidates are listed, what they
// need is computed, and one of them is chosen. Until then, auto is treated as the candidate that needs the
// least memory, so that a plan rules it out only if all candidates are ruled out.
#include "strategies/auto.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/units.h"
#include "strategies/brief_text.h"

namespace shardmark::strategies {
namespace {

constexpr double kTieTolerance = 1.05;  // times this close count as equal, and the simpler candidate wins

// From whole replicas to fully sharded, with sharding inside a node if there are several nodes.
std::vector<std::string> candidate_texts(const DecisionInputs& around) {
  std::vector<std::string> texts = {"ddp", "fsdp(shard=optimizer)", "fsdp(shard=gradients)"};
  if (around.ranks_per_node > 0) texts.push_back(fmt::format("fsdp(group={})", around.ranks_per_node));
  texts.insert(texts.end(), {"fsdp", "fsdp(offload=optimizer)"});
  return texts;
}

// Operations among neighbours that fill a node together, or a part of it, stay inside; all others use the
// links between nodes.
double communication_s(const Program& program, const DecisionInputs& around) {
  double seconds = 0;
  for (const CollectiveCall& call : program.calls) {
    const ProcessGroup& among = call.process_group;
    const bool in_node =
        around.ranks_per_node > 0 && around.ranks_per_node % (among.ranks * among.stride) == 0;
    const ProbedLink& link = in_node ? around.node : around.all;
    if (among.ranks == 1 || link.bytes_per_s == 0) continue;
    seconds += link.latency_s +
               call.bytes * specs::ring_factor(call.what, call.process_group.ranks) / link.bytes_per_s;
  }
  return seconds;
}

// Nothing if the options do not work.
std::optional<Candidate> candidate(const std::string& text, StepInput input, const DecisionInputs& around) {
  const Choice written = choice_from_text(text);
  const Strategy& entry = strategy(written.name);
  const Choice choice = resolve(written, entry.options, "strategy");
  input.options = choice.options;
  if (!entry.impossible(input).empty()) return std::nullopt;
  const Program program = entry.step(input);
  const Cost cost = cost_of(program, input);
  const double needed = cost.state_bytes() + around.activation_bytes;
  return Candidate{choice, cost, needed, communication_s(program, around),
                   around.memory_bytes == 0 || needed <= around.memory_bytes};
}

std::string name_of(const Candidate& candidate) { return brief_text("strategy", candidate.strategy); }

std::string memory_text(const Decision& decision, size_t num_fitting, const DecisionInputs& around) {
  const std::string memory = format_bytes(around.memory_bytes);
  if (num_fitting == 0)
    return fmt::format("nothing fits into the {} of a rank; it needs the least, {}", memory,
                       format_bytes(decision.choice().needed_bytes));
  const auto& all = decision.candidates;
  if (num_fitting == all.size()) return fmt::format("all {} candidates fit into {}", all.size(), memory);
  const auto first_not = std::find_if(all.begin(), all.end(), [](const auto& c) { return !c.fits; });
  return fmt::format("{} of {} candidates fit into {} ({} needs {})", num_fitting, all.size(), memory,
                     name_of(*first_not), format_bytes(first_not->needed_bytes));
}

std::string reason_of(const Decision& decision, const DecisionInputs& around) {
  const auto num_fitting = static_cast<size_t>(std::count_if(
      decision.candidates.begin(), decision.candidates.end(), [](const auto& c) { return c.fits; }));
  std::string text = fmt::format("auto chose {}: {}", name_of(decision.choice()),
                                 memory_text(decision, num_fitting, around));
  if (num_fitting > 1 && decision.choice().communication_s > 0)
    text += fmt::format("; of these none communicates less, {} a step at {} GB/s and {} an operation",
                        format_seconds(decision.choice().communication_s),
                        format_number(around.all.bytes_per_s / 1e9, 3), format_seconds(around.all.latency_s));
  return text;
}

}  // namespace

Decision decide(const StepInput& input, const DecisionInputs& around) {
  Decision decision;
  for (const auto& text : candidate_texts(around))
    if (std::optional<Candidate> possible = candidate(text, input, around))
      decision.candidates.push_back(std::move(*possible));
  const auto& all = decision.candidates;
  const bool any_fits = std::any_of(all.begin(), all.end(), [](const auto& c) { return c.fits; });
  for (size_t i = 1; i < all.size(); ++i) {
    const Candidate &best = decision.choice(), &next = all[i];
    // Candidates come in order of simplicity. A later one replaces the best so far only if it fits and that
    // one does not, or if it is faster by more than the tolerance. If none fits, the least memory wins.
    const bool better = !any_fits ? next.needed_bytes < best.needed_bytes
                        : best.fits != next.fits
                            ? next.fits
                            : next.communication_s * kTieTolerance < best.communication_s;
    if (better) decision.chosen = i;
  }
  decision.reason = reason_of(decision, around);
  return decision;
}

namespace automatic {
namespace {

std::pair<const Strategy&, StepInput> chosen(const StepInput& input) {
  // Nothing fits into one byte, so that decide() takes the candidate that needs the least memory.
  const Choice choice = decide(input, {.memory_bytes = 1}).choice().strategy;
  StepInput as_chosen = input;
  as_chosen.options = choice.options;
  return {strategy(choice.name), as_chosen};
}

Program write(const StepInput& input, const Schedule& schedule) {
  const auto [strategy, as_chosen] = chosen(input);
  return strategy.write(as_chosen, schedule);
}

Cost paper(const StepInput& input) {
  const auto [strategy, as_chosen] = chosen(input);
  return strategy.paper(as_chosen);
}

const Registration<Strategy> registered{
    "auto", {"ddp or a form of fsdp, by memory and measured bandwidth", {}, write, paper}};

}  // namespace
}  // namespace automatic
}  // namespace shardmark::strategies
