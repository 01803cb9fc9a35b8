// Cuts what a rank owns into the pieces that its holders write, and puts them together again.
#include "checkpoint/shard_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "specs/layout.h"

namespace shardmark {
namespace {

constexpr const char* kOfGuard = "optimizer.";

// The piece of `values` that holder number `index` of `count` writes. Pieces differ by one element at most,
// and follow each other without gaps, because the end of one and the begin of the next are the same
// expression.
at::Tensor piece_of(const at::Tensor& values, int64_t index, int64_t count) {
  if (count == 1) return values;
  const int64_t begin = values.numel() * index / count, end = values.numel() * (index + 1) / count;
  return values.narrow(0, begin, end - begin);
}

}  // namespace

std::vector<TrainingState::Own> own_state(const TrainingSetup& setup) {
  std::vector<TrainingState::Own> all = setup.state->own();
  for (const auto& [name, value] : setup.guard->state())
    all.push_back({kOfGuard + name, value, {setup.comm.rank()}});
  return all;
}

std::string shard_path(const std::string& folder, int rank) {
  return fmt::format("{}/rank-{:05}.safetensors", folder, rank);
}

void visit_own_state(const TrainingSetup& setup, bool copies, const StateVisitor& visit) {
  for (const auto& [name, values, holders, of_model] : own_state(setup)) {
    const auto index = std::find(holders.begin(), holders.end(), setup.comm.rank()) - holders.begin();
    const at::Tensor piece = piece_of(values, index, std::ssize(holders));
    // The format's types are floating-point; an integer counter is written as fp32.
    const at::ScalarType type = at::isFloatingType(piece.scalar_type()) ? piece.scalar_type() : at::kFloat;
    visit(name, piece.to(at::kCPU, type, /*non_blocking=*/false, copies));
  }
}

std::unique_ptr<StateFile> own_state_file(const std::string& folder, const TrainingSetup& setup) {
  int64_t room = 0;
  for (const auto& own : own_state(setup)) room += SafetensorsWriter::header_bytes(own.name);
  return std::make_unique<StateFile>(shard_path(folder, setup.comm.rank()), room, TextMap{{"format", "pt"}});
}

std::set<int> ranks_read(const TrainingSetup& setup) {
  std::set<int> ranks;
  for (const auto& own : own_state(setup)) ranks.insert(own.holders.begin(), own.holders.end());
  return ranks;
}

// One file is open at a time, because a state may lie in those of thousands of ranks.
void load_own_state(const std::string& folder, const TrainingSetup& setup,
                    const std::function<void()>& on_piece) {
  const std::vector<TrainingState::Own> all = own_state(setup);
  for (const int rank : ranks_read(setup)) {
    const SafetensorsFile file(shard_path(folder, rank));
    if (rank == setup.comm.rank()) file.verify(on_piece);
    for (const auto& [name, values, holders, of_model] : all) {
      const auto holder = std::find(holders.begin(), holders.end(), rank);
      if (holder == holders.end()) continue;
      piece_of(values, holder - holders.begin(), std::ssize(holders)).copy_(file.read(name));
      on_piece();
    }
  }
}

}  // namespace shardmark
