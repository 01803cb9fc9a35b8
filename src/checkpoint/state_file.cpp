// Writes the training state under any sharding, checks that a file fits a model, and reads it.
#include "checkpoint/state_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/units.h"
#include "comm/in_step.h"
#include "comm/nccl/lost_gpu.h"
#include "executor/training_state.h"
#include "specs/layout.h"
#include "specs/specs.h"
#include "strategies/saved_state.h"
#include "strategies/strategy.h"

namespace shardmark {
namespace {

constexpr const char* kPrefix = "transformer.";
constexpr const char* kOptimizer = "optimizer.";
// Prefix of the state that a reduction carries from step to step (residuals), and the key in the metadata
// that tells which reduction it was, on how many ranks.
constexpr const char* kReduction = "reduction";
// Kinds of tensors as large as a parameter: the parameter and up to three optimizer states.
constexpr int64_t kMostKinds = 4;

bool is_stack(const std::string& name) { return name.find('*') != std::string::npos; }

std::string name_in_stack(std::string name, size_t index) {
  return name.replace(name.find('*'), 1, std::to_string(index));
}

// The tensors in a file that hold a parameter, with their shapes: one tensor, or one for each element of a
// stack (specs::ParameterSpec).
std::vector<std::pair<std::string, std::vector<int64_t>>> tensors_of(const specs::ParameterSpec& spec) {
  if (!is_stack(spec.name)) return {{spec.name, spec.shape}};
  const std::vector<int64_t> shape(spec.shape.begin() + 1, spec.shape.end());
  std::vector<std::pair<std::string, std::vector<int64_t>>> all;
  for (size_t i = 0; std::cmp_less(i, spec.shape.front()); ++i)
    all.emplace_back(name_in_stack(spec.name, i), shape);
  return all;
}

int64_t header_room(const specs::ModelTable& table) {
  int64_t room = 4096;
  for (const auto& group : table.groups)
    for (const auto& spec : group.parameters)
      for (const auto& [name, shape] : tensors_of(spec))
        room += kMostKinds * SafetensorsWriter::header_bytes("optimizer.exp_avg_sq." + name);
  for (const auto& spec : table.buffers) room += SafetensorsWriter::header_bytes(spec.name);
  return room;
}

// For the entries of what a reduction carries.
int64_t residual_room(const Point& point) {
  int64_t room = 0;
  const strategies::RankStep step(point);
  for (const auto& buffer : strategies::strategy(point.training.strategy.name).step(step.input()).buffers)
    if (buffer.carried)
      room += (buffer.is_replicated() && point.training.tensor == 1 ? 1 : point.ranks) *
              SafetensorsWriter::header_bytes(buffer.name);
  return room;
}

// Tensors that other programs write besides the weights: masks, rotary frequencies, counters.
bool is_redundant(const std::string& name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
         name.ends_with(".rotary_emb.inv_freq") || name.ends_with(".num_batches_tracked") ||
         name.starts_with(kOptimizer) || name.starts_with(kReduction + std::string("."));
}

// The parameter that an optimizer state belongs to: "wte.weight" for "optimizer.exp_avg.wte.weight". Empty
// for a scalar of the whole run.
std::string parameter_of(const std::string& state) {
  const size_t kind_end = state.find('.', std::char_traits<char>::length(kOptimizer));
  return kind_end == std::string::npos ? "" : state.substr(kind_end + 1);
}

std::string name_in(const SafetensorsFile& file, const std::string& name) {
  return file.entries().contains(name) ? name : kPrefix + name;
}

// Whether the tensor is a head tied to the token embedding, which is then redundant in the file. A tied
// embedding is in the root group.
bool is_tied_head(const SafetensorsFile& file, const specs::ModelTable& table, const std::string& name) {
  if (name != "lm_head.weight" || !specs::is_root(table.groups.front())) return false;
  const std::string tokens = name_in(file, table.groups.front().parameters.front().name);
  return file.type_of(name) == file.type_of(tokens) && at::equal(file.read(name), file.read(tokens));
}

// Names the reduction that carries a residual from step to step, and the number of ranks; empty if there is
// none.
std::string reduction_of(const TrainingState& state, int ranks) {
  if (state.carried().empty()) return "";
  return fmt::format("{} on {} rank{}", to_text(state.program().reduction), ranks, ranks == 1 ? "" : "s");
}

bool holds(const SafetensorsFile& file, const std::vector<TrainingState::Carried>& carried) {
  return std::all_of(carried.begin(), carried.end(), [&](const auto& entry) {
    const auto found = file.entries().find(entry.name);
    return found != file.entries().end() && found->second.shape == entry.own.sizes().vec();
  });
}

// A residual belongs to the gradients of one rank and to the elements of one bucket. It can only go on with
// the same reduction, on as many ranks, with the same buckets. Rank 0 alone sees the file and decides; the
// others learn its decision by a broadcast, because loading is collective.
void load_carried(TrainingState& state, Communicator& comm, const SafetensorsFile* file,
                  const StateReader& read, bool warns) {
  const std::string now = reduction_of(state, comm.size());
  std::string before;
  if (file != nullptr && file->metadata().contains(kReduction)) before = file->metadata().at(kReduction);
  if (now.empty()) {
    const auto& buffers = state.program().buffers;
    const bool carries = std::any_of(buffers.begin(), buffers.end(), [](const auto& b) { return b.carried; });
    if (file == nullptr || !warns) return;
    if (carries)
      log_warning("the residual of " + to_text(state.program().reduction) +
                  " starts empty: checkpoints of pipelines do not hold it");
    else if (!before.empty())
      log_warning("the checkpoint's residual of " + before + " is left out: this run has none");
    return;
  }
  const bool same = before == now;
  const at::Tensor goes_on =
      at::full({}, file != nullptr && same && holds(*file, state.carried()), at::kFloat);
  broadcast_value(comm, goes_on);
  if (goes_on.item<float>() != 0) return state.load_carried(read);
  if (file == nullptr) return;
  log_warning(fmt::format("the residual of {} starts empty: the checkpoint holds {}{}", now,
                          before.empty() ? "none" : "that of " + before, same ? ", in other buckets" : ""));
}

void load_loss_scale(const GradientGuard& guard, Communicator& comm, const SafetensorsFile* file,
                     const StateReader& read) {
  const auto state = guard.state();
  const bool saved = file != nullptr && std::all_of(state.begin(), state.end(), [&](const auto& entry) {
                       return file->entries().contains(kOptimizer + entry.first);
                     });
  if (file != nullptr && !saved)
    log_warning(fmt::format("the checkpoint holds no loss scale of fp16: it starts afresh at {}",
                            guard.loss_scale().item<double>()));
  for (const auto& [name, value] : state) {
    if (saved) value.copy_(read(kOptimizer + name));
    broadcast_value(comm, value);
  }
}

}  // namespace

StateFile::StateFile(const std::string& path, int64_t header_room, TextMap metadata)
    : metadata_(std::move(metadata)) {
  for (const auto& [key, value] : metadata_)
    header_room += SafetensorsWriter::header_bytes(key) + 2 * std::ssize(value);  // quotes are escaped
  attempt([&] { writer_.emplace(path, header_room); });
}

// After the first error, everything that follows does nothing. The other ranks still take part in the
// collectives that bring the tensors here.
void StateFile::attempt(const std::function<void()>& body) {
  if (!trouble_.empty()) return;
  try {
    body();
  } catch (const std::exception& error) {
    end_job_if_gpu_is_lost(error.what());
    trouble_ = first_line(error.what());
    writer_.reset();
  }
}

void StateFile::add(const std::string& name, const at::Tensor& value) {
  attempt([&] {
    if (!is_stack(name)) return writer_->add(name, value);
    for (int64_t i = 0; i < value.size(0); ++i)
      writer_->add(name_in_stack(name, static_cast<size_t>(i)), value[i]);
  });
}

std::string StateFile::finish(bool sync) {
  attempt([&] { writer_->finish(metadata_, sync); });
  return trouble_;
}

void visit_whole_state(const TrainingSetup& setup, State what, const StateVisitor& visit) {
  setup.state->visit(what, visit);
  if (what != State::all || !visit) return;
  for (const auto& [name, value] : setup.guard->state())
    visit(kOptimizer + name, value.to(at::kCPU, at::kFloat, /*non_blocking=*/false, /*copy=*/true));
}

std::unique_ptr<StateFile> whole_state_file(const std::string& path, const TrainingSetup& setup, State what,
                                            TextMap metadata) {
  int64_t room = header_room(setup.whole);
  if (what == State::all) {
    const std::string reduction = reduction_of(*setup.state, setup.state->comm().size());
    if (!reduction.empty()) metadata[kReduction] = reduction;
    for (const auto& entry : setup.state->carried()) room += SafetensorsWriter::header_bytes(entry.name);
  }
  return std::make_unique<StateFile>(path, room, std::move(metadata));
}

std::string write_state(const std::string& path, const TrainingSetup& setup, State what,
                        const TextMap& metadata, bool writes) {
  if (!writes) {
    visit_whole_state(setup, what, {});
    return {};
  }
  const auto file = whole_state_file(path, setup, what, metadata);
  visit_whole_state(setup, what,
                    [&](const std::string& name, const at::Tensor& value) { file->add(name, value); });
  return file->finish();
}

void require_room(const std::string& directory, int64_t bytes, const std::string& flag,
                  const std::string& what) {
  struct statvfs disk;
  if (::statvfs(directory.c_str(), &disk) != 0 || disk.f_blocks == 0) return;  // the system does not tell
  const double room = static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize);
  if (static_cast<double>(bytes) > room)
    throw UsageError(
        fmt::format("{}: {} need {}, and the disk of {} has {} left; make room or name another place", flag,
                    what, format_bytes(static_cast<double>(bytes)), directory, format_bytes(room)));
}

