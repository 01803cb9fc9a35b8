// Verifies a training point before it is timed: its first steps against training on one device (reference.h),
// and the replicated state of ranks against each other, bit by bit. The losses show wrong forward passes and
// data, the gradient norms show wrong reductions, and the second step shows wrong updates.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "device/device.h"
#include "sweep/workloads/reference.h"
#include "sweep/workloads/training.h"

namespace shardmark {
namespace {

// fp32 sums in another order differ by rounding, and batch norm amplifies the difference. Low precision is
// compared with fp32. A wrong scale or a missing reduction makes a much larger difference than these bounds.
double tolerance(const std::string& precision) {
  return precision == "fp64" ? 1e-8 : precision == "fp32" ? 1e-3 : 3e-2;
}

double relative_difference(double value, double expected) {
  return std::abs(value - expected) / std::max(std::abs(expected), 1e-300);
}

// A lower bound of the share of tokens that went to other experts than on one device. Only the load of each
// expert is compared, so tokens that changed places are not seen.
double moved_share(const std::vector<double>& load, const std::vector<double>& expected) {
  double moved = 0, all = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    moved += std::abs(load[i] - expected[i]) / 2;
    all += expected[i];
  }
  return all > 0 ? moved / all : 0;
}

// The first value that is not finite: 2 x step for a loss, 2 x step + 1 for a gradient norm, 2 x
// kReferenceSteps if all are finite.
int64_t first_not_finite(const std::vector<double>& losses, const std::vector<double>& norms) {
  for (size_t step = 0; step < losses.size(); ++step) {
    if (!std::isfinite(losses[step])) return 2 * static_cast<int64_t>(step);
    if (!std::isfinite(norms[step])) return 2 * static_cast<int64_t>(step) + 1;
  }
  return 2 * kReferenceSteps;
}

std::string not_finite_text(int64_t where) {
  return fmt::format("the {} is not finite at step {}", where % 2 == 0 ? "loss" : "gradient norm",
                     where / 2 + 1);
}

// The sum of all bits of the replicated state. It is equal on all ranks if the state is, and almost surely
// differs if the state differs.
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
  meter::reset_peak();  // the memory of the reference does not count

  // Dropout is off: ranks would drop other elements than one device does.
  const bool draws = std::exchange(setup_.model->draws, false);
  std::vector<double> losses, norms;
  if (setup_.model->expert_load.defined()) setup_.model->expert_load.zero_();
  for (int64_t step = 0; step < kReferenceSteps; ++step) {
    const StepResult result = setup_.executor->step([this] { return loader_->next(); }, /*wants_norm=*/true);
    const double own = item<double>(result.loss);
    losses.push_back(replicas ? loss_of_own_copy(own) : group_.sum(own) / static_cast<double>(point_.ranks));
    norms.push_back(item<double>(result.gradient_norm));
  }
  setup_.model->draws = draws;
  setup_.executor->recorder().take();  // these steps belong to no window
  if (group_.max(static_cast<int64_t>(failure() != nullptr)) != 0) return {};

  const std::vector<double> load = expert_load_of_ranks(replicas);

  // This comes before any comparison: a difference from NaN is NaN, and the bits of NaNs may differ between
  // ranks.
  if (const std::string trouble = divergence(losses, norms, reference); !trouble.empty())
    return {true, "wrong: " + trouble, Measures::kNone};

  const int64_t sum = checksum(setup_.state->replicated());
  // The temporary copies for the checksum do not count as the point's memory either. A graph was captured
  // during these steps, and its replays allocate nothing, so then the peak stays.
  if (!point_.training.graph) meter::reset_peak();
  if (!is_equal_in_copies(sum)) return {true, "wrong: replicas differ between ranks", Measures::kNone};
  if (!reference.impossible.empty())
    return {false, "unverified: " + reference.impossible, Measures::kNone, reference.is_too_large};

  Check check{false, "equal to one device", 0};
  for (size_t step = 0; step < losses.size(); ++step) {
    for (const double difference : {relative_difference(losses[step], reference.losses[step]),
                                    relative_difference(norms[step], reference.norms[step])})
      check.error = std::max(check.error, difference);
  }
  // With independent replicas only rank 0 trained on the data of the reference.
  check.error = group_.max(group_.rank() == 0 ? check.error : 0.0);
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

// Says where the first steps are not finite, here or on one device; empty if all are finite. The same on all
// ranks.
std::string Training::divergence(const std::vector<double>& losses, const std::vector<double>& norms,
                                 const ReferenceRun& reference) const {
  constexpr int64_t kNowhere = 2 * kReferenceSteps;
  const int64_t here = -group_.max(-first_not_finite(losses, norms));
  const int64_t there = first_not_finite(reference.losses, reference.norms);
  if (here == kNowhere && there == kNowhere) return {};
  if (here == kNowhere) return "on one device " + not_finite_text(there) + ", but it is here";
  const char* const advice = "training diverges, and a smaller learning rate may help";
  if (!reference.impossible.empty()) return fmt::format("{}: {}", not_finite_text(here), advice);
  if (there == here) return fmt::format("{}, as on one device: {}", not_finite_text(here), advice);
  return fmt::format("{}; on one device {}", not_finite_text(here),
                     there == kNowhere ? "it is finite" : not_finite_text(there));
}

// With a lossy reduction, results differ from the reference by design. Only the first loss, which no
// reduction has affected yet, must be equal. The difference of the last loss is reported, however large it
// is.
Check Training::lossy_check(const std::vector<double>& losses, const std::vector<double>& expected) const {
  if (relative_difference(losses.front(), expected.front()) > tolerance(point_.training.precision))
    return {true, "wrong: the first loss differs from one device", Measures::kNone};
  const double error = relative_difference(losses.back(), expected.back());
  return {false,
          fmt::format("lossy: the loss differs from one device by {:.2g} after {} step{}", error,
                      losses.size() - 1, losses.size() == 2 ? "" : "s"),
          error};
}

// Compares checksums among the ranks that hold the same part of the model.
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
  for (size_t rank = 0; rank < all.size(); ++rank)  // only the copy of rank 0 counts
    if (specs::mesh_of(point_).data_index_of(static_cast<int64_t>(rank)) == 0) sum += all[rank];
  return sum / static_cast<double>(point_.ranks_per_copy());
}

// Rank 0 trains the reference unless an earlier point needed the same one; the other ranks wait for the
// result.
ReferenceRun Training::shared_reference(int64_t replica) {
  const std::string key = reference_key(point_, replica);
  heartbeat_.stage(kReferenceStage);
  if (group_.rank() == 0 && !references_.contains(key)) {
    references_[key] = run_reference(point_, *source_, comm_.device(), replica, heartbeat_);
    // LibTorch's allocator would keep the memory of the reference, which NCCL could not use.
    empty_caches(comm_.device());
  }
  heartbeat_.meet(kReferenceStage);
  group_.sleep_barrier();
  heartbeat_.stage("verification");
  const ReferenceRun run = group_.rank() == 0 ? references_[key] : ReferenceRun();
  return {group_.broadcast(run.losses, 0), group_.broadcast(run.norms, 0),
          group_.broadcast(run.expert_load, 0), group_.broadcast(run.impossible, 0),
          group_.broadcast(static_cast<int64_t>(run.is_too_large), 0) != 0};
}

}  // namespace shardmark
