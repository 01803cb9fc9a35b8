// Writing under any sharding, matching with a model, reading.
#include "training/state_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <set>

#include "base/error.h"
#include "base/log.h"
#include "comm/nccl/lost_gpu.h"
#include "executor/training_state.h"
#include "specs/specs.h"

namespace shardmark {
namespace {

constexpr const char* kPrefix = "transformer.";
constexpr const char* kOptimizer = "optimizer.";
constexpr int64_t kMostKinds = 4;  // of tensors as large as a parameter: itself and the optimizer's

int64_t header_room(const specs::ModelTable& table, const TextMap& metadata) {
  int64_t room = 4096;
  for (const auto& group : table.groups)
    for (const auto& spec : group.parameters)
      room += kMostKinds * SafetensorsWriter::header_bytes("optimizer.exp_avg_sq." + spec.name);
  for (const auto& spec : table.buffers) room += SafetensorsWriter::header_bytes(spec.name);
  for (const auto& [key, value] : metadata)
    room += SafetensorsWriter::header_bytes(key) + 2 * std::ssize(value);  // quotes are escaped
  return room;
}

// What other programs write beside the weights: masks, a head tied to the embedding, counters.
bool is_redundant(const std::string& name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") || name == "lm_head.weight" ||
         name.ends_with(".num_batches_tracked") || name.starts_with(kOptimizer);
}

// What state is of: wte.weight of "optimizer.exp_avg.wte.weight"; empty for a scalar of the whole run.
std::string parameter_of(const std::string& state) {
  const size_t kind_end = state.find('.', std::char_traits<char>::length(kOptimizer));
  return kind_end == std::string::npos ? "" : state.substr(kind_end + 1);
}

std::string name_in(const SafetensorsFile& file, const std::string& name) {
  return file.entries().contains(name) ? name : kPrefix + name;
}

}  // namespace

std::string write_state(const std::string& path, const TrainingSetup& setup, State what,
                        const TextMap& metadata, bool writes) {
  std::string trouble;
  std::optional<SafetensorsWriter> writer;
  const auto attempt = [&](const auto& body) {
    if (!writes || !trouble.empty()) return;
    try {
      body();
    } catch (const std::exception& error) {  // whatever it is: the other ranks are in a gather
      end_job_if_gpu_is_lost(error.what());
      trouble = first_line(error.what());
      writer.reset();
    }
  };
  attempt([&] { writer.emplace(path, header_room(setup.model->table(), metadata)); });
  const StateVisitor add = [&](const std::string& name, const at::Tensor& value) {
    attempt([&] { writer->add(name, value); });
  };
  setup.state->visit(what, writes ? add : StateVisitor{});
  if (what == State::all)
    for (const auto& [name, value] : setup.guard->state()) add(kOptimizer + name, value.cpu().to(at::kFloat));
  attempt([&] { writer->finish(metadata); });
  return trouble;
}

int64_t state_bytes(const Point& point, State what) {
  const TrainingPoint& t = point.training;
  const auto table = specs::model_spec(t.model.name).table(t.model.options);
  const auto bytes = specs::element_bytes(t.precision, t.reduce_dtype);
  const int64_t kinds =
      what == State::weights
          ? 1
          : 1 + specs::optimizer_specs().at(t.optimizer.name).state_elements(t.optimizer.options);
  int64_t sum = kinds * table.num_parameters() * bytes.master + header_room(table, {});
  for (const auto& spec : table.buffers) sum += c10::multiply_integers(spec.shape) * bytes.compute;
  return sum;
}

void load_state(const TrainingSetup& setup, Communicator& comm, State what, const StateReader& read) {
  setup.state->load(what, read);
  if (what != State::all) return;
  for (const auto& [name, value] : setup.guard->state()) {
    if (read) value.copy_(read(kOptimizer + name));
    broadcast_value(comm, value);
  }
}

void check_model(const SafetensorsFile& file, const specs::ModelTable& table, const std::string& model_name) {
  const auto fail = [&](const std::string& what) {
    throw UsageError("'" + file.path() + "' is of another model than " + model_name + ": " + what);
  };
  std::set<std::string> known;
  const auto check = [&](const std::string& name, const std::vector<int64_t>& shape) {
    const auto found = file.entries().find(name_in(file, name));
    if (found == file.entries().end()) fail("it has no " + name);
    if (found->second.shape != shape)
      fail(fmt::format("{} is [{}] in it, and [{}] in the model", name, fmt::join(found->second.shape, ", "),
                       fmt::join(shape, ", ")));
    known.insert(found->first);
  };
  for (const auto& group : table.groups)
    for (const auto& spec : group.parameters) check(spec.name, spec.shape);
  for (const auto& spec : table.buffers) check(spec.name, spec.shape);
  std::map<std::string, std::vector<int64_t>> shapes = {{"", {}}};
  for (const auto& group : table.groups)
    for (const auto& spec : group.parameters) shapes[spec.name] = spec.shape;
  for (const auto& [name, entry] : file.entries())  // no rank may fail while all of them load it
    if (name.starts_with(kOptimizer) && shapes.contains(parameter_of(name)))
      check(name, shapes.at(parameter_of(name)));
  for (const auto& [name, entry] : file.entries())
    if (!known.contains(name) && !is_redundant(name)) fail("the model has no " + name);
}

at::Tensor read_tensor(const SafetensorsFile& file, const std::string& name) {
  return file.read(name_in(file, name));
}

}  // namespace shardmark
