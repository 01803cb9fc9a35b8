// RANKS 1 2 3
// A tap changes nothing while it passes operations on, keeps them from happening when muted, and runs again
// what it recorded.
#include "../gpu/collective_checks.h"
#include "comm/tap.h"

namespace shardmark {
namespace {

class TapTest : public ::testing::Test {
 protected:
  HostGroup world_ = HostGroup::world();
  std::unique_ptr<Communicator> inner_ = make_communicator("mpi", world_, at::kCPU);
  Tap tap_{*inner_};

  at::Tensor ones(int64_t numel) {
    at::Tensor tensor = tap_.allocate(numel, at::kFloat);
    tensor.fill_(1);
    return tensor;
  }
  bool all_are(const at::Tensor& tensor, double value) { return tensor.eq(value).all().item<bool>(); }
};

TEST_F(TapTest, PassesEverythingOn) {
  checks::exact(tap_, {0, 1, 1000});
  checks::out_of_order(tap_);
  checks::grouped(tap_);
  checks::split_in_halves(tap_);
  checks::traffic(tap_);
}

TEST_F(TapTest, MutedOperationsLeaveTheirOutput) {
  const at::Tensor tensor = ones(100003);
  tap_.set_mode(Tap::Mode::mute);
  tap_.all_reduce(tensor, ReduceOp::sum).wait();
  const auto part = tap_.split(0, tap_.rank());
  part->all_reduce(tensor, ReduceOp::sum).wait();
  EXPECT_TRUE(all_are(tensor, 1));
  tap_.set_mode(Tap::Mode::pass);
  part->all_reduce(tensor, ReduceOp::sum).wait();
  EXPECT_TRUE(all_are(tensor, tap_.size()));
}

TEST_F(TapTest, PlaysAgainWhatItRecorded) {
  const at::Tensor sums = ones(100003);
  const at::Tensor news = ones(7);
  tap_.set_mode(Tap::Mode::record);
  Work first = tap_.all_reduce(sums, ReduceOp::sum);
  tap_.group_begin();
  Work second = tap_.broadcast(news, tap_.size() - 1);
  tap_.group_end();
  second.wait();
  first.wait();
  tap_.set_mode(Tap::Mode::pass);
  const Recording recording = tap_.take_recording();
  ASSERT_FALSE(recording.empty());
  EXPECT_TRUE(tap_.take_recording().empty());

  news.fill_(tap_.rank());
  for (int i = 0; i < 3; ++i) recording.play();
  EXPECT_TRUE(all_are(sums, std::pow(tap_.size(), 4)));
  EXPECT_TRUE(all_are(news, tap_.size() - 1));
}

// A group's storage is aimed at another slot after the step; its operations still work on the old one.
TEST_F(TapTest, PlaysOnTheMemoryOfTheRecording) {
  const at::Tensor slot = ones(64);
  const at::Tensor other = ones(64);
  at::Tensor aimed = at::from_blob(slot.data_ptr(), {64}, at::kFloat);
  tap_.set_mode(Tap::Mode::record);
  tap_.all_reduce(aimed, ReduceOp::sum).wait();
  tap_.set_mode(Tap::Mode::pass);
  aimed.storage().unsafeGetStorageImpl()->set_data_ptr_noswap({other.data_ptr(), at::kCPU});
  tap_.take_recording().play();
  EXPECT_TRUE(all_are(slot, tap_.size() * tap_.size()));
  EXPECT_TRUE(all_are(other, 1));
}

}  // namespace
}  // namespace shardmark
