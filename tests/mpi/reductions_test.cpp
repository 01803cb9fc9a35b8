// RANKS 1 2 3 4
// Tests how ddp reduces its buckets: sent and kept parts add up, replicas stay bitwise equal, and a reduction
// that leaves nothing out equals the plain one.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "tests/mpi/reduction_checks.h"

namespace shardmark {
namespace {

class Reductions : public ::testing::Test {
 protected:
  Reductions() { at::set_num_threads(1); }

  HostGroup world = HostGroup::world();
  std::unique_ptr<Communicator> comm = make_communicator("pt2pt", world, at::kCPU);
};

TEST_F(Reductions, TopKLosesNothing) { checks::reduction_top_k_loses_nothing(*comm); }
TEST_F(Reductions, TopKSendsTheRestLater) { checks::reduction_top_k_sends_the_rest_later(*comm); }
TEST_F(Reductions, TopKSendsTheLargest) { checks::reduction_top_k_sends_the_largest(*comm); }
TEST_F(Reductions, PowerSgdLosesNothing) { checks::reduction_power_sgd_loses_nothing(*comm); }
TEST_F(Reductions, Int8RoundsToItsScale) { checks::reduction_int8_rounds_to_its_scale(*comm); }
TEST_F(Reductions, KeepReplicasBitEqual) { checks::reduction_keep_replicas_bit_equal(*comm); }
TEST_F(Reductions, LossFalls) { checks::reduction_loss_falls(*comm); }
TEST_F(Reductions, WithoutLossEqualPlain) { checks::reduction_without_loss_equal_plain(*comm); }
TEST_F(Reductions, CastRoundsTwice) { checks::reduction_cast_rounds_twice(*comm); }
TEST_F(Reductions, SaveTheBytesThatTheyPromise) { checks::reduction_save_the_bytes_that_they_promise(*comm); }

}  // namespace
}  // namespace shardmark
