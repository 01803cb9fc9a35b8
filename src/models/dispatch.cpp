// Each direction is an autograd function, whose backward sends gradients the other way.
#include "models/dispatch.h"

#include <torch/csrc/autograd/custom_function.h>

#include <numeric>

namespace shardmark {
namespace {

using specs::Collective;
using specs::Dimension;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// How the copies of one micro-batch's tokens travel in one layer, for both functions and their backward.
struct DispatchState : torch::CustomClassHolder {
  DispatchState(const Model& of, const Routing& routing)
      : model(of), order(routing.order), top_k(routing.weights.size(1)) {}
  const Model& model;
  at::Tensor order;  // Routing::order
  int64_t top_k;
  int64_t num_sent = 0;      // this rank's copies; 0 if a rank has failed, although there are copies
  int64_t num_received = 0;  // copies of all ranks for this rank's experts
  // With a capacity: the number of rows for all experts together, and for each copy, in the order by expert,
  // its row among these; num_rows if it is dropped. int64 [N k].
  int64_t num_rows = 0;
  at::Tensor row_of;

  // The rows of tokens' copies [N k, width], in the order by expert, to the ranks that have the experts.
  at::Tensor to_experts(const at::Tensor& rows) const {
    if (num_rows == 0) return exchanged(rows.narrow(0, 0, num_sent), num_received);
    const at::Tensor padded = at::zeros({num_rows + 1, rows.size(1)}, rows.options());  // the last: dropped
    padded.index_copy_(0, row_of, rows);
    return exchanged(padded.narrow(0, 0, num_rows), num_rows);
  }
  // Rows for the copies that this rank has received, back to where they came from: [N k, width]. A copy
  // that was dropped gets zeros. If a rank has failed, nothing has travelled, and all copies get zeros.
  at::Tensor to_tokens(const at::Tensor& rows) const {
    if (num_rows > 0)
      return exchanged(rows, num_rows)
          .index_select(0, row_of.clamp_max(num_rows - 1))
          .masked_fill_(row_of.eq(num_rows).unsqueeze(1), 0);
    const at::Tensor back = exchanged(rows, num_sent);
    const int64_t num_copies = order.numel();
    return num_sent == num_copies ? back : at::zeros({num_copies, rows.size(1)}, rows.options());
  }
  // For each copy, in the order by expert, the row of its token.
  at::Tensor copied(const at::Tensor& of_tokens) const {
    return of_tokens.index_select(0, order.div(top_k, "floor"));
  }

 private:
  at::Tensor exchanged(const at::Tensor& rows, int64_t num_out) const {
    at::Tensor in = rows.contiguous();
    if (model.table().split.expert == 1) return in;
    at::Tensor out = at::empty({num_out, in.size(1)}, in.options());
    model.communicate(Dimension::expert, num_rows > 0 ? Collective::all_to_all : Collective::all_to_all_v,
                      out, in);
    return out;
  }
};
using SharedState = c10::intrusive_ptr<DispatchState>;

DispatchState& state_of(AutogradContext* ctx) {
  return static_cast<DispatchState&>(*ctx->saved_data["state"].toCapsule());
}
void keep_state(AutogradContext* ctx, const SharedState& state) {
  ctx->saved_data["state"] = at::IValue::make_capsule(state);
}

// From tokens x [N, C] and the weights of their choices [N, k] to the received copies [R, C] and the weight
// of each [R, 1]. A weight is the last column of its copy's row on the way.
struct Dispatch : torch::autograd::Function<Dispatch> {
  static variable_list forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weights,
                               const SharedState& state) {
    keep_state(ctx, state);
    const at::Tensor weight = weights.reshape({-1, 1}).index_select(0, state->order);
    const at::Tensor rows = state->to_experts(at::cat({state->copied(x), weight}, 1));
    const int64_t width = x.size(1);
    return {rows.narrow(1, 0, width), rows.narrow(1, width, 1)};
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& outputs) {
    const DispatchState& state = state_of(ctx);
    const at::Tensor rows = state.to_tokens(at::cat({outputs[0], outputs[1]}, 1));
    const int64_t width = outputs[0].size(1);
    const at::Tensor& order = state.order;
    const at::Tensor dweights = at::empty({order.numel()}, rows.options());
    dweights.index_copy_(0, order, rows.select(1, width));
    return {
        sum_of_copies(rows.narrow(1, 0, width), order, state.top_k), dweights.view({-1, state.top_k}), {}};
  }
};

// From the outputs of this rank's experts [R, C] to those of this rank's tokens [N, C].
struct Combine : torch::autograd::Function<Combine> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& rows, const SharedState& state) {
    keep_state(ctx, state);
    return sum_of_copies(state->to_tokens(rows), state->order, state->top_k);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& outputs) {
    const DispatchState& state = state_of(ctx);
    return {state.to_experts(state.copied(outputs[0])), {}};
  }
};

