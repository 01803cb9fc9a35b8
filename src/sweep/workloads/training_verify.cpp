// Verification of a training point: its first steps against plain training on one device, and replicas
// against each other.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "device/device.h"
#include "sweep/workloads/reference.h"
#include "sweep/workloads/training.h"

namespace shardmark {
namespace {

// fp32 sums in another order differ by rounding, and batch norm amplifies it; low precision is compared with
// fp32. A wrong scale or a lost reduction differs by much more than this.
double tolerance(const std::string& precision) {
  return precision == "fp64" ? 1e-8 : precision == "fp32" ? 1e-3 : 3e-2;
}

double relative_difference(double value, double expected) {
  return std::abs(value - expected) / std::max(std::abs(expected), 1e-300);
}

// The share of choices of a mixture's experts that other experts got, at least: those that changed places are
// not seen.
double moved_share(const std::vector<double>& load, const std::vector<double>& expected) {
  double moved = 0, all = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    moved += std::abs(load[i] - expected[i]) / 2;
    all += expected[i];
  }
  return all > 0 ? moved / all : 0;
}

// Sums the bits of all replicated state: equal on all ranks if and only if (but for luck) the state is.
int64_t checksum(const std::vector<at::Tensor>& tensors) {
  int64_t sum = 0;
  for (const auto& tensor : tensors) sum += item<int64_t>(tensor.view(at::kInt).sum(at::kLong));
  return sum;
}

}  // namespace

Check Training::verify() {
  const bool replicas = setup_.state->program().strategy == "single" && point_.data_ranks() > 1;
  setup_.state->publish();
  const ReferenceRun reference = shared_reference(replicas ? 0 : -1);
  meter::reset_peak();  // the reference's memory is not the point's

  const bool draws =
      std::exchange(setup_.model->draws, false);  // ranks drop other elements than one device would
  std::vector<double> losses, norms;
  if (setup_.model->expert_load.defined()) setup_.model->expert_load.zero_();
  for (int64_t step = 0; step < kReferenceSteps; ++step) {
    const StepResult result = setup_.executor->step([this] { return loader_->next(); }, /*wants_norm=*/true);
    const double own = item<double>(result.loss);
    losses.push_back(replicas ? loss_of_own_copy(own) : group_.sum(own) / static_cast<double>(point_.ranks));
    norms.push_back(item<double>(result.gradient_norm));
  }
  setup_.model->draws = draws;
  setup_.executor->recorder().take();  // no window's
  if (group_.max(static_cast<int64_t>(failure() != nullptr)) != 0) return {};

  const std::vector<double> load = expert_load_of_ranks(replicas);

  const int64_t sum = checksum(setup_.state->replicated());
  // Nor are the checksum's copies; but graphs that are replayed allocate nothing, and have been captured
  // here.
  if (!point_.training.graph) meter::reset_peak();
  if (!is_equal_in_copies(sum)) return {true, "wrong: replicas differ between ranks", Measures::kNone};
  if (!reference.impossible.empty()) return {false, "unverified: " + reference.impossible, Measures::kNone};

  Check check{false, "equal to one device", 0};
  for (size_t step = 0; step < losses.size(); ++step) {
    for (const double difference : {relative_difference(losses[step], reference.losses[step]),
                                    relative_difference(norms[step], reference.norms[step])})
      check.error = std::isnan(difference) ? difference : std::max(check.error, difference);
  }
  const double own_error = group_.rank() == 0 ? check.error : 0;  // a replica's data are rank 0's alone
  check.error = group_.max(std::isnan(own_error) ? HUGE_VAL : own_error);
  if (setup_.state->program().lossy) return lossy_check(losses, reference.losses);
  const double moved = group_.max(group_.rank() == 0 ? moved_share(load, reference.expert_load) : 0);
  if (moved > tolerance(point_.training.precision))
    return {true,
            fmt::format("wrong: {:.2g} of the choices of experts differ from one device (allowed {:.0e})",
                        moved, tolerance(point_.training.precision)),
            moved};
  if (moved > 0) check.text += fmt::format(", but for {:.2g} of the choices of experts", moved);
  if (check.error > tolerance(point_.training.precision)) {
    check.wrong = true;
    check.text =
        fmt::format("wrong: loss or gradient norm differs from one device by {:.2g} (allowed {:.0e})",
                    check.error, tolerance(point_.training.precision));
  }
  return check;
}

// A lossy reduction is not equal, by choice: only the first loss, which no reduction has touched, must be.
// How far the last one is off is reported, whatever it is.
Check Training::lossy_check(const std::vector<double>& losses, const std::vector<double>& expected) const {
  if (relative_difference(losses.front(), expected.front()) > tolerance(point_.training.precision))
    return {true, "wrong: the first loss differs from one device", Measures::kNone};
  const double error = relative_difference(losses.back(), expected.back());
  if (!std::isfinite(error)) return {true, "wrong: the loss is not finite after one step", Measures::kNone};
  return {false,
          fmt::format("lossy: the loss differs from one device by {:.2g} after {} step{}", error,
                      losses.size() - 1, losses.size() == 2 ? "" : "s"),
          error};
}

// Among ranks that have the same part of the model.
bool Training::is_equal_in_copies(int64_t sum) const {
  const specs::Mesh mesh = specs::mesh_of(point_);
  const HostGroup copies =
      group_.split(static_cast<int>(mesh.copies().number_of(comm_.rank())), comm_.rank());
  const bool differs = copies.max(sum) != -copies.max(-sum);
  return group_.max(static_cast<int64_t>(differs)) == 0;
}

double Training::loss_of_own_copy(double own) const {
  const std::vector<double> all = group_.gather(std::vector<double>{own});
  double sum = 0;
  for (size_t rank = 0; rank < all.size(); ++rank)  // rank 0's copy is all that is looked at
    if (specs::mesh_of(point_).data_index_of(static_cast<int64_t>(rank)) == 0) sum += all[rank];
  return sum / static_cast<double>(point_.ranks_per_copy());
}

// Rank 0 trains the reference, unless an earlier point needed the same; the others wait for the result.
ReferenceRun Training::shared_reference(int64_t replica) {
  const std::string key = reference_key(point_, replica);
  heartbeat_.stage(kReferenceStage);
  if (group_.rank() == 0 && !references_.contains(key)) {
    references_[key] = run_reference(point_, *source_, comm_.device(), replica, heartbeat_);
    empty_caches(
        comm_.device());  // NCCL allocates beside torch's allocator, which would keep the reference's memory
  }
  heartbeat_.meet(kReferenceStage);
  group_.sleep_barrier();
  heartbeat_.stage("verification");
  nlohmann::json packed;
  if (group_.rank() == 0) {
    const ReferenceRun& run = references_[key];
    packed = {{"losses", run.losses},
              {"norms", run.norms},
              {"expert_load", run.expert_load},
              {"impossible", run.impossible}};
  }
  packed = nlohmann::json::parse(group_.broadcast(packed.dump(), 0));
  return {packed["losses"].get<std::vector<double>>(), packed["norms"].get<std::vector<double>>(),
          packed["expert_load"].get<std::vector<double>>(), packed["impossible"]};
}

}  // namespace shardmark
