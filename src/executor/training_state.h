// What a rank holds of a training: the memory of its strategy's program, the model bound to it, and the
// optimizer over what the rank owns.
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
  std::optional<Precision> precision = {};     // none: everything in the model's type
  specs::Mesh mesh = {};                       // of all ranks
  std::vector<specs::ModelTable> stages = {};  // [stage]: its part of the model; none: it is whole
  Precision types() const { return precision.value_or(uniform(model.dtype())); }
};

// Note [State]
// What training goes on from: parameters and buffers by their own names, and the optimizer's state as
// "optimizer.exp_avg.<parameter>" and "optimizer.num_updates". Tensors travel whole, one group at a time, so
// that what one strategy wrote any other can read, on any number of ranks. What a step carries over to the
// next one beside these (strategies::Buffer::carried) is each rank's own, "reduction.residual.7.rank1": only
// the same program on as many ranks goes on from it, so it is loaded by itself. No function may throw: the
// other ranks would wait. Ranks that have nothing to do with the tensors give an empty function.
enum class State { weights, all };  // all: the optimizer's too
// The tensor is on the CPU, and the visitor's to keep.
using StateVisitor = std::function<void(const std::string& name, const at::Tensor& value)>;
// The whole tensor of this name, of any floating type; asked for on rank 0 alone.
using StateReader = std::function<at::Tensor(const std::string& name)>;

// The programs of a strategy, for one set of memory.
struct Programs {
  strategies::Program step, step_with_norm, evaluation;
  std::vector<strategies::TeamUse> teams() const;  // of all three
};
Programs programs_of(const Choice& strategy, strategies::StepInput input);

class TrainingState {
 public:
  // Allocates, binds the model, draws the initial values: a rank may throw alone. teams: of these programs.
  // The context's references must outlive this.
  TrainingState(const StateContext& context, Programs programs, std::shared_ptr<const Teams> teams);

  // Once all ranks are there and before anything else: what they own goes where blocks see it. Collective.
  void publish();

  const strategies::Program& program() const { return step_.program(); }
  BoundProgram& step(bool with_norm) { return with_norm ? step_with_norm_ : step_; }
  BoundProgram& evaluation() { return evaluation_; }
  Optimizer& optimizer() { return *optimizer_; }
  Communicator& comm() const { return comm_; }
  Communicator& copies() { return teams_->of({program().copies}); }  // have the same part of the model
  Model& model() { return model_; }
  const Model& model() const { return model_; }
  uint64_t key_of_draws(int64_t seed) const;  // the same on ranks that compute with the same activations
  const specs::Mesh& mesh() const { return mesh_; }
  const ProgramMemory& memory() const { return memory_; }
  at::Tensor squares() const { return memory_.at(strategies::kSquares).squeeze(0); }

  // State that must be bit-equal on all ranks between steps; for checks. Collective.
  std::vector<at::Tensor> replicated();

  // Between steps: whether no NaN and no infinity is in what this rank owns, and in its buffers.
  bool is_finite();

  // Between steps; Note [State]. Collective. visit: called on each rank that gives one, with rank 0's buffers
  // on rank 0.
  void visit(State what, const StateVisitor& visit);
  void load(State what, const StateReader& read);

  // What a step carries over to the next one, of all ranks, in the same order on each.
  struct Carried {
    std::string name;
    at::Tensor own;   // this rank's, whose ever it is
    int rank;         // whose it is
    bool replicated;  // the other ranks have the same
  };
  std::vector<Carried> carried() const;
  void load_carried(const StateReader& read);  // as load()

 private:
  using Parts = std::vector<std::vector<at::Tensor>>;  // [group][segment], maybe empty
  struct Kind {
    std::string prefix;
    at::ScalarType type;
    Parts parts;
  };
  void wait_all();
  std::vector<Kind> kinds(State what) const;
  Parts parts_of(const std::vector<at::Tensor>& shards) const;
  at::Tensor gathered(size_t group, const std::vector<at::Tensor>& parts);
  at::Tensor of_tensor_ranks(const at::Tensor& own, const specs::ParameterSpec& spec);
  void visit_group(const Kind& kind, size_t stage, size_t group, const StateVisitor& visit);
  void load_group(const Kind& kind, size_t stage, size_t group, const StateReader& read);
  const specs::ModelTable& table_of(size_t stage) const;
  bool is_own(size_t stage) const;
  void send_from(size_t stage, const at::Tensor& value);

  Model& model_;
  Communicator& comm_;
  const specs::Mesh mesh_;
  const std::vector<specs::ModelTable> stages_;
  std::shared_ptr<const Teams> teams_;
  ProgramMemory memory_;
  std::unique_ptr<ReductionKernels> reduction_;
  BoundProgram step_, step_with_norm_, evaluation_;
  std::unique_ptr<Optimizer> optimizer_;
};

bool is_finite(const at::Tensor& values);

// Rank 0's value for all. Collective.
void broadcast_value(Communicator& comm, const at::Tensor& value);

// What forward changes on each rank by itself: the first rank's for all that have the same part of the model.
// Before evaluation. Collective.
void broadcast_buffers(Model& model, Communicator& copies);

}  // namespace shardmark
