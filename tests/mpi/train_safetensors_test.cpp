// Tests safetensors files: what was written is read back, and every truncation and every flipped byte is
// detected.
// RANKS 1
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "checkpoint/state_file.h"
#include "tests/mpi/training_fixture.h"

namespace shardmark {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class Safetensors : public ::testing::Test {
 protected:
  Safetensors() {
    fs::create_directories(folder_);
    tensors_ = {{"a.weight", at::arange(6, at::kFloat).view({2, 3})},
                {"half", at::arange(5, at::kDouble).to(at::kHalf)},
                {"empty", at::empty({0, 4}, at::kDouble)},
                {"scalar", at::full({}, 3.5, at::kBFloat16)}};
    SafetensorsWriter writer(path_, 2000);
    for (const auto& [name, value] : tensors_) writer.add(name, value);
    EXPECT_FALSE(fs::exists(path_)) << "before it is whole";
    writer.finish({{"format", "pt"}});
  }
  ~Safetensors() override { fs::remove_all(folder_); }

  static std::string refusal(const std::function<void()>& body) {
    try {
      body();
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  }
  std::string content() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // Returns the error if a file with these bytes is opened, verified and read.
  std::string refusal_of(const std::string& bytes) const {
    const std::string path = folder_ / "changed.safetensors";
    std::ofstream(path, std::ios::binary) << bytes;
    return refusal([&] {
      const SafetensorsFile file(path);
      if (!file.has_checksum()) throw UsageError("no checksum");
      file.verify();
      for (const auto& [name, value] : tensors_) file.read(name);
    });
  }

  const fs::path folder_ = fs::temp_directory_path() / ("safetensors-" + std::to_string(::getpid()));
  const std::string path_ = folder_ / "x.safetensors";
  std::map<std::string, at::Tensor> tensors_;
};

TEST_F(Safetensors, ReadsBackWhatWasWritten) {
  const SafetensorsFile file(path_);
  EXPECT_NO_THROW(file.verify());
  EXPECT_EQ(file.metadata().at("format"), "pt");
  ASSERT_EQ(file.entries().size(), tensors_.size());
  for (const auto& [name, value] : tensors_) {
    const at::Tensor read = file.read(name);
    EXPECT_EQ(read.scalar_type(), value.scalar_type()) << name;
    EXPECT_TRUE(at::equal(read, value)) << name;
  }
  EXPECT_THAT(refusal([&] { file.read("b"); }), HasSubstr("has no tensor b"));
}

TEST_F(Safetensors, OfSeveralFilesAreReadByTheirIndex) {
  const std::string path = folder_ / "x.safetensors.index.json";
  const auto opened = [&](const std::string& map) {
    std::ofstream(path) << R"({"metadata": {"total_size": 64}, "weight_map": )" << map << "}";
    SafetensorsFile file(path);
    file.verify();
    return file;
  };
  {
    SafetensorsWriter writer(folder_ / "y.safetensors", 1000);
    writer.add("b", at::arange(3, at::kFloat));
    writer.finish({});
  }
  const SafetensorsFile file = opened(R"({"half": "x.safetensors", "b": "y.safetensors"})");
  EXPECT_EQ(file.entries().size(), 2u) << "what the index does not name is no part of the model";
  EXPECT_TRUE(at::equal(file.read("half"), tensors_.at("half")));
  EXPECT_TRUE(at::equal(file.read("b"), at::arange(3, at::kFloat)));

  const auto refused = [&](const std::string& map) { return refusal([&] { opened(map); }); };
  EXPECT_THAT(refused(R"({"b": "z.safetensors"})"), HasSubstr("z.safetensors', which is not there"));
  EXPECT_THAT(refused(R"({"b": "x.safetensors.index.json"})"), HasSubstr("index.json', which is not there"));
  EXPECT_THAT(refused(R"({"a": "y.safetensors"})"), HasSubstr("says that a is in"));
  for (const char* map : {"[]", "3", "{\"b\": 3}", "{\"b\": [[[[]]]]}", "{\"b\"}"})
    EXPECT_THAT(refused(map), HasSubstr("has a damaged header")) << map;
  std::ofstream(folder_ / "y.safetensors", std::ios::binary) << content().substr(0, 100);
  EXPECT_THAT(refused(R"({"b": "y.safetensors"})"), HasSubstr("y.safetensors' is truncated"));
  std::string changed = content();
  changed.back() = static_cast<char>(changed.back() ^ 4);
  std::ofstream(folder_ / "y.safetensors", std::ios::binary) << changed;
  EXPECT_THAT(refused(R"({"half": "y.safetensors"})"), HasSubstr("its checksum does not match"));
}

TEST_F(Safetensors, LeavesNothingBehindUnfinished) {
  const std::string other = folder_ / "y.safetensors";
  {
    SafetensorsWriter writer(other, 1000);
    writer.add("a", tensors_.at("a.weight"));
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1) << "the whole one";
}

TEST_F(Safetensors, TakesThePlaceOfARegularFileAlone) {
  const auto write = [&](const std::string& path) {
    SafetensorsWriter writer(path, 1000);
    writer.add("a", tensors_.at("a.weight"));
    writer.finish({});
  };
  const std::string link = folder_ / "link", target = folder_ / "target.safetensors", pipe = folder_ / "pipe";
  fs::create_symlink("target.safetensors", link);
  write(link);
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(SafetensorsFile(target).entries().size(), 1u);
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(refusal([&] { write(pipe); }), HasSubstr("is not a regular file"));
  EXPECT_THAT(refusal([&] { write(folder_); }), HasSubstr("is a directory"));
  EXPECT_TRUE(fs::is_fifo(pipe));

  const std::string other = folder_ / "other";  // another file appears there during writing
  SafetensorsWriter writer(other, 1000);
  ASSERT_EQ(::mkfifo(other.c_str(), 0600), 0);
  EXPECT_THAT(refusal([&] { writer.finish({}); }), HasSubstr("is not a regular file"));
  EXPECT_TRUE(fs::is_fifo(other));
}

TEST_F(Safetensors, NamesEveryTruncation) {
  const std::string whole = content();
  for (size_t length = 0; length < whole.size(); length += length < 100 ? 1 : 13)
    EXPECT_THAT(refusal_of(whole.substr(0, length)), HasSubstr("changed.safetensors")) << length;
  EXPECT_THAT(refusal_of(whole.substr(0, whole.size() - 1)), HasSubstr("truncated"));
  EXPECT_THAT(refusal_of(whole + "x"), HasSubstr("damaged"));
}

TEST_F(Safetensors, NamesEveryFlippedByte) {
  const std::string whole = content();
  const size_t header_end = whole.find_last_of('}');  // the padding between header and data has no meaning
  const size_t data_begin = whole.find_first_not_of(' ', header_end + 1);
  for (size_t at = 0; at < whole.size(); ++at) {
    if (at > header_end && at < data_begin) continue;
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 4);
    EXPECT_NE(refusal_of(changed), "") << "byte " << at << " of " << whole.size();
  }
}

// No writer of the format produces these headers.
TEST_F(Safetensors, NamesAHeaderThatIsNone) {
  const auto refused = [&](const std::string& header) {
    std::string bytes(8, '\0');
    for (size_t byte = 0; byte < 8; ++byte) bytes[byte] = static_cast<char>(header.size() >> (8 * byte));
    return refusal_of(bytes + header + std::string(64, '\0'));
  };
  const auto tensor = [&](const std::string& shape, const std::string& offsets) {
    return refused(R"({"a":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}");
  };
  const std::string deep(200'000, '['), ends(200'000, ']');
  EXPECT_THAT(refused(R"({"a":)" + deep + ends + "}"), HasSubstr("it nests too deep"));
  EXPECT_THAT(tensor("[4,[4]]", "[0,64]"), HasSubstr("it nests too deep"));
  EXPECT_THAT(tensor("[4,4]", "[0,64]"), HasSubstr("no checksum"));  // the only error
  for (const char* shape :
       {"[16.9]", "[1.6e1]", "16", "[true]", "[\"16\"]", "[-16]", "[18446744073709551600]", "null"})
    EXPECT_THAT(tensor(shape, "[0,64]"), HasSubstr("has a damaged header: tensor a")) << shape;
  for (const char* offsets : {"[0,64.5]", "[0]", "[0,64,64]", "64", "[64,0]", "[-1,63]",
                              "[9223372036854775807,9223372036854775807]", "{}"})
    EXPECT_THAT(tensor("[16]", offsets), HasSubstr("has a damaged header: tensor a")) << offsets;
}

TEST_F(Safetensors, WithoutNumbersToTrainOnAreNamed) {
  const Choice choice = resolved_model("mlp(features=4, width=4, layers=1, classes=3)");
  const auto model = specs::model_spec(choice.name).table(choice.options);
  const std::string path = folder_ / "mlp.safetensors", name = model.groups.front().parameters.front().name;
  const auto save = [&](double value) {
    SafetensorsWriter writer(path, 100000);
    for (const auto& group : model.groups)
      for (const auto& spec : group.parameters) writer.add(spec.name, at::full(spec.shape, value, at::kHalf));
    writer.finish({});
  };
  save(1);
  EXPECT_EQ(refusal([&] { read_tensor(SafetensorsFile(path), name); }), "");
  std::ifstream file(path, std::ios::binary);
  std::string bytes(std::istreambuf_iterator<char>(file), {});
  const size_t at = bytes.find("\"F16\"");
  std::ofstream(path, std::ios::binary) << bytes.replace(at, 5, "\"I16\"");
  EXPECT_THAT(refusal([&] { check_model(SafetensorsFile(path), model, "mlp"); }),
              HasSubstr("as I16; accepted: BF16, F16, F32, F64"));
  for (const double value : {INFINITY, -INFINITY, NAN}) {
    save(value);
    EXPECT_THAT(refusal([&] { read_tensor(SafetensorsFile(path), name); }),
                HasSubstr("holds a NaN or an infinity in " + name));
  }
}

TEST_F(Safetensors, OfAnotherModelAreNamed) {
  const auto table = [](const std::string& text) {
    const Choice choice = resolved_model(text);
    return specs::model_spec(choice.name).table(choice.options);
  };
  const auto small = table("gpt2(layers=1, width=8, heads=2, sequence=4, vocabulary=7)");
  const std::string path = folder_ / "gpt2.safetensors";
  {
    SafetensorsWriter writer(path, 100000);
    for (const auto& group : small.groups)
      for (const auto& spec : group.parameters) writer.add("transformer." + spec.name, at::zeros(spec.shape));
    writer.add("transformer.h.0.attn.bias",
               at::zeros({1, 1, 4, 4}));  // an attention mask, which old files contain
    writer.add("lm_head.weight", at::zeros({7, 8}));
    writer.finish({});
  }
  const SafetensorsFile file(path);
  EXPECT_EQ(refusal([&] { check_model(file, small, "small"); }), "");
  EXPECT_EQ(read_tensor(file, "wpe.weight").sizes(), (std::vector<int64_t>{4, 8}));
  const auto refused = [&](const std::string& model) {
    return refusal([&] { check_model(file, table(model), model); });
  };
  EXPECT_THAT(refused("gpt2(layers=2, width=8, heads=2, sequence=4, vocabulary=7)"),
              HasSubstr("it has no h.1.ln_1.weight"));
  EXPECT_THAT(refused("gpt2(layers=1, width=8, heads=2, sequence=4, vocabulary=9)"),
              HasSubstr("wte.weight is [7, 8] in it, and [9, 8] in the model"));
  EXPECT_THAT(refused("mlp"), HasSubstr("it has no layers.0.weight"));
}

// A file with a different output head belongs to another model than one that ties the head to the token
// embedding.
TEST_F(Safetensors, OfATiedHeadHoldTheEmbeddingTwice) {
  const Choice choice = resolved_model(
      "llama(layers=1, width=8, heads=2, kv_heads=1, inner=8, sequence=4, vocabulary=7, tied=true)");
  const auto model = specs::model_spec(choice.name).table(choice.options);
  const auto refused = [&](double head) {
    const std::string path = folder_ / "llama.safetensors";
    SafetensorsWriter writer(path, 100000);
    for (const auto& group : model.groups)
      for (const auto& spec : group.parameters) writer.add(spec.name, at::ones(spec.shape));
    writer.add("model.layers.0.self_attn.rotary_emb.inv_freq", at::ones({2}));  // old files contain this
    writer.add("lm_head.weight", at::full({7, 8}, head));
    writer.finish({});
    return refusal([&] { check_model(SafetensorsFile(path), model, "llama"); });
  };
  EXPECT_EQ(refused(1), "");
  EXPECT_THAT(refused(2), HasSubstr("the model has no lm_head.weight of its own"));
}

// All ranks load a state together, so its shapes are checked first.
TEST_F(Safetensors, OptimizerStateOfAnotherShapeIsNamed) {
  const Choice choice = resolved_model("mlp(features=4, width=4, layers=1, classes=3)");
  const auto model = specs::model_spec(choice.name).table(choice.options);
  const std::string name = model.groups.front().parameters.front().name;
  const auto refused = [&](const std::string& state, at::IntArrayRef shape) {
    const std::string path = folder_ / "state.safetensors";
    {
      SafetensorsWriter writer(path, 100000);
      for (const auto& group : model.groups)
        for (const auto& spec : group.parameters) writer.add(spec.name, at::zeros(spec.shape));
      writer.add("optimizer." + state, at::zeros(shape));
      writer.finish({});
    }
    const SafetensorsFile file(path);
    return refusal([&] { check_model(file, model, "mlp"); });
  };
  EXPECT_EQ(refused("momentum." + name, model.groups.front().parameters.front().shape), "");
  EXPECT_THAT(refused("momentum." + name, {2, 2}),
              HasSubstr("optimizer.momentum." + name + " is [2, 2] in it"));
  EXPECT_EQ(refused("num_updates", {}), "");
  EXPECT_THAT(refused("num_updates", {2}), HasSubstr("optimizer.num_updates is [2] in it"));
}

}  // namespace
}  // namespace shardmark
