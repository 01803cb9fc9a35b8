// The state of a training run on one rank: the memory of its strategy's program, the model that is bound to
// it, and the optimizer of what the rank owns.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "executor/bound_program.h"
#include "executor/optim/optimizer.h"
#include "strategies/strategy.h"

namespace shardmark {

struct StateContext {
  Model& model;
  Communicator& comm;
  Choice optimizer;  // resolved
  int64_t seed = 1;
  std::optional<Precision> precision = {};     // none: everything has the model's type
  specs::Mesh mesh = {};                       // of all ranks
  std::vector<specs::ModelTable> stages = {};  // [stage]: its part of the model; empty: one stage
  Precision types() const { return precision.value_or(uniform(model.dtype())); }
};

// Note [State]
// The state of a training run is its parameters and buffers by their own names, and the optimizer's state as
// "optimizer.exp_avg.<parameter>" and "optimizer.num_updates". Tensors are exchanged whole, one group at a
// time, so that any strategy can read what another one wrote, on any number of ranks. What a step leaves for
// the next one in addition (strategies::Buffer::carried) belongs to one rank each, as
// "reduction.residual.7.rank1". Only the same program on the same number of ranks can continue from it, so
// that it is loaded separately. None of these functions may throw, because the other ranks would wait. Ranks
// that do not need the tensors pass an empty function.
enum class State { weights, all };  // all: also the optimizer's
// The tensor is on the CPU, and the visitor may keep it.
using StateVisitor = std::function<void(const std::string& name, const at::Tensor& value)>;
// Returns the whole tensor of this name, in any floating-point type. It is called on rank 0 alone.
using StateReader = std::function<at::Tensor(const std::string& name)>;

// The programs of a strategy, which share one set of buffers.
struct Programs {
  strategies::Program step, step_with_norm, evaluation;
  std::vector<strategies::ProcessGroupUse> process_groups() const;  // of all three
};
Programs programs_of(const Choice& strategy, strategies::StepInput input);

class TrainingState {
 public:
  // Allocates the buffers, binds the model to them, and draws the initial values. A rank may throw alone.
  // `process_groups` must have the process groups of these programs. The context's references must outlive
  // this.
  TrainingState(const StateContext& context, Programs programs,
                std::shared_ptr<const ProcessGroups> process_groups);

  // Brings the parameters that ranks own to where blocks see them. To be called before anything else, when
  // all ranks are set up. Collective.
  void publish();

  const strategies::Program& program() const { return step_.program(); }
  BoundProgram& step(bool with_norm) { return with_norm ? step_with_norm_ : step_; }
  BoundProgram& evaluation() { return evaluation_; }
  Optimizer& optimizer() { return *optimizer_; }
  Communicator& comm() const { return comm_; }
  // The ranks that have the same part of the model.
  Communicator& copies() { return process_groups_->of({program().copies}); }
  Model& model() { return model_; }
  const Model& model() const { return model_; }
  // A key for random numbers, equal on ranks that compute with the same activations.
  uint64_t key_of_draws(int64_t seed) const;
  const specs::Mesh& mesh() const { return mesh_; }
  const ProgramMemory& memory() const { return memory_; }
  at::Tensor squares() const { return memory_.at(strategies::kSquares).squeeze(0); }

  // Buffers that must be bit-equal on all ranks between steps, for checks. Collective, because parameters
  // that forward would gather are gathered first.
  std::vector<at::Tensor> replicated();
  // The rest of the same buffers: parameters of experts, which have the same bits on the ranks that have the
  // same experts.
  std::vector<at::Tensor> of_own_experts();

  // Whether what this rank owns, and its buffers, are free of NaN and infinity. To be called between steps.
  bool is_finite();

  // Note [State]. To be called between steps. Collective. `visit` is called on each rank that passes one,
  // with rank 0's buffers on rank 0.
  void visit(State what, const StateVisitor& visit);
  void load(State what, const StateReader& read);

  // What this rank owns of the state, as flat views of its memory, and what it has for itself (buffers,
  // single numbers, residuals). The names are the same on all ranks that hold the same values.
  struct Own {
    std::string name;
    at::Tensor values;
    std::vector<int> holders;  // the ranks that hold these values, in order; this one is among them
    bool of_model = true;      // false: buffers and residuals, which may differ between copies of the model
  };
  std::vector<Own> own();

  // What a step leaves for the next one, of all ranks. The order is the same on each.
  struct Carried {
    std::string name;
    at::Tensor own;   // this rank's own tensor, even if the entry is another rank's
    int rank;         // the rank whose entry it is
    bool replicated;  // all ranks have the same bits
  };
  std::vector<Carried> carried() const;
  void load_carried(const StateReader& read);  // like load()

 private:
  using Parts = std::vector<std::vector<at::Tensor>>;  // [group][segment], may be empty
  struct Kind {
    std::string prefix;
    at::ScalarType type;
    Parts parts;
  };
  void wait_all();
  std::vector<Kind> kinds(State what) const;
  Parts parts_of(const std::vector<at::Tensor>& shards) const;
  at::Tensor gathered(size_t group, const std::vector<at::Tensor>& parts);
  at::Tensor of_all_shards(const at::Tensor& own, const specs::ParameterSpec& spec);
  void visit_group(const Kind& kind, size_t stage, size_t group, const StateVisitor& visit);
  void load_group(const Kind& kind, size_t stage, size_t group, const StateReader& read);
  const specs::ModelTable& table_of(size_t stage) const;
  bool is_own(size_t stage) const;
  void send_from(size_t stage, const at::Tensor& value);

  Model& model_;
  Communicator& comm_;
  const specs::Mesh mesh_;
  const std::vector<specs::ModelTable> stages_;
  std::shared_ptr<const ProcessGroups> process_groups_;
  ProgramMemory memory_;
  std::unique_ptr<ReductionKernels> reduction_;
  BoundProgram step_, step_with_norm_, evaluation_;
  std::unique_ptr<Optimizer> optimizer_;
};

bool is_finite(const at::Tensor& values);

// Copies rank 0's value to all ranks. Collective.
void broadcast_value(Communicator& comm, const at::Tensor& value);

// Copies the buffers that forward changes on each rank from the first rank among those with the same part of
// the model. To be called before an evaluation. Collective.
void broadcast_buffers(Model& model, Communicator& copies);

}  // namespace shardmark
