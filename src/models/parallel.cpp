// Each exchange between ranks is an autograd function, which makes the model's next collective in forward or
// backward.
#include "models/parallel.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"
#include "kernels/fused.h"

namespace shardmark {

namespace {

using specs::Collective;
using specs::Dimension;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// What backward needs in addition to tensors.
struct OfModel : torch::CustomClassHolder {
  OfModel(const Model& of, Dimension over) : model(of), dimension(over) {}
  const Model& model;
  Dimension dimension;
};

int64_t ranks_of(const OfModel& of) {
  const specs::Split& split = of.model.table().split;
  return of.dimension == Dimension::tensor ? split.tensor : split.context;
}

at::Tensor sum(const OfModel& of, const at::Tensor& x) {
  const at::Tensor in = x.contiguous();
  at::Tensor out = at::empty_like(in);
  of.model.communicate(of.dimension, Collective::all_reduce, out, in);
  return out;
}
// For the rows of all ranks, if each has as many as x.
at::Tensor empty_for_all(const OfModel& of, const at::Tensor& x) {
  std::vector<int64_t> shape = x.sizes().vec();
  shape.front() *= ranks_of(of);
  return at::empty(shape, x.options());
}
at::Tensor gathered(const OfModel& of, const at::Tensor& x) {
  const at::Tensor in = x.contiguous();
  at::Tensor out = empty_for_all(of, in);
  of.model.communicate(of.dimension, Collective::all_gather, out, in);
  return out;
}
// For a rank's rows of x.
at::Tensor empty_share(const OfModel& of, const at::Tensor& x) {
  std::vector<int64_t> shape = x.sizes().vec();
  shape.front() /= ranks_of(of);
  return at::empty(shape, x.options());
}
at::Tensor scattered_sum(const OfModel& of, const at::Tensor& x) {
  const at::Tensor in = x.contiguous();
  at::Tensor out = empty_share(of, in);
  of.model.communicate(of.dimension, Collective::reduce_scatter, out, in);
  return out;
}

}  // namespace

const RoundedInput& LayerInput::rounded(const Fp8& fp8) const {
  if (!rounded_) {
    const bool keeps_columns = at::GradMode::is_enabled() && !(region && region->gathers_again());
    const at::NoGradGuard no_grad;
    const at::Tensor rows = x.detach().reshape({-1, x.size(-1)});
    const LargestMagnitudes largest = fp8_largest(fp8, rows);
    rounded_ = std::make_shared<RoundedInput>(
        RoundedInput{fp8_matrix(fp8, rows, Holds::values, {true, keeps_columns}, largest), largest});
  }
  return *rounded_;
}

void TensorRegion::begin_backward() {
  if (!gathers_again() || input_.defined()) return;
  const at::Tensor own = own_.contiguous();
  input_ = empty_for_all({model_, Dimension::tensor}, own);
  wait_for_input_ = model_.start_collective(Dimension::tensor, Collective::all_gather, input_, own);
}

// All layers that read the region's input have computed their gradients of it by now: autograd calls the
// function that entered the region last. Its collective is under way while the gradients of the layers'
// parameters are computed. Each of them frees what it kept as soon as it is done.
void TensorRegion::communicate(Collective what, const at::Tensor& out, const at::Tensor& in) {
  const auto wait = model_.start_collective(Dimension::tensor, what, out, in);
  if (wait_for_input_) std::exchange(wait_for_input_, nullptr)();
  own_.reset();  // what is deferred may keep this region for long
  for (AddGradients& left : std::exchange(left_, {})) {
    AddGradients add = std::exchange(left, {});  // frees what it needs when it is done
    if (model_.deferred != nullptr) {
      model_.deferred->push_back([add = std::move(add), input = input_] { add(input); });
      continue;
    }
    add(input_);
    model_.poll();
  }
  input_.reset();
  wait();
}

namespace {

c10::intrusive_ptr<OfModel> over(const Model& model, Dimension dimension = Dimension::tensor) {
  return c10::make_intrusive<OfModel>(model, dimension);
}
OfModel& kept(AutogradContext* ctx) { return static_cast<OfModel&>(*ctx->saved_data["of"].toCapsule()); }
void keep(AutogradContext* ctx, const c10::intrusive_ptr<OfModel>& of) {
  ctx->saved_data["of"] = at::IValue::make_capsule(of);
}

TensorRegion& kept_region(AutogradContext* ctx) {
  return static_cast<TensorRegion&>(*ctx->saved_data["region"].toCapsule());
}

// Megatron-LM's f: the identity in forward; in backward, the gradients of all ranks are summed.
struct CopyForward : torch::autograd::Function<CopyForward> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x,
                            const c10::intrusive_ptr<TensorRegion>& region) {
    ctx->saved_data["region"] = at::IValue::make_capsule(region);
    return x.view_as(x);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& outputs) {
    const at::Tensor in = outputs[0].contiguous();
    at::Tensor out = at::empty_like(in);
    kept_region(ctx).communicate(Collective::all_reduce, out, in);
    return {out, {}};
  }
};