int64_t state_bytes(const Point& point, State what) {
  const TrainingPoint& t = point.training;
  const specs::SharedTable table = specs::model_table(t.model);
  const auto bytes = specs::element_bytes(t.precision, t.reduce_dtype);
  if (what == State::all)
    return strategies::whole_state_bytes(point) + header_room(*table) + residual_room(point);
  int64_t sum = table->num_parameters() * bytes.master + header_room(*table);
  for (const auto& spec : table->buffers) sum += c10::multiply_integers(spec.shape) * bytes.compute;
  return sum;
}

void load_state(const TrainingSetup& setup, Communicator& comm, State what, const SafetensorsFile* file,
                bool warns) {
  // Thrown only when the other ranks no longer wait for what rank 0 reads.
  std::exception_ptr failure;
  const StateReader from_file = [&](const std::string& name) {
    try {
      return read_tensor(*file, name);
    } catch (const std::exception&) {
      failure = std::current_exception();
      // The other ranks wait for this tensor in a collective. They get zeros, and the error is thrown after
      // it.
      return at::zeros({});
    }
  };
  const StateReader read = file != nullptr ? from_file : StateReader{};
  const auto where = [] { return std::string("reading a state"); };
  in_step(comm.size(), where, [&] {
    setup.state->load(what, read);
    if (what != State::all) return;
    load_loss_scale(*setup.guard, comm, file, read);
    load_carried(*setup.state, comm, file, read, warns);
  });
  if (failure) std::rethrow_exception(failure);
}

