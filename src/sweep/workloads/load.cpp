// The loads that may run together with a collective: one class for each choice of the axis `beside`.
#include "sweep/workloads/load.h"

#include <ATen/ops/mm.h>
#include <c10/core/GradMode.h>

#include "base/error.h"
#include "comm/verification.h"
#include "data/source.h"
#include "models/model.h"
#include "specs/specs.h"
#include "strategies/choice_kinds.h"

namespace shardmark {
namespace {

class MatrixProduct final : public SideLoad {
 public:
  MatrixProduct(const Options& options, at::Device device)
      : m_(options.at("m").get<int64_t>()),
        n_(options.at("n").get<int64_t>()),
        k_(options.at("k").get<int64_t>()),
        how_(at::device(device).dtype(element_type(options.at("dtype").get<std::string>()))) {}
  void allocate() override {
    a_ = at::ones({m_, k_}, how_);
    b_ = at::ones({k_, n_}, how_);
    out_ = at::empty({m_, n_}, how_);
  }
  void unit() override { at::mm_out(out_, a_, b_); }

 private:
  int64_t m_, n_, k_;
  at::TensorOptions how_;
  at::Tensor a_, b_, out_;
};

class Copy final : public SideLoad {
 public:
  Copy(const Options& options, at::Device device)
      : numel_(std::max<int64_t>(options.at("bytes").get<int64_t>() / 4, 1)),
        how_(at::device(device).dtype(at::kFloat)) {}
  void allocate() override {
    from_ = at::ones({numel_}, how_);
    to_ = at::zeros({numel_}, how_);
  }
  void unit() override { to_.copy_(from_); }

 private:
  int64_t numel_;
  at::TensorOptions how_;
  at::Tensor from_, to_;
};

// Forward and backward of the model's middle block. Its input is the output of the blocks before it for a
// synthetic batch.
class ModelBlock final : public SideLoad {
 public:
  ModelBlock(const Options& options, const Point& point, at::Device device)
      : choice_(choice_from_text(options.at("model").get<std::string>())),
        batch_size_(options.at("batch").get<int64_t>()),
        seed_(point.seed),
        device_(device) {}
  void allocate() override {
    model_ = make_model(choice_, at::kFloat, device_);
    materialize(*model_, seed_);
    const auto source = make_source(kind_default("synthetic"), {model_->table().sample, at::kFloat, seed_});
    std::vector<Draw> draws(static_cast<size_t>(batch_size_));
    for (size_t i = 0; i < draws.size(); ++i) draws[i].index = static_cast<int64_t>(i);
    batch_ = model_->prepared(source->fetch(draws).on(device_));
    const c10::AutoGradMode no_grad(false);
    input_ = batch_.inputs;
    middle_ = model_->blocks().size() / 2;
    for (size_t i = 0; i < middle_; ++i) input_ = model_->blocks()[i].forward(input_, batch_);
    input_ = input_.detach();
  }
  void unit() override {
    const at::Tensor input = input_.detach().requires_grad_(input_.is_floating_point());
    const at::Tensor out = model_->blocks()[middle_].forward(input, batch_);
    out.backward(at::ones_like(out));
  }

 private:
  static Choice kind_default(const std::string& name) {
    return resolve({name}, data_kind().options(name), "data");
  }
  Choice choice_;
  int64_t batch_size_, seed_;
  at::Device device_;
  std::unique_ptr<Model> model_;
  Batch batch_;
  at::Tensor input_;
  size_t middle_ = 0;
};

class OtherCollective final : public SideLoad {
 public:
  OtherCollective(const Options& options, const WorkloadContext& context)
      : what_(specs::collective(options.at("operation").get<std::string>()).what),
        numel_(std::max<int64_t>(options.at("bytes").get<int64_t>() / 4, context.comm.size())),
        comm_(context.comm.split(0, context.comm.rank())) {}
  void allocate() override {
    call_ = prepare(*comm_, what_, numel_, at::kFloat, ReduceOp::sum, /*in_place=*/false);
  }
  void unit() override { comm_->start(call_).wait(); }
  std::shared_ptr<void> queue() override { return comm_->in_order(); }

 private:
  Collective what_;
  int64_t numel_;
  std::unique_ptr<Communicator> comm_;
  Call call_;
};

}  // namespace

std::unique_ptr<SideLoad> make_load(const WorkloadContext& context) {
  const Choice choice = choice_from_text(context.point.collective.beside);
  const at::Device device = context.comm.device();
  if (choice.name == "matmul") return std::make_unique<MatrixProduct>(choice.options, device);
  if (choice.name == "copy") return std::make_unique<Copy>(choice.options, device);
  if (choice.name == "block") return std::make_unique<ModelBlock>(choice.options, context.point, device);
  ENSURE(choice.name == "collective", "no load " + choice.name);
  return std::make_unique<OtherCollective>(choice.options, context);
}

}  // namespace shardmark