// Megatron-LM's g: a sum over ranks in forward; the identity in backward.
struct SumForward : torch::autograd::Function<SumForward> {
  static at::Tensor forward(AutogradContext*, const at::Tensor& x, const c10::intrusive_ptr<OfModel>& of) {
    return sum(*of, x);
  }
  static variable_list backward(AutogradContext*, const variable_list& outputs) { return {outputs[0], {}}; }
};

// All-gathers rows in forward. In backward, gradients are reduce-scattered.
struct GatherForward : torch::autograd::Function<GatherForward> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x,
                            const c10::intrusive_ptr<TensorRegion>& region) {
    ctx->saved_data["region"] = at::IValue::make_capsule(region);
    return gathered({region->model(), Dimension::tensor}, x);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& outputs) {
    TensorRegion& region = kept_region(ctx);
    const at::Tensor in = outputs[0].contiguous();
    at::Tensor out = empty_share({region.model(), Dimension::tensor}, in);
    region.communicate(Collective::reduce_scatter, out, in);
    return {out, {}};
  }
};

// Reduce-scatters rows in forward. In backward, gradients are all-gathered.
struct ScatterForward : torch::autograd::Function<ScatterForward> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x,
                            const c10::intrusive_ptr<OfModel>& of) {
    keep(ctx, of);
    return scattered_sum(*of, x);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& outputs) {
    return {gathered(kept(ctx), outputs[0]), {}};
  }
};

// Which of `ids` (tokens) are in a rank's shard of the vocabulary, `count` from `first` on, and their index
// there. Ids of other shards get index 0.
struct OwnTokenIds {
  at::Tensor is_elsewhere, index;
  OwnTokenIds(const at::Tensor& ids, int64_t first, int64_t count) {
    const at::Tensor own = ids - first;
    is_elsewhere = own.lt(0).logical_or_(own.ge(count));
    index = own.masked_fill(is_elsewhere, 0);
  }
};

// Cross-entropy over a sharded vocabulary: logits [N, V] are those of a rank's shard, which begins at
// `first`; targets are [N]. For each token, ranks exchange two numbers: the log-sum-exp of their logits,
// and the logit of the target, or 0 if it is not in their shard. The log-sum-exp of the ranks' log-sum-exps
// is that of all logits, and the sum of the second numbers is the target's logit. The loss is the
// difference. Its gradient is the softmax, less 1 at the target, on the rank that has it.
struct CrossEntropyOverRanks : torch::autograd::Function<CrossEntropyOverRanks> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& logits, const at::Tensor& targets,
                            int64_t first, const c10::intrusive_ptr<OfModel>& of) {
    const OwnTokenIds own(targets, first, logits.size(1));
    const at::Tensor index = own.index.unsqueeze(1);
    const at::Tensor of_target = logits.gather(1, index).squeeze(1).masked_fill(own.is_elsewhere, 0);
    const at::Tensor parts =
        gathered(*of, at::stack({at::logsumexp(logits, 1), of_target})).view({-1, 2, logits.size(0)});
    const at::Tensor total = at::logsumexp(parts.select(1, 0), 0);
    ctx->save_for_backward({logits, total, index, own.is_elsewhere});
    return (total - parts.select(1, 1).sum(0)).mean();
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& outputs) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &logits = saved[0], &total = saved[1], &index = saved[2], &is_elsewhere = saved[3];
    at::Tensor gradient = at::sub(logits, total.unsqueeze(1)).exp_();
    gradient.scatter_add_(1, index, is_elsewhere.to(logits.scalar_type()).sub_(1).unsqueeze(1));
    return {gradient.mul_(outputs[0] / static_cast<double>(logits.size(0))), {}, {}, {}};
  }
};