void check_model(const SafetensorsFile& file, const specs::ModelTable& table, const std::string& model_name) {
  const auto fail = [&](const std::string& what) {
    throw UsageError("'" + file.path() + "' is of another model than " + model_name + ": " + what);
  };
  // Three passes: every tensor of the model must be in the file, every optimizer state must have the shape
  // of its parameter, and nothing else may be in the file but what other programs are known to add.
  std::set<std::string> known;
  const auto check = [&](const std::string& name, const std::vector<int64_t>& shape) {
    const auto found = file.entries().find(name_in(file, name));
    if (found == file.entries().end()) fail("it has no " + name);
    if (found->second.shape != shape)
      fail(fmt::format("{} is [{}] in it, and [{}] in the model", name, fmt::join(found->second.shape, ", "),
                       fmt::join(shape, ", ")));
    static_cast<void>(file.type_of(found->first));
    known.insert(found->first);
  };
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const auto& group : table.groups)
    for (const auto& spec : group.parameters)
      for (const auto& [name, shape] : tensors_of(spec)) {
        check(name, shape);
        shapes[name] = shape;
      }
  for (const auto& spec : table.buffers) check(spec.name, spec.shape);
  shapes[""] = {};  // the key of a scalar of the whole run
  // Optimizer states are checked here, because no rank may fail alone while all of them load.
  for (const auto& [name, entry] : file.entries())
    if (name.starts_with(kOptimizer) && shapes.contains(parameter_of(name)))
      check(name, shapes.at(parameter_of(name)));
  for (const auto& [name, entry] : file.entries())
    if (!known.contains(name) && !is_redundant(name) && !is_tied_head(file, table, name))
      fail("the model has no " + name + " of its own");
}

at::Tensor read_tensor(const SafetensorsFile& file, const std::string& name) {
  if (is_stack(name)) {
    // The file has the matrices of a stack one by one. Their number is that of the names that exist.
    std::vector<at::Tensor> all;
    do {
      all.push_back(read_tensor(file, name_in_stack(name, all.size())));
    } while (file.entries().contains(name_in(file, name_in_stack(name, all.size()))));
    return at::stack(all);
  }
  at::Tensor value = file.read(name_in(file, name));
  if (!is_finite(value))
    throw UsageError("'" + file.path() + "' holds a NaN or an infinity in " + name +
                     ", with which nothing can go on; start from another file");
  return value;
}

}  // namespace shardmark