// How the copies that a rank has received are ordered by its own experts. They come in the order of their
// senders, and from each in the order of experts. counts: [rank][expert], of all experts.
Routing by_own_expert(const std::vector<int64_t>& counts, const specs::Split& split,
                      const at::TensorOptions& options) {
  const auto all = at::tensor(counts, at::kLong).view({split.expert, split.expert, -1});
  const at::Tensor own = all.select(1, split.expert_index).contiguous();  // [sender, own expert]
  const auto num_copies = own.sum().item<int64_t>();
  const at::Tensor on_device = own.to(options.device());
  const at::Tensor expert = at::arange(own.size(1), options).repeat({split.expert});
  const at::Tensor of_copies = at::repeat_interleave(expert, on_device.flatten(), 0, num_copies);
  return {{},
          std::get<1>(of_copies.sort(/*stable=*/true, 0, /*descending=*/false)),
          on_device.sum(0).cumsum(0).to(at::kInt)};
}

// The same where every rank has sent `capacity` rows to each expert.
Routing by_own_expert(int64_t capacity, const specs::Split& split, const at::Tensor& counts) {
  const int64_t own = counts.numel() / split.expert;
  const at::Tensor rows = at::arange(counts.numel() * capacity, counts.options());
  return {{},
          rows.view({split.expert, own, capacity}).transpose(0, 1).reshape(-1),
          at::arange(1, own + 1, counts.options()).mul_(split.expert * capacity).to(at::kInt)};
}

// For each copy, in the order by expert, its row among `capacity` rows for each expert, or the number of all
// rows if there are more copies for the expert before it.
at::Tensor rows_of_copies(const Routing& routing, const at::Tensor& counts, int64_t capacity) {
  const at::Tensor copies = at::arange(routing.order.numel(), counts.options());
  const at::Tensor ends = routing.ends.to(at::kLong);
  const at::Tensor expert = at::searchsorted(ends, copies, /*out_int32=*/false, /*right=*/true);
  const at::Tensor number = copies - (ends - counts).index_select(0, expert);  // among those for the expert
  return (expert * capacity + number).masked_fill_(number.ge(capacity), counts.numel() * capacity);
}

// Tokens that travel once to each of several receivers, each with the weights that it gives the experts of
// that receiver: how they travel in one layer, for both functions and their backward.
struct OnceState : torch::CustomClassHolder {
  // weights: [N, experts of all receivers], or kNotChosen. index: this rank's among the receivers.
  OnceState(const Model& of, const at::Tensor& weights, int64_t num_receivers, int64_t index)
      : model(of), receivers(num_receivers) {
    const int64_t num_tokens = weights.size(0);
    const at::Tensor is_sent =
        weights.detach().view({num_tokens, receivers, weights.size(1) / receivers}).ne(kNotChosen).any(2);
    const std::vector<int64_t> counts = model.gather_counts(is_sent.sum(0), receivers, index);
    for (int64_t rank = 0; rank < receivers; ++rank) {
      num_sent += counts[static_cast<size_t>(index * receivers + rank)];
      num_received += counts[static_cast<size_t>(rank * receivers + index)];
    }
    const at::Tensor by_receiver = is_sent.t().reshape(-1).nonzero().squeeze(1);  // receiver N + token
    const int64_t each = std::max<int64_t>(num_tokens, 1);
    place = by_receiver.remainder(each).mul_(receivers).add_(by_receiver.div(each, "floor"));
    const at::Tensor of_token = is_sent.sum(1);
    of_tokens = {place.argsort(), of_token.cumsum(0).sub_(of_token)};
  }
  const Model& model;
  int64_t receivers;
  int64_t num_sent = 0;  // this rank's rows; 0 if a rank has failed, although there are rows
  int64_t num_received = 0;
  at::Tensor place;  // int64 [rows]: in the order of receivers, token x receivers + receiver
  RowsOfTokens of_tokens;

  at::Tensor token() const { return place.div(receivers, "floor"); }  // of each row
  at::Tensor to_receivers(const at::Tensor& rows) const {
    return exchanged(rows.narrow(0, 0, num_sent), num_received);
  }
  at::Tensor to_senders(const at::Tensor& rows) const {
    const at::Tensor back = exchanged(rows, num_sent);
    return num_sent == place.numel() ? back : at::zeros({place.numel(), rows.size(1)}, rows.options());
  }

 private:
  at::Tensor exchanged(const at::Tensor& rows, int64_t num_out) const {
    const at::Tensor in = rows.contiguous();
    at::Tensor out = at::empty({num_out, in.size(1)}, in.options());
    model.communicate(Dimension::expert, Collective::all_to_all_v, out, in);
    return out;
  }
};
using SharedOnce = c10::intrusive_ptr<OnceState>;

OnceState& once_of(AutogradContext* ctx) {
  return static_cast<OnceState&>(*ctx->saved_data["state"].toCapsule());
}