// The same with 2 bytes for each logit: in bf16 the softmax of a rank's own logits takes their memory, and
// backward multiplies it by the rank's share of the sum of exponentials, by which it becomes the gradient.
// `own` of the logits are words, the rest is padding. The target's probability less 1 is computed from its
// logarithm, because it would have no correct digit beside 1 in bf16.
struct RoundedCrossEntropyOverRanks : torch::autograd::Function<RoundedCrossEntropyOverRanks> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& logits, const at::Tensor& targets,
                            int64_t first, int64_t own, const c10::intrusive_ptr<OfModel>& of) {
    const at::Tensor p = logits.detach();
    const OwnTokenIds of_targets(targets, first, own);
    const at::Tensor of_target = p.gather(1, of_targets.index.unsqueeze(1))
                                     .squeeze(1)
                                     .to(at::kFloat)
                                     .masked_fill_(of_targets.is_elsewhere, 0);
    const at::Tensor log_sum = softmax(p, own, of->model.fused);
    const at::Tensor parts = gathered(*of, at::stack({log_sum, of_target})).view({-1, 2, logits.size(0)});
    const at::Tensor total = at::logsumexp(parts.select(1, 0), 0), losses = total - parts.select(1, 1).sum(0);
    ctx->save_for_backward({p, (log_sum - total).exp_(), losses, of_targets.index, of_targets.is_elsewhere});
    return losses.mean();
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& outputs) {
    const variable_list saved = ctx->get_saved_variables();
    at::Tensor p = saved[0];
    const at::Tensor &share = saved[1], &losses = saved[2], &index = saved[3], &is_elsewhere = saved[4];
    const at::Tensor scale = outputs[0] / static_cast<double>(p.size(0));
    const at::Tensor factor = (share * scale).unsqueeze(1);
    for_parts(p, [&](int64_t begin, int64_t rows) {
      p.narrow(0, begin, rows).mul_(factor.narrow(0, begin, rows));
    });
    const at::Tensor of_target = (at::expm1(-losses) * scale).to(p.scalar_type());
    // Unlike scatter_, this makes no copy in float on CPUs.
    p.index_put_({at::arange(p.size(0), index.options()), index},
                 at::where(is_elsewhere, p.gather(1, index.unsqueeze(1)).squeeze(1), of_target));
    return {p, {}, {}, {}, {}};
  }

 private:
  // A part of the rows at a time, so that there are few floats at once. More parts would be too short to fill
  // a GPU.
  template <class Body>
  static void for_parts(const at::Tensor& logits, Body body) {
    const int64_t parts = logits.is_cpu() ? 64 : 16, rows = logits.size(0),
                  at_once = (rows + parts - 1) / parts;
    for (int64_t begin = 0; begin < rows; begin += at_once) body(begin, std::min(at_once, rows - begin));
  }
  // Replaces rows of logits by their softmax, in which padding is 0, and returns their log-sum-exp in float.
  static at::Tensor softmax(const at::Tensor& logits, int64_t own, const Kernels& fused) {
    if (fused) return softmax_in_place(fused, logits, own);
    logits.narrow(1, own, logits.size(1) - own).fill_(-std::numeric_limits<double>::infinity());
    std::vector<at::Tensor> log_sums;
    for_parts(logits, [&](int64_t begin, int64_t rows) {
      const at::Tensor part = logits.narrow(0, begin, rows);
      at::Tensor log_p = part.to(at::kFloat);
      at::_log_softmax_out(log_p, log_p, 1, /*half_to_float=*/false);
      log_sums.push_back(std::get<0>(part.max(1)) - std::get<0>(log_p.max(1)));
      part.copy_(log_p.exp_());
    });
    return at::cat(log_sums);
  }
};

