// A checkpoint as one file for each rank: each writes what it owns, as PyTorch's distributed checkpoints do.
// Ranks that hold the same values share them out, so that nothing is written twice. Only the same layout can
// read it. Nothing here is collective.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/state_file.h"

namespace shardmark {

// What this rank owns (TrainingState::own), and the loss scale of fp16.
std::vector<TrainingState::Own> own_state(const TrainingSetup& setup);

std::string shard_path(const std::string& folder, int rank);

// Calls visit(name, value on the CPU) for what this rank writes. If `copies`, the values are copies that live
// on, also of memory that is on the CPU already.
void visit_own_state(const TrainingSetup& setup, bool copies, const StateVisitor& visit);
std::unique_ptr<StateFile> own_state_file(const std::string& folder, const TrainingSetup& setup);

// Reads what this rank owns from its own file, whose checksum is compared, and from those of the ranks that
// hold the same values. To be followed by parameters_changed() and publish(). Throws UsageError that names
// the file that is missing or damaged. `on_piece` is called every few MiB.
void load_own_state(
    const std::string& folder, const TrainingSetup& setup, const std::function<void()>& on_piece = [] {});
// The ranks whose files it reads.
std::set<int> ranks_read(const TrainingSetup& setup);

}  // namespace shardmark