// From tokens x [N, C] and their weights [N, experts of all receivers] to the rows that this rank receives,
// [R, C], and their weights [R, own experts].
struct SendOnce : torch::autograd::Function<SendOnce> {
  static variable_list forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weights,
                               const SharedOnce& state) {
    ctx->saved_data["state"] = at::IValue::make_capsule(state);
    const int64_t width = x.size(1), each = weights.size(1) / state->receivers;
    const at::Tensor of_rows = weights.reshape({-1, each}).index_select(0, state->place);
    const at::Tensor rows = state->to_receivers(at::cat({x.index_select(0, state->token()), of_rows}, 1));
    return {rows.narrow(1, 0, width), rows.narrow(1, width, each)};
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& outputs) {
    const OnceState& state = once_of(ctx);
    const int64_t width = outputs[0].size(1), each = outputs[1].size(1);
    const at::Tensor rows = state.to_senders(at::cat({outputs[0], outputs[1]}, 1));
    const int64_t num_tokens = state.of_tokens.begin.numel();
    const at::Tensor dweights = at::zeros({num_tokens * state.receivers, each}, rows.options());
    dweights.index_copy_(0, state.place, rows.narrow(1, width, each));
    return {sum_of_rows(rows.narrow(1, 0, width), state.of_tokens),
            dweights.view({num_tokens, state.receivers * each}),
            {}};
  }
};

// From the sums over this rank's experts for each row [R, C] to those for this rank's tokens [N, C].
struct ReturnOnce : torch::autograd::Function<ReturnOnce> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& rows, const SharedOnce& state) {
    ctx->saved_data["state"] = at::IValue::make_capsule(state);
    return sum_of_rows(state->to_senders(rows), state->of_tokens);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& outputs) {
    const OnceState& state = once_of(ctx);
    return {state.to_receivers(outputs[0].index_select(0, state.token())), {}};
  }
};

// The copies of tokens that this rank's experts compute. weights: [R, own experts], or kNotChosen. The host
// waits for their number.
Routing chosen_copies(const at::Tensor& weights) {
  const at::Tensor is_chosen = weights.detach().ne(kNotChosen);
  const int64_t num_rows = std::max<int64_t>(weights.size(0), 1), each = weights.size(1);
  const at::Tensor by_expert = is_chosen.t().reshape(-1).nonzero().squeeze(1);  // expert R + row
  const at::Tensor order = by_expert.remainder(num_rows).mul_(each).add_(by_expert.div(num_rows, "floor"));
  const at::Tensor of_row = is_chosen.sum(1);
  return {.weights = weights,
          .order = order,
          .ends = is_chosen.sum(0).cumsum(0).to(at::kInt),
          .of_tokens = {order.argsort(), of_row.cumsum(0).sub_(of_row)}};
}

// A token travels once to each group of Split::dispatch ranks, and then once to each rank of the group.
at::Tensor experts_once_per_rank(const LayerInput& in, const at::Tensor& w1, const at::Tensor& w3,
                                 const at::Tensor& w2, const Routing& routing, int64_t experts_of_all,
                                 const Model& model) {
  const specs::Split& split = model.table().split;
  at::Tensor x = in.x;
  at::Tensor weights =
      at::full({x.size(0), experts_of_all}, kNotChosen, routing.weights.options().requires_grad(false))
          .scatter(1, routing.choices, routing.weights);
  std::vector<SharedOnce> on_the_way;
  const auto send = [&](int64_t receivers, int64_t index) {
    on_the_way.push_back(c10::make_intrusive<OnceState>(model, weights, receivers, index));
    const variable_list rows = SendOnce::apply(x, weights, on_the_way.back());
    x = rows[0], weights = rows[1];
  };
  send(split.expert / split.dispatch, split.expert_index / split.dispatch);
  if (split.dispatch > 1) send(split.dispatch, split.expert_index % split.dispatch);
  at::Tensor y = experts({x, in.region}, w1, w3, w2, chosen_copies(weights), &model);
  for (auto state = on_the_way.rbegin(); state != on_the_way.rend(); ++state)
    y = ReturnOnce::apply(y, *state);
  return y;
}

}  // namespace

at::Tensor experts_over_ranks(const LayerInput& in, const at::Tensor& w1, const at::Tensor& w3,
                              const at::Tensor& w2, const Routing& routing, const at::Tensor& counts,
                              int64_t capacity, const Model& model) {
  const specs::Split& split = model.table().split;
  if (split.expert > 1 && !split.travels_as_copies())
    return experts_once_per_rank(in, w1, w3, w2, routing, counts.numel(), model);
  const auto state = c10::make_intrusive<DispatchState>(model, routing);
  Routing received;
  if (capacity > 0) {
    state->num_rows = counts.numel() * capacity;
    state->row_of = rows_of_copies(routing, counts, capacity);
    received = by_own_expert(capacity, split, counts);
  } else if (split.expert > 1) {
    const std::vector<int64_t> of_ranks = model.gather_counts(counts, split.expert, split.expert_index);
    received = by_own_expert(of_ranks, split, counts.options());
    const auto own = of_ranks.begin() + split.expert_index * counts.numel();
    state->num_sent = std::accumulate(own, own + counts.numel(), int64_t{0});
    state->num_received = received.order.numel();
  } else {
    return experts(in, w1, w3, w2, routing, &model);
  }
  const variable_list copies = Dispatch::apply(in.x, routing.weights, state);
  received.weights = copies[1];
  return Combine::apply(experts({copies[0], in.region}, w1, w3, w2, received, &model), state);
}

}  // namespace shardmark