// Scores over a sharded vocabulary (target_scores()). Ranks exchange two more numbers for each token: the
// largest logit, and whether it is the target's. If several ranks have equal maxima, the first one counts.
at::Tensor scores_over_ranks(const OfModel& of, const at::Tensor& logits, const at::Tensor& targets,
                             int64_t first) {
  const OwnTokenIds own(targets, first, logits.size(1));
  const at::Tensor of_target =
      logits.gather(1, own.index.unsqueeze(1)).squeeze(1).masked_fill(own.is_elsewhere, 0);
  const auto [most, where] = logits.max(1);
  const at::Tensor is_hit = where.eq(own.index).logical_and_(own.is_elsewhere.logical_not());
  const at::Tensor parts =
      gathered(of, at::stack({at::logsumexp(logits, 1), of_target, most, is_hit.to(logits.scalar_type())}))
          .view({-1, 4, logits.size(0)})
          .to(at::kDouble);
  const at::Tensor winner = parts.select(1, 2).argmax(0, /*keepdim=*/true);
  return at::stack({at::logsumexp(parts.select(1, 0), 0) - parts.select(1, 1).sum(0),
                    parts.select(1, 3).gather(0, winner).squeeze(0)},
                   1);
}

}  // namespace

LayerInput copy_to_tensor_region(const Model& model, const at::Tensor& x, bool keeps_input) {
  const specs::Split& split = model.table().split;
  if (split.tensor == 1) return x;
  const bool gathers_again = split.gathers_again && !keeps_input;
  const auto region = c10::make_intrusive<TensorRegion>(model, gathers_again ? x.detach() : at::Tensor());
  return {split.sequence_parallel ? GatherForward::apply(x, region) : CopyForward::apply(x, region), region};
}

at::Tensor reduce_from_tensor_region(const Model& model, const at::Tensor& x) {
  const specs::Split& split = model.table().split;
  if (split.tensor == 1) return x;
  return split.sequence_parallel ? ScatterForward::apply(x, over(model)) : SumForward::apply(x, over(model));
}

at::Tensor own_rows(const Model& model, const at::Tensor& rows) {
  const specs::Split& split = model.table().split;
  if (!split.sequence_parallel) return rows;
  const int64_t count = rows.size(0) / split.tensor;
  return rows.narrow(0, split.tensor_index * count, count);
}

at::Tensor embedded(const Model& model, const at::Tensor& table, const at::Tensor& ids) {
  const specs::Split& split = model.table().split;
  if (split.tensor == 1) return at::embedding(table, ids).flatten(0, 1);
  const OwnTokenIds own(ids.flatten(), split.tensor_index * table.size(0), table.size(0));
  const at::Tensor rows = at::embedding(table, own.index);
  return reduce_from_tensor_region(model, rows.masked_fill(own.is_elsewhere.unsqueeze(1), 0));
}

at::Tensor loss_over_sharded_vocabulary(const Model& model, const at::Tensor& logits, const Batch& batch,
                                        int64_t vocabulary) {
  const int64_t first = model.table().split.tensor_index * logits.size(1);
  const int64_t own = std::min(logits.size(1), vocabulary - first);  // without padding
  ENSURE(batch.targets.defined(), "no rank has the logits of the whole vocabulary");
  const at::Tensor targets = batch.targets.flatten();
  if (logits.scalar_type() == at::kBFloat16 && !batch.wants_scores)
    return RoundedCrossEntropyOverRanks::apply(logits, targets, first, own, over(model));
  // 16-bit logits are converted to float, because a sum over many classes needs it.
  const at::Tensor precise = logits.element_size() < 4 ? logits.to(at::kFloat) : logits;
  const at::Tensor in_vocabulary = precise.narrow(1, 0, own);
  if (batch.wants_scores) return scores_over_ranks(*over(model), in_vocabulary, targets, first);
  return CrossEntropyOverRanks::apply(in_vocabulary, targets, first, over(model));
}

at::Tensor own_tokens(const specs::Split& split, const at::Tensor& of_sample) {
  if (split.context == 1) return of_sample;
  const int64_t part = of_sample.size(1) / (2 * split.context);
  const auto at_part = [&](int64_t number) { return of_sample.narrow(1, number * part, part); };
  return at::cat({at_part(split.context_index), at_part(2 * split.context - 1 - split.context_index)}, 1);
}

