// Layers of ranks that share a model's blocks and sequences: what they exchange on the way into a region of
// cut channels and out of it (Megatron-LM's f and g, and their mirrors for sequence_parallel), embedding and
// cross-entropy over cut words, keys and values of a whole sequence. With one rank each is the plain layer.
// Sources: Shoeybi et al. 2019, section 3; Korthikanti et al. 2022, section 4.2; Grattafiori et al. 2024,
// section 3.3.2. B batch, T tokens of a sample that the rank has, C width, V words of the rank, c context.
#pragma once

#include "models/model.h"

namespace shardmark {

// Of activations [N, C] that all tensor ranks have, or a part of the tokens each: all tokens. Backward: the
// sum of their gradients.
at::Tensor enter_region(const Model& model, const at::Tensor& x);
// The sum over tensor ranks of [N, C], on all or each rank's part of the tokens.
at::Tensor leave_region(const Model& model, const at::Tensor& x);

// Of rows [N, ...] those of this rank's part of the tokens.
at::Tensor own_rows(const Model& model, const at::Tensor& rows);

// The rows of ids [B, T] in a table [V, C] cut by words: [B T, C], or this rank's part of the tokens.
at::Tensor embedded(const Model& model, const at::Tensor& table, const at::Tensor& ids);

// Of logits [N, V] of this rank's words, of `words` in all: the mean cross-entropy over targets, or their
// scores.
at::Tensor loss_over_cut_words(const Model& model, const at::Tensor& logits, const Batch& batch,
                               int64_t words);

// [B, T, ...] of all tokens of a sample: those of this rank, parts r and 2c - 1 - r of 2c, so that ranks have
// equally much of a causal mask.
at::Tensor own_tokens(const specs::Split& split, const at::Tensor& of_sample);
// Keys and values [B, T, K, D]: of the whole sequence, [B, c T, K, D] each.
std::pair<at::Tensor, at::Tensor> of_whole_sequence(const Model& model, const at::Tensor& keys,
                                                    const at::Tensor& values);

// A tensor-parallel rank's part of a parameter of `spec.whole_shape()`, and the whole of the parts of all
// ranks [ranks, spec.shape...]. Itself where it is not cut.
at::Tensor own_part(const at::Tensor& whole, const specs::ParameterSpec& spec);
at::Tensor assembled(const at::Tensor& parts, const specs::ParameterSpec& spec);

}  // namespace shardmark
