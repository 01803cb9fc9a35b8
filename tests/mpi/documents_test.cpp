// Tests samples that contain several packed documents: where documents begin, that a model computes each
// document as if it were alone, with the same result under every strategy, and how much memory that takes.
// RANKS 1 2
#include <numeric>

#include "device/meter.h"
#include "strategies/activations.h"
#include "tests/mpi/token_files.h"
#include "tests/mpi/training_fixture.h"

namespace shardmark {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const char* const kModels[] = {
    "gpt2(layers=2, width=12, heads=3, sequence=12, vocabulary=31)",
    "llama(layers=2, width=24, heads=6, kv_heads=2, inner=40, sequence=12, vocabulary=31, tied=false)"};

at::Tensor computed(const Model& model, const Batch& given) {
  const Batch batch = model.prepared(given);
  at::Tensor h = batch.inputs;
  for (const Block& block : model.blocks()) h = block.forward(h, batch);
  return h;
}

std::unique_ptr<Model> double_model(const char* choice, bool gpu_forms = false) {
  auto model = make_model(resolved_model(choice), at::kDouble, at::kCPU);
  model->gpu_forms = gpu_forms;
  materialize(*model, 1);
  return model;
}

std::map<std::string, at::Tensor> gradients(Model& model) {
  std::map<std::string, at::Tensor> all;
  for (const auto& group : model.table().groups)
    for (const auto& spec : group.parameters) {
      at::Tensor& gradient = model.parameter(spec.name).mutable_grad();
      all[spec.name] = std::exchange(gradient, {});
    }
  return all;
}

double difference(const at::Tensor& a, const at::Tensor& b) { return (a - b).abs().max().item<double>(); }

// The first sample has two documents, with 7 and 5 tokens. The second sample is one document.
TEST(PackedDocuments, AreComputedAsEachAlone) {
  at::manual_seed(3);
  const at::Tensor inputs = at::randint(31, {2, 12}, at::kLong),
                   targets = at::randint(31, {2, 12}, at::kLong);
  const at::Tensor twelve = at::arange(12, at::kLong);
  const at::Tensor positions = at::stack({at::cat({twelve.narrow(0, 0, 7), twelve.narrow(0, 0, 5)}), twelve});
  const auto alone = [&](int64_t sample, int64_t begin, int64_t length, bool has_targets) {
    const auto part = [&](const at::Tensor& all) {
      return all.narrow(0, sample, 1).narrow(1, begin, length);
    };
    return Batch{part(inputs), has_targets ? part(targets) : at::Tensor()};
  };
  for (const char* choice : kModels)
    for (const bool gpu_forms : {false, true}) {
      SCOPED_TRACE(choice);
      const auto model = double_model(choice, gpu_forms);
      Batch packed{inputs, {}, positions, /*masks_documents=*/true};
      const at::Tensor expected =
          at::cat({computed(*model, alone(0, 0, 7, false)), computed(*model, alone(0, 7, 5, false)),
                   computed(*model, alone(1, 0, 12, false))});
      EXPECT_LE(difference(computed(*model, packed), expected), 1e-10);
      packed.masks_documents = false;
      EXPECT_GE(difference(computed(*model, packed), expected), 1e-3) << "documents that see each other";

      packed.masks_documents = true;
      packed.targets = targets;
      computed(*model, packed).backward();
      const auto measured = gradients(*model);
      ((7 * computed(*model, alone(0, 0, 7, true)) + 5 * computed(*model, alone(0, 7, 5, true)) +
        12 * computed(*model, alone(1, 0, 12, true))) /
       24)
          .backward();
      for (const auto& [name, gradient] : gradients(*model))
        EXPECT_LE(difference(measured.at(name), gradient), 1e-10) << name;
    }
}

class Documents : public TokenFiles {
 protected:
  static std::vector<int64_t> positions(const DataSource& source, int64_t sample) {
    const at::Tensor positions = source.fetch({{0, 0}, {sample, 0}}).positions[1];
    return {positions.data_ptr<int64_t>(), positions.data_ptr<int64_t>() + positions.numel()};
  }
};

// The tokens are 0 3 6 ... 27 | 30 33 36 ... The second sample begins with the rest of a document.
TEST_F(Documents, BeginAfterAnEndOrWithABegin) {
  write("t.bin", file(20240520, 1, 51, 51));
  EXPECT_FALSE(source()->fetch({{0, 0}}).positions.defined());
  const auto begin = source("t.bin", {{"documents", "packed"}, {"begin", 36}});
  EXPECT_THAT(positions(*begin, 1), ElementsAre(0, 1, 0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_FALSE(begin->fetch({{0, 0}}).masks_documents);
  const auto end = source("t.bin", {{"documents", "masked"}, {"end", 36}});
  EXPECT_THAT(positions(*end, 1), ElementsAre(0, 1, 2, 0, 1, 2, 3, 4, 5, 6));
  EXPECT_THAT(positions(*source("t.bin", {{"documents", "packed"}, {"end", 27}}), 1),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  EXPECT_TRUE(end->fetch({{0, 0}}).masks_documents);
  EXPECT_TRUE(at::equal(end->fetch({{1, 0}}).targets, source()->fetch({{1, 0}}).targets));
  EXPECT_THAT(refusal([&] {
                source("t.bin", {{"documents", "packed"}});
              }),
              HasSubstr("t.bin' does not say where documents begin"));
}

TEST_F(Documents, BeginWhereAnIndexSays) {
  megatron(8, {9, 4, 12}, {0, 1, 2, 3});
  EXPECT_THAT(positions(*source("m", {{"documents", "masked"}}), 0),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 0));
  EXPECT_THAT(positions(*source("m", {{"documents", "masked"}}), 1),
              ElementsAre(0, 1, 2, 0, 1, 2, 3, 4, 5, 6));
  EXPECT_THAT(positions(*source("m", {{"documents", "masked"}, {"begin", 11}}), 1),
              ElementsAre(0, 0, 1, 2, 3, 4, 5, 6, 7, 8));
}

TEST_F(Documents, TrainAlikeUnderEveryStrategy) {
  const HostGroup world = HostGroup::world();
  const auto comm = make_communicator("pt2pt", world, at::kCPU);
  const auto alone = comm->split(comm->rank(), 0);
  write("t.bin", file(20240520, 1, 2000, 2000, uint16_t{1}, 31));
  for (const char* model : kModels) {
    Case c{model, "sgd(lr=0.1, momentum=0.9)"};
    c.accumulation = 2;
    c.data = choice("t.bin", {{"documents", "masked"}, {"begin", 5}});
    const Outcomes single = train_single(c, *alone, world.size());
    c.recompute = 1;
    for (const char* strategy : {"ddp", "fsdp", "zero3"})
      EXPECT_LE(parameter_error(train(c, strategy, *comm), single), 1e-10) << model << " " << strategy;
    c.data = choice("t.bin");
    EXPECT_GE(parameter_error(train(c, "ddp", *comm), single), 1e-3) << "documents that see each other";
  }
}

// The memory of one mask is predicted. In these models it is as large as what a layer keeps.
TEST_F(Documents, HoldTheMemoryOfOneMask) {
  const HostGroup world = HostGroup::world();
  if (world.size() > 1) GTEST_SKIP() << "on one rank";
  meter::install();
  const auto comm = make_communicator("pt2pt", world, at::kCPU);
  write("t.bin", file(20240520, 1, 9000, 9000, uint16_t{1}, 64));
  for (const char* model :
       {"gpt2(layers=2, width=16, heads=2, sequence=256, vocabulary=64)",
        "llama(layers=2, width=16, heads=2, kv_heads=1, inner=40, sequence=256, vocabulary=64)"}) {
    Case c{model, "sgd(lr=0.01)", at::kFloat, /*batch_size=*/4};
    c.data = choice("t.bin", {{"documents", "masked"}, {"begin", 5}});
    int64_t held = 0;
    train(c, "single", *comm, {.change = {}, .made = {}, .begins = [&] {
                                 held = meter::read().total;
                                 meter::reset_peak();
                               }});
    const auto measured = static_cast<double>(meter::read().peak - held);
    const Choice resolved = resolved_model(model);
    const specs::ModelTable table = specs::model_spec(resolved.name).table(resolved.options);
    strategies::StepInput input{table, 1, 1, {}, 1, {}};
    EXPECT_LE(strategies::activation_bytes(input, 4) / measured, 0.8) << model;
    input.masks_documents = specs::masks_documents(c.data);
    EXPECT_NEAR(strategies::activation_bytes(input, 4) / measured, 1, 0.1) << model;
  }
}

}  // namespace
}  // namespace shardmark
