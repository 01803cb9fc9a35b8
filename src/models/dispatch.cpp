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

// The ways of the copies of one micro-batch through one layer, for the functions and their backward.
struct Trip : torch::CustomClassHolder {
  Trip(const Model& of, const Routing& of_tokens) : model(of), routing(of_tokens) {}
  const Model& model;
  Routing routing;
  int64_t num_sent = 0;      // this rank's copies; 0 if a rank has failed, although there are copies
  int64_t num_received = 0;  // copies of all ranks for this rank's experts

  int64_t top_k() const { return routing.weights.size(1); }
  // The rows of tokens' copies [N k, width], in the order by expert, to the ranks that have the experts.
  at::Tensor to_experts(const at::Tensor& rows) const {
    return exchanged(rows.narrow(0, 0, num_sent), num_received);
  }
  // Rows for the copies that this rank has received, back to where they came from: [N k, width].
  at::Tensor to_tokens(const at::Tensor& rows) const {
    const at::Tensor back = exchanged(rows, num_sent);
    const int64_t num_copies = routing.order.numel();
    return num_sent == num_copies ? back : at::zeros({num_copies, rows.size(1)}, rows.options());
  }
  // For each copy, in the order by expert, the row of its token.
  at::Tensor copied(const at::Tensor& of_tokens) const {
    return of_tokens.index_select(0, routing.order.div(top_k(), "floor"));
  }

 private:
  at::Tensor exchanged(const at::Tensor& rows, int64_t num_rows) const {
    const at::Tensor in = rows.contiguous();
    at::Tensor out = at::empty({num_rows, in.size(1)}, in.options());
    model.communicate(Dimension::expert, Collective::all_to_all_v, out, in);
    return out;
  }
};
using SharedTrip = c10::intrusive_ptr<Trip>;

Trip& trip_of(AutogradContext* ctx) { return static_cast<Trip&>(*ctx->saved_data["trip"].toCapsule()); }
void keep_trip(AutogradContext* ctx, const SharedTrip& trip) {
  ctx->saved_data["trip"] = at::IValue::make_capsule(trip);
}

// From tokens x [N, C] and the weights of their choices [N, k] to the received copies [R, C] and the weight
// of each [R, 1]. A weight is the last column of its copy's row on the way.
struct Dispatch : torch::autograd::Function<Dispatch> {
  static variable_list forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weights,
                               const SharedTrip& trip) {
    keep_trip(ctx, trip);
    const at::Tensor weight = weights.reshape({-1, 1}).index_select(0, trip->routing.order);
    const at::Tensor rows = trip->to_experts(at::cat({trip->copied(x), weight}, 1));
    const int64_t width = x.size(1);
    return {rows.narrow(1, 0, width), rows.narrow(1, width, 1)};
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& outputs) {
    const Trip& trip = trip_of(ctx);
    const at::Tensor rows = trip.to_tokens(at::cat({outputs[0], outputs[1]}, 1));
    const int64_t width = outputs[0].size(1);
    const at::Tensor& order = trip.routing.order;
    const at::Tensor dweights = at::empty({order.numel()}, rows.options());
    dweights.index_copy_(0, order, rows.select(1, width));
    return {
        sum_of_copies(rows.narrow(1, 0, width), order, trip.top_k()), dweights.view({-1, trip.top_k()}), {}};
  }
};

// From the outputs of this rank's experts [R, C] to those of this rank's tokens [N, C].
struct Combine : torch::autograd::Function<Combine> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& rows, const SharedTrip& trip) {
    keep_trip(ctx, trip);
    return sum_of_copies(trip->to_tokens(rows), trip->routing.order, trip->top_k());
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& outputs) {
    const Trip& trip = trip_of(ctx);
    return {trip.to_experts(trip.copied(outputs[0])), {}};
  }
};

// How the copies that a rank has received are ordered by its own experts. They come in the order of their
// senders, and from each in the order of experts. counts: [rank][expert], of all experts.
Routing by_own_expert(const std::vector<int64_t>& counts, const specs::Split& split,
                      const at::TensorOptions& options) {
  const auto all = at::tensor(counts, at::kLong).view({split.expert, split.expert, -1});
  const at::Tensor own = all.select(1, split.expert_index).contiguous();  // [sender, own expert]
  const at::Tensor expert = at::arange(own.size(1), at::kLong).repeat({split.expert});
  const at::Tensor of_copies = at::repeat_interleave(expert, own.flatten());
  return {{},
          std::get<1>(of_copies.sort(/*stable=*/true, 0, /*descending=*/false)).to(options.device()),
          own.sum(0).cumsum(0).to(at::kInt).to(options.device())};
}

}  // namespace

at::Tensor experts_over_ranks(const at::Tensor& x, const at::Tensor& w1, const at::Tensor& w3,
                              const at::Tensor& w2, const Routing& routing, const at::Tensor& counts,
                              const Model& model) {
  const specs::Split& split = model.table().split;
  if (split.expert == 1) return experts(x, w1, w3, w2, routing, &model);
  const std::vector<int64_t> of_ranks = model.gather_counts(counts);
  Routing received = by_own_expert(of_ranks, split, counts.options());
  const auto trip = c10::make_intrusive<Trip>(model, Routing{routing.weights.detach(), routing.order, {}});
  const auto own = of_ranks.begin() + split.expert_index * counts.numel();
  trip->num_sent = std::accumulate(own, own + counts.numel(), int64_t{0});
  trip->num_received = received.order.numel();
  const variable_list copies = Dispatch::apply(x, routing.weights, trip);
  received.weights = copies[1];
  return Combine::apply(experts(copies[0], w1, w3, w2, received, &model), trip);
}

}  // namespace shardmark