namespace {

// All-gathers what a context-parallel rank has of several tensors [B, T, ...] to those of the whole sequence,
// in order. In backward, their gradients are reduce-scattered. Together they are [c, tensor, B, first or
// second part, T / 2, ...]; the second parts of the ranks are in reverse order.
struct GatherSequence : torch::autograd::Function<GatherSequence> {
  static variable_list forward(AutogradContext* ctx, const at::Tensor& keys, const at::Tensor& values,
                               const c10::intrusive_ptr<OfModel>& of) {
    keep(ctx, of);
    const at::Tensor all = gathered(*of, at::stack({keys, values})).view(shape_of_all(*of, keys, 1));
    variable_list whole;
    for (const int64_t which : {0, 1}) {
      const at::Tensor one = all.select(1, which);
      const at::Tensor parts = at::cat({one.select(2, 0), one.select(2, 1).flip(0)});  // [2 c, B, T / 2, ...]
      whole.push_back(parts.transpose(0, 1).flatten(1, 2));
    }
    return whole;
  }
  static variable_list backward(AutogradContext* ctx, variable_list outputs) {
    const OfModel& of = kept(ctx);
    const int64_t ranks = ranks_of(of);
    const at::Tensor all = at::empty(shape_of_all(of, outputs[0], ranks), outputs[0].options());
    for (const int64_t which : {0, 1}) {
      const at::Tensor parts = outputs[which].unflatten(1, {2 * ranks, -1}).transpose(0, 1);
      all.select(1, which).select(2, 0).copy_(parts.narrow(0, 0, ranks));
      all.select(1, which).select(2, 1).copy_(parts.narrow(0, ranks, ranks).flip(0));
      outputs[which].reset();
    }
    const at::Tensor own = scattered_sum(of, all).view({2, all.size(2), -1, all.size(5), all.size(6)});
    return {own[0], own[1], {}};
  }

 private:
  // x has the tokens of `shares` ranks.
  static std::vector<int64_t> shape_of_all(const OfModel& of, const at::Tensor& x, int64_t shares) {
    return {ranks_of(of), 2, x.size(0), 2, x.size(1) / (2 * shares), x.size(2), x.size(3)};
  }
};

}  // namespace

std::pair<at::Tensor, at::Tensor> of_whole_sequence(const Model& model, const at::Tensor& keys,
                                                    const at::Tensor& values) {
  if (model.table().split.context == 1) return {keys, values};
  const variable_list whole = GatherSequence::apply(keys, values, over(model, Dimension::context));
  return {whole[0], whole[1]};
}

namespace {

// Moves the sharded dimension to the front, as [pieces, size of one piece, ...].
at::Tensor by_pieces(const at::Tensor& value, const specs::TensorShard& shard) {
  return value.movedim(shard.dim, 0).unflatten(0, {shard.pieces, -1});
}

at::Tensor from_pieces(const at::Tensor& pieces, const specs::TensorShard& shard) {
  return pieces.flatten(0, 1).movedim(0, shard.dim).contiguous();
}

}  // namespace

// A rank's shard has a part of every piece (of queries, keys and values, for example). The last ranks may
// have fewer elements, and zeros instead.
at::Tensor own_part(const at::Tensor& whole, const specs::ParameterSpec& spec) {
  if (!spec.shard) return whole;
  const specs::TensorShard& shard = *spec.shard;
  const at::Tensor pieces = by_pieces(whole, shard);  // [pieces, each, ...]
  const int64_t each = spec.shape[static_cast<size_t>(shard.dim)] / shard.pieces;
  const int64_t first = shard.index * each, own = std::min(each, pieces.size(1) - first);
  std::vector<int64_t> shape = pieces.sizes().vec();
  shape[1] = each;
  const at::Tensor padded = at::zeros(shape, whole.options());
  padded.narrow(1, 0, own).copy_(pieces.narrow(1, first, own));
  return from_pieces(padded, shard);
}

at::Tensor assembled(const at::Tensor& parts, const specs::ParameterSpec& spec) {
  if (!spec.shard) return parts;
  const specs::TensorShard& shard = *spec.shard;
  std::vector<at::Tensor> pieces;
  for (int64_t rank = 0; rank < shard.ranks; ++rank) pieces.push_back(by_pieces(parts[rank], shard));
  return from_pieces(at::cat(pieces, 1).narrow(1, 0, shard.whole / shard.pieces), shard);
}

}  // namespace shardmark
