// Training state and weights as safetensors files. The tensors of GPT-2 and Llama have Hugging Face's names,
// so that weights can be exchanged in both directions.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "checkpoint/safetensors.h"
#include "executor/training_setup.h"

namespace shardmark {

// Writes the tensors of a state to a file. An error ends the file and is kept, because the other ranks may be
// in a collective: a full disk is no reason to stop training.
class StateFile {
 public:
  // header_room: for the tensors' names; that of the metadata is added.
  StateFile(const std::string& path, int64_t header_room, TextMap metadata);
  // A stack (specs::ParameterSpec) becomes one tensor for each of its elements. The value is on the CPU.
  void add(const std::string& name, const at::Tensor& value);
  // The file appears complete or not at all. Returns why it could not be written, or an empty text.
  std::string finish(bool sync = true);

 private:
  void attempt(const std::function<void()>& body);
  TextMap metadata_;
  std::optional<SafetensorsWriter> writer_;
  std::string trouble_;
};

// Calls visit(name, value on the CPU) for the tensors of the whole state. Collective; a rank that needs none
// of them passes an empty function.
void visit_whole_state(const TrainingSetup& setup, State what, const StateVisitor& visit);
// The file for them, with what load_state() needs to know added to `metadata`.
std::unique_ptr<StateFile> whole_state_file(const std::string& path, const TrainingSetup& setup, State what,
                                            TextMap metadata);

// Both together. Collective; `writes` is true on rank 0 only.
std::string write_state(const std::string& path, const TrainingSetup& setup, State what,
                        const TextMap& metadata, bool writes);
// Throws UsageError, which begins with the name of the flag or option, if the disk has less room left than
// `what` need.
void require_room(const std::string& directory, int64_t bytes, const std::string& flag,
                  const std::string& what);
// The size of such a file in bytes, or slightly more.
int64_t state_bytes(const Point& point, State what);
// Collective; afterwards rank 0 may throw alone. `file` is given on rank 0 only, and check_model() must have
// accepted it. If the file holds no loss scale, the loss scale starts afresh. If the residuals in it are of
// another reduction, another number of ranks or other buckets, residuals start empty. Both cases give a
// warning.
void load_state(const TrainingSetup& setup, Communicator& comm, State what, const SafetensorsFile* file,
                bool warns = true);

// Checks that the file holds every parameter and buffer of the model, with its shape and as floating-point
// numbers, and no others. Throws UsageError that names the first tensor that does not fit. model_name is used
// in the message.
void check_model(const SafetensorsFile& file, const specs::ModelTable& table, const std::string& model_name);

// Reads the tensor of this name, or of "transformer." plus this name, as Hugging Face writes models with a
// head. Throws UsageError if it contains NaN or infinity.
at::Tensor read_tensor(const SafetensorsFile& file, const std::string& name);

}  // namespace shardmark
