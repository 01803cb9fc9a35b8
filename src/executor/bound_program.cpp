// Executes the communication and the local work of a program on tensors.
#include "executor/bound_program.h"

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"
#include "comm/transports.h"
#include "strategies/messages.h"

namespace shardmark {

using strategies::Instruction;
using What = Instruction::What;

namespace {

// Splitting off a communicator is collective. If ranks split off different ones, all of them would hang.
void check_equal_on_all_ranks(Communicator& all,
                              const std::vector<strategies::ProcessGroupUse>& process_groups) {
  uint64_t hash = 0;
  for (const auto& [process_group, lane] : process_groups)
    hash = hash_of(hash, process_group.ranks, process_group.stride, lane);
  const auto key = static_cast<int64_t>(hash >> 1);
  const at::Tensor largest = at::tensor({key, -key}, at::TensorOptions(at::kLong)).to(all.device());
  all.all_reduce(largest, ReduceOp::max).wait();
  const at::Tensor found = largest.cpu();
  ENSURE(found[0].item<int64_t>() == -found[1].item<int64_t>(),
         "rank " + std::to_string(all.rank()) + " and others split off different communicators");
}

// Messages between neighbouring stages overlap with computation and may use a slower communicator. The two
// ends of a tied group exchange its whole gradient while nothing computes, so that their exchange should be
// as fast as possible.
SplitUse carried_on(int64_t lane) {
  const bool is_message = lane >= strategies::kFirstMessageLane && lane != strategies::lane_of_ends();
  return is_message ? SplitUse::messages : SplitUse::anything;
}

}  // namespace

ProcessGroups::ProcessGroups(Communicator& all,
                             const std::vector<strategies::ProcessGroupUse>& process_groups)
    : all_(all), alone_(make_alone(all)) {
  alone_->count_in(all_);
  std::vector<strategies::ProcessGroupUse> to_split;
  for (const strategies::ProcessGroupUse& use : process_groups)
    if (!is_all(use) && use.process_group.ranks > 1 &&
        std::find(to_split.begin(), to_split.end(), use) == to_split.end())
      to_split.push_back(use);
  if (to_split.empty()) return;
  check_equal_on_all_ranks(all_, to_split);
  for (const strategies::ProcessGroupUse& use : to_split) {
    auto part = all_.split(static_cast<int>(use.process_group.number_of(all_.rank())), all_.rank(),
                           carried_on(use.lane));
    part->count_in(all_);
    process_groups_.emplace_back(use, std::move(part));
  }
}

Communicator& ProcessGroups::of(const strategies::ProcessGroupUse& use) const {
  if (is_all(use)) return all_;
  if (use.process_group.ranks == 1) return *alone_;
  const auto part = std::find_if(process_groups_.begin(), process_groups_.end(),
                                 [&](const auto& one) { return one.first == use; });
  ENSURE(part != process_groups_.end(), "a process_group that was not split off");
  return *part->second;
}

BoundProgram::BoundProgram(strategies::Program program, ProgramMemory& memory,
                           const ProcessGroups& process_groups, ReductionKernels* reduction)
    : program_(std::move(program)), memory_(memory), reduction_(reduction) {
  for (const strategies::CollectiveCall& call : program_.calls) {
    calls_.push_back(bound(call, process_groups));
    if (std::find(communicators_.begin(), communicators_.end(), calls_.back().comm) == communicators_.end())
      communicators_.push_back(calls_.back().comm);
  }
  for (const Instruction& instruction : program_.instructions)
    instructions_.push_back({memory.at(instruction.to), memory.at(instruction.from)});
  for (const strategies::Slice& gradients : program_.counted) gradients_.push_back(memory.at(gradients));
}

// Prepares a call of the program: its communicator, tensors and peers. The peers of a message that goes one
// way only are nobody on the other side.
BoundProgram::BoundCall BoundProgram::bound(const strategies::CollectiveCall& call,
                                            const ProcessGroups& process_groups) const {
  Communicator& comm = process_groups.of({call.process_group, call.lane});
  if (call.inside_block && call.inside_block->exchanges_tokens()) {  // its tensors are those of the block
    Call rows;
    rows.what = call.what;
    return {&comm, rows, {}};
  }
  if (call.inside_block) {
    const auto [out, in] = memory_.inside_block(*call.inside_block, comm);
    return {&comm, {call.what, out, in}, {}};
  }
  const at::Tensor out = memory_.at(call.out);
  const bool is_message = call.what == Collective::send_recv;
  const int root = static_cast<int>(call.root.value_or(0));
  return {&comm,
          {call.what, out, memory_.at(call.in), ReduceOp::sum, is_message ? 0 : root,
           is_message && out.defined() ? root : Call::kNobody,
           is_message && call.in.numel > 0 ? root : Call::kNobody},
          {}};
}

// The number of the call's specs::Dimension.
int64_t BoundProgram::dimension_of(const BoundCall& call) const {
  return static_cast<int64_t>(program_.calls[static_cast<size_t>(&call - calls_.data())].dimension);
}

void BoundProgram::communicate(size_t i) {
  const Instruction& instruction = program_.instructions[i];
  BoundCall* const first = &calls_[static_cast<size_t>(instruction.index)];
  BoundCall* const end = first + instruction.count;
  if (instruction.what == What::wait) {
    for (BoundCall* call = first; call != end; ++call) {
      call->comm->expose_as(dimension_of(*call));
      call->work.wait();
    }
    return;
  }
  first->comm->expose_as(dimension_of(*first));
  OneLaunch launch(*first->comm);
  for (BoundCall* call = first; call != end; ++call) {
    // A block that does not compute has chosen no experts, so that all are taken to get equally many rows.
    const bool exchanges_tokens = is_inside_block(i) && planned(*call).exchanges_tokens();
    call->work = call->comm->start(exchanges_tokens ? with_stand_in(*call, nullptr) : call->call);
  }
  launch.end();
}

// The program lists the calls of a block right behind the instruction that computes it, each as a start and
// a wait: StepBuilder::call_inside_block().
BoundProgram::BoundCall* BoundProgram::next_inside_block() {
  if (next_inside_ >= program_.instructions.size()) return nullptr;
  const Instruction& next = program_.instructions[next_inside_];
  if (next.what != What::start || !is_inside_block(next_inside_)) return nullptr;
  next_inside_ += 2;  // skips the start and the wait
  return &calls_[static_cast<size_t>(next.index)];
}

const specs::BlockCall& BoundProgram::planned(const BoundCall& call) const {
  return *program_.calls[static_cast<size_t>(&call - calls_.data())].inside_block;
}

// The block makes a call on tensors of its own. They must match the call that its row of the model's table
// has planned, because the other ranks make that one.
size_t BoundProgram::start_inside_block(specs::Dimension dimension, Collective what, const at::Tensor& out,
                                        const at::Tensor& in) {
  BoundCall* const next = next_inside_block();
  ENSURE(next != nullptr, "a block makes a call that its table does not have");
  const specs::BlockCall& plan = planned(*next);
  const bool has_rows = plan.row > 0;  // as many as tokens have chosen
  const auto is_planned = [&](const at::Tensor& own, const at::Tensor& bound) {
    return has_rows || own.numel() == (plan.exchanges_tokens() ? plan.numel : bound.numel());
  };
  ENSURE(plan.dimension == dimension && plan.what == what && is_planned(out, next->call.out) &&
             is_planned(in, next->call.in),
         "a block makes another call than its table says");
  Call call = next->call;
  call.out = out.view(-1);
  call.in = in.view(-1);
  if (has_rows) call.parts = parts_of(*next);
  next->comm->expose_as(static_cast<int64_t>(dimension));
  next->work = next->comm->start(call);
  return static_cast<size_t>(next - calls_.data());
}

void BoundProgram::wait_inside_block(size_t call) {
  calls_[call].comm->expose_as(dimension_of(calls_[call]));
  calls_[call].work.wait();
}

void stand_in(Collective what, const at::Tensor& out, const at::Tensor& in) {
  if (out.is_same(in)) return;
  if (in.numel() == 0)  // no token has chosen an expert of another rank, or one of this rank
    out.zero_();
  else if (what == Collective::all_to_all_v)
    out.view(-1).copy_(
        in.view(-1).repeat({(out.numel() + in.numel() - 1) / in.numel()}).narrow(0, 0, out.numel()));
  else if (what == Collective::all_gather)
    out.view({-1, in.numel()}).copy_(in.view({1, -1}).expand({out.numel() / in.numel(), -1}));
  else
    out.view(-1).copy_(in.view(-1).narrow(0, 0, out.numel()));
}

std::vector<int64_t> BoundProgram::gather_counts(const at::Tensor& all, const at::Tensor& own) {
  const size_t call = start_inside_block(specs::Dimension::expert, Collective::all_gather, all, own);
  wait_inside_block(call);
  return gathered_counts(calls_[call], all);
}

// A rank that has failed has put a negative number in place of each of its counts.
constexpr int64_t kFailed = -1;

// Keeps how many rows travel between ranks, each of which has equally many consecutive receivers.
std::vector<int64_t> BoundProgram::gathered_counts(const BoundCall& counts, const at::Tensor& all) {
  const at::Tensor host = all.cpu();
  std::vector<int64_t> found(host.data_ptr<int64_t>(), host.data_ptr<int64_t>() + host.numel());
  if (std::find(found.begin(), found.end(), kFailed) != found.end()) std::fill(found.begin(), found.end(), 0);
  const auto ranks = static_cast<size_t>(counts.comm->size());
  const size_t receivers = found.size() / ranks, own = receivers / ranks;
  specs::Parts::Rows& rows = rows_sent_[exchange_of(counts)];
  rows.assign(ranks, std::vector<int64_t>(ranks));
  for (size_t from = 0; from < ranks; ++from)
    for (size_t receiver = 0; receiver < receivers; ++receiver)
      rows[from][receiver / own] += found[from * receivers + receiver];
  return found;
}

// Rows that return go from the rank that received them to the one that sent them.
std::shared_ptr<const specs::Parts> BoundProgram::parts_of(const BoundCall& rows) const {
  const specs::BlockCall& call = planned(rows);
  const specs::Parts::Rows& sent = rows_sent_.at(exchange_of(rows));
  specs::Parts::Rows elements = sent;
  for (size_t from = 0; from < sent.size(); ++from)
    for (size_t to = 0; to < sent.size(); ++to)
      elements[from][to] = (call.returns ? sent[to][from] : sent[from][to]) * call.row;
  return std::make_shared<const specs::Parts>(std::move(elements));
}

// The call on stand-in memory, which all calls share, because each is waited for before the next one starts.
// Without parts, every rank sends equally much to every rank. A rank that is out of memory has freed all
// micro-batches before; if there is still no room, its job ends.
Call BoundProgram::with_stand_in(const BoundCall& rows, std::shared_ptr<const specs::Parts> parts) {
  const specs::BlockCall& planned = this->planned(rows);
  const int64_t ranks = rows.comm->size(), even = planned.numel / ranks * ranks;
  const int64_t sent = parts ? parts->sent_by(rows.comm->rank()) : even;
  const int64_t received = parts ? parts->received_by(rows.comm->rank()) : even;
  const at::ScalarType type = memory_.type(planned.element);
  const auto each = static_cast<int64_t>(at::elementSize(type));
  const int64_t bytes = (sent + received) * each;
  if (!stand_in_rows_.defined() || stand_in_rows_.numel() < bytes) {
    stand_in_rows_.reset();  // frees the smaller memory first
    stand_in_rows_ = at::zeros({bytes}, at::TensorOptions(rows.comm->device()).dtype(at::kByte));
  }
  Call call = rows.call;
  call.in = stand_in_rows_.narrow(0, 0, sent * each).view(type);
  call.out = stand_in_rows_.narrow(0, sent * each, received * each).view(type);
  call.parts = std::move(parts);
  return call;
}

// Waits for the calls that the block has started, and makes those that it has not made because it failed, on
// stand-in memory.
void BoundProgram::end_block() {
  for (size_t i = first_inside_; i < next_inside_; i += 2)
    calls_[static_cast<size_t>(program_.instructions[i].index)].work.wait();
  while (BoundCall* const left = next_inside_block()) {
    const specs::BlockCall& call = planned(*left);
    if (call.exchanges_tokens()) {
      Call stand_in = with_stand_in(*left, call.row > 0 ? parts_of(*left) : nullptr);
      // Weights of experts that no token has chosen, so that receivers compute nothing: models/dispatch.cpp.
      if (!call.returns) stand_in.in.fill_(kNotChosen);
      left->comm->start(stand_in).wait();
    } else if (call.dimension == specs::Dimension::expert && call.what == Collective::all_gather) {
      left->call.in.fill_(kFailed);  // in place of counts
      left->comm->start(left->call).wait();
      gathered_counts(*left, left->call.out);
    } else {
      left->comm->start(left->call).wait();
    }
  }
}

void BoundProgram::run_locally(size_t i) {
  const Instruction& instruction = program_.instructions[i];
  BoundInstruction& bound = instructions_[i];
  switch (instruction.what) {
    case What::bind:
      return memory_.parameters_of(instruction.index).bind(bound.to);
    case What::bind_gradients:
      return memory_.gradients_of(instruction.index).bind(bound.to);
    case What::copy:
      bound.to.copy_(bound.from);
      return;
    case What::add:
      bound.to.add_(bound.from);
      return;
    case What::zero:
      bound.to.zero_();
      return;
    case What::pack:
      return reduction_->pack(static_cast<size_t>(instruction.index));
    case What::combine:
      return reduction_->combine(static_cast<size_t>(instruction.index));
    case What::unpack:
      return reduction_->unpack(static_cast<size_t>(instruction.index));
    case What::squares:
      bound.to.copy_(squares(gradients_, bound.to.device()).view({1}));
      return;
    default:
      return;  // the executor runs all others
  }
}

void BoundProgram::poll() {
  for (Communicator* comm : communicators_) comm->progress();
}

void BoundProgram::wait_all() {
  for (BoundCall& call : calls_) call.work.wait();
}

}  // namespace shardmark
