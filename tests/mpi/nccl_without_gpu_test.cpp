// Tests what the nccl transport decides before it calls NCCL: messages in place of functions that an older
// NCCL lacks, the order of launches, and the registration of memory.
// RANKS 1 2 3
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/nccl/launch_order.h"
#include "comm/nccl/messages.h"
#include "comm/nccl/registrations.h"
#include "comm/verification.h"
#include "tests/gpu/collective_checks.h"

namespace shardmark {
namespace {

using strategies::Serving;

// Exchanges messages like a group of ncclSend and ncclRecv.
void exchange(const std::vector<Message>& messages, const HostGroup& group) {
  std::vector<MPI_Request> requests;
  for (const auto& [peer, out, in] : messages) {
    if (out.defined())
      MPI_CHECK(MPI_Irecv(out.data_ptr(), static_cast<int>(out.nbytes()), MPI_BYTE, peer, 0, group.mpi(),
                          &requests.emplace_back()));
    if (in.defined())
      MPI_CHECK(MPI_Isend(in.data_ptr(), static_cast<int>(in.nbytes()), MPI_BYTE, peer, 0, group.mpi(),
                          &requests.emplace_back()));
  }
  MPI_CHECK(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE));
}

TEST(Messages, MakeTheOperationsThatAnOlderNcclLacks) {
  const HostGroup world = HostGroup::world();
  const auto comm = make_communicator("pt2pt", world, at::kCPU);
  int64_t round = 0;
  checks::each_case([&](Collective what, const std::string& dtype, const std::string& op, bool in_place) {
    if (what != Collective::all_to_all && what != Collective::gather && what != Collective::scatter &&
        what != Collective::send_recv && what != Collective::all_to_all_v)
      return;
    for (const int64_t numel : {1, 7, 1000}) {
      const Call call = prepare(*comm, what, numel, element_type(dtype), reduce_op(op), in_place);
      fill(*comm, call, ++round);
      exchange(messages_of(call, comm->rank(), comm->size()), world);
      EXPECT_EQ(num_wrong(*comm, call, round), 0) << checks::describe(what, dtype, op, in_place, numel);
    }
  });
  EXPECT_GT(round, 0);
}

TEST(Messages, OfPartsOfAnyLength) {
  const HostGroup world = HostGroup::world();
  const auto comm = make_communicator("pt2pt", world, at::kCPU);
  std::vector<std::vector<int64_t>> rows(static_cast<size_t>(world.size()));
  for (int64_t i = 0; i < int64_t{world.size()} * world.size(); ++i)
    rows[static_cast<size_t>(i / world.size())].push_back(i * 37 % 11 * 100);
  const auto parts = std::make_shared<specs::Parts>(rows);
  const Call call = prepare(*comm, Collective::all_to_all_v, 0, at::kFloat, ReduceOp::sum, false, parts);
  fill(*comm, call, 1);
  exchange(messages_of(call, comm->rank(), comm->size()), world);
  EXPECT_EQ(num_wrong(*comm, call, 1), 0);
}

// Parts are contiguous. On both sides, each part begins where the parts of lower ranks end.
TEST(Messages, PartsBeginWhereTheSumOfThoseBeforeThemEnds) {
  constexpr int kRanks = 9;
  specs::Parts::Rows rows(kRanks);
  for (int64_t i = 0; i < kRanks * kRanks; ++i)
    rows[static_cast<size_t>(i / kRanks)].push_back(i * 37 % 11);  // some parts are empty
  const auto parts = std::make_shared<specs::Parts>(rows);
  for (int rank = 0; rank < kRanks; ++rank) {
    Call call{Collective::all_to_all_v, at::zeros({parts->received_by(rank)}),
              at::zeros({parts->sent_by(rank)})};
    call.parts = parts;
    const std::vector<Message> messages = messages_of(call, rank, kRanks);
    ASSERT_EQ(messages.size(), static_cast<size_t>(kRanks));
    int64_t received = 0, sent = 0;
    for (int peer = 0; peer < kRanks; ++peer) {
      const auto& [to, out, in] = messages[static_cast<size_t>(peer)];
      EXPECT_EQ(to, peer);
      EXPECT_EQ(out.storage_offset(), received);
      EXPECT_EQ(in.storage_offset(), sent);
      EXPECT_EQ(out.numel(), parts->between(peer, rank));
      EXPECT_EQ(in.numel(), parts->between(rank, peer));
      received += out.numel();
      sent += in.numel();
    }
    EXPECT_EQ(received, parts->received_by(rank));
    EXPECT_EQ(sent, parts->sent_by(rank));
  }
}

TEST(Launches, AreOrderedByNcclWhereItCan) {
  EXPECT_EQ(nccl_serving(22809, 13000, nullptr), Serving::launch_order);
  EXPECT_EQ(nccl_serving(22600, 12030, "1"), Serving::launch_order);
  EXPECT_EQ(nccl_serving(22507, 13000, nullptr), Serving::serial);
  EXPECT_EQ(nccl_serving(22507, 13000, "1"), Serving::serial) << "it would be ignored";
  EXPECT_EQ(nccl_serving(22809, 13000, "0"), Serving::serial) << "its user wants none of NCCL's";
  EXPECT_EQ(nccl_serving(22809, 12020, "1"), Serving::serial)
      << "with a driver of CUDA 12.2 NCCL itself is serial";
}

TEST(Launches, SetTheVariableForNccl) {
  ASSERT_EQ(nccl_serving(), Serving::launch_order) << "the NCCL of .venv is newer";
  EXPECT_STREQ(getenv("NCCL_LAUNCH_ORDER_IMPLICIT"), "1");
}

struct FakeRegistrar final : Registrar {
  std::string enroll(void* data, size_t bytes, void** handle) override {
    enrolled.emplace_back(data, bytes);
    *handle = data;
    return failure;
  }
  void dismiss(void* handle) noexcept override { dismissed.push_back(handle); }

