// AdamW by torch's fused kernel. Source of the formula: Loshchilov and Hutter, ICLR 2019, algorithm 2.
#include <ATen/ops/_fused_adamw.h>

#include "base/registry.h"
#include "optim/entry.h"

namespace shardmark {
namespace {

class AdamW final : public Optimizer {
 public:
  AdamW(const Options& options, std::vector<FlatPiece> pieces)
      : lr_(options.at("lr")),
        beta1_(options.at("beta1")),
        beta2_(options.at("beta2")),
        eps_(options.at("eps")),
        weight_decay_(options.at("weight_decay")),
        first_moments_(zeros_like_pieces(pieces)),
        second_moments_(zeros_like_pieces(pieces)) {
    for (const auto& piece : pieces) {
      parameters_.push_back(piece.parameters);
      gradients_.push_back(piece.gradients);
      steps_.push_back(at::zeros({}, piece.parameters.options().dtype(at::kFloat)));
    }
  }

  void step(const UpdateControl& control) override {
    for (auto& step : steps_) {  // the kernel does not count
      if (control.found_inf.defined())
        step.add_(1 - control.found_inf);
      else
        step.add_(1);
    }
    at::_fused_adamw_(parameters_, gradients_, first_moments_, second_moments_, /*max_exp_avg_sqs=*/{},
                      steps_, lr_, beta1_, beta2_, weight_decay_, eps_, /*amsgrad=*/false,
                      /*maximize=*/false, optional(control.divisor), optional(control.found_inf));
  }

  void set_learning_rate(double lr) override { lr_ = lr; }

  void visit_state(const std::function<void(const std::string&, size_t, at::Tensor&)>& visit) override {
    for (size_t piece = 0; piece < parameters_.size(); ++piece) {
      visit("exp_avg", piece, first_moments_[piece]);
      visit("exp_avg_sq", piece, second_moments_[piece]);
      visit("step", piece, steps_[piece]);
    }
  }

 private:
  double lr_, beta1_, beta2_, eps_, weight_decay_;
  std::vector<at::Tensor> parameters_, gradients_, first_moments_, second_moments_, steps_;
};

std::unique_ptr<Optimizer> make(const Options& options, std::vector<FlatPiece> pieces) {
  return std::make_unique<AdamW>(options, std::move(pieces));
}

const Registration<OptimizerEntry> registered{"adamw", {"AdamW, fused", make}};

}  // namespace
}  // namespace shardmark