  std::string failure;
  std::vector<std::pair<void*, size_t>> enrolled;
  std::vector<void*> dismissed;
};

class RegistrationsTest : public ::testing::Test {
 protected:
  std::vector<std::string> said_;
  Registrations registrations_{[this](const std::string& text) { said_.push_back(text); }};
  std::shared_ptr<FakeRegistrar> all_ = std::make_shared<FakeRegistrar>(),
                                 process_group_ = std::make_shared<FakeRegistrar>();
  std::array<char, 4096> memory_{}, other_{};
};

TEST_F(RegistrationsTest, TellEveryCommunicatorThatUsesTheMemoryOnce) {
  registrations_.add(memory_.data(), 4096);
  registrations_.add(other_.data(), 4096);
  registrations_.use(&memory_[0], all_);
  registrations_.use(&memory_[100], all_);
  registrations_.use(&memory_[4095], process_group_);
  const std::pair<void*, size_t> whole(memory_.data(), 4096);
  EXPECT_THAT(all_->enrolled, testing::ElementsAre(whole));
  EXPECT_THAT(process_group_->enrolled, testing::ElementsAre(whole));
  registrations_.remove(memory_.data());
  EXPECT_THAT(all_->dismissed, testing::ElementsAre(memory_.data()));
  EXPECT_THAT(process_group_->dismissed, testing::ElementsAre(memory_.data()));
  registrations_.use(&memory_[0], all_);
  EXPECT_EQ(all_->enrolled.size(), 1U) << "memory of somebody else now";
  EXPECT_EQ(registrations_.take_failure(), "");
}

TEST_F(RegistrationsTest, OutliveTheirCommunicators) {
  registrations_.add(memory_.data(), 4096);
  registrations_.use(&memory_[0], all_);
  registrations_.use(&memory_[0], process_group_);
  process_group_.reset();
  const auto next = std::make_shared<FakeRegistrar>();
  registrations_.use(&memory_[0], next);
  EXPECT_EQ(next->enrolled.size(), 1U);
  registrations_.remove(memory_.data());
  EXPECT_EQ(all_->dismissed.size(), 1U);
  EXPECT_EQ(next->dismissed.size(), 1U);
}

TEST_F(RegistrationsTest, SayOnceWhatFailed) {
  all_->failure = "unhandled system error";
  for (auto* memory : {&memory_, &other_}) {
    registrations_.add(memory->data(), 4096);
    registrations_.use(memory->data(), all_);
    registrations_.use(memory->data(), all_);
    EXPECT_THAT(registrations_.take_failure(), testing::HasSubstr("4.00 KiB could not be registered"))
        << "of each point";
    EXPECT_EQ(registrations_.take_failure(), "");
    registrations_.remove(memory->data());
  }
  EXPECT_EQ(all_->enrolled.size(), 2U) << "not tried again at every operation";
  EXPECT_TRUE(all_->dismissed.empty());
  EXPECT_THAT(said_, testing::ElementsAre(testing::HasSubstr("unhandled system error")));
}

}  // namespace
}  // namespace shardmark
