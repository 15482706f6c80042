// Opens runs that are whole, damaged, or not runs.

#include "checkpoints/run.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/cuda.h>
#include <torch/types.h>

#include "base/device.h"
#include "checkpoints/checkpoint.h"
#include "checkpoints/stored_model.h"
#include "io/config/config_file.h"
#include "io/progress.h"
#include "io/safetensors.h"
#include "models/precision.h"
#include "tests/support/training.h"

namespace zoo::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

namespace fs = std::filesystem;

class RunTest : public ::testing::Test {
 protected:
  RunTest() { train(world.experiment("text_classification", {"training.steps=4"}), {.run_dir = run}); }
  std::string opening() const {
    return message_of<CheckpointError>([this] { Run::open(run); });
  }

  TinyWorld world;
  fs::path run = world.path("run");
};

TEST_F(RunTest, OpensWithLabelsAndTokenizer) {
  const auto opened = Run::open(run);
  EXPECT_EQ(opened.labels(), (std::vector<std::string>{"blue", "dark green", "red"}));
  EXPECT_EQ(opened.tokenizer().decode(opened.tokenizer().encode("sun moon")), "sun moon");
  EXPECT_EQ(opened.experiment().training.steps, 4);
  EXPECT_EQ(opened.weights(), run / "model.safetensors");
}

// Weights that are stored while they are read equal those that are stored afterwards.
TEST_F(RunTest, OpensWithWeightsInAFormat) {
  for (const auto format : {WeightFormat::fp32, WeightFormat::bf16, WeightFormat::int8, WeightFormat::int4}) {
    const auto opened = Run::open(run, torch::kCPU, format);
    const auto later = Run::open(run);
    store_weights(later.model(), format);
    const auto ours = named_tensors(opened.model()), expected = named_tensors(later.model());
    ASSERT_EQ(ours.size(), expected.size());
    for (const auto& [name, tensor] : expected) EXPECT_TRUE(torch::equal(ours.at(name), tensor)) << name;
    EXPECT_EQ(named_weights(opened.model()).size(), named_weights(later.model()).size());
  }
  EXPECT_EQ(named_weights(Run::open(run, torch::kCPU, std::nullopt).model()).size(),
            named_weights(Run::open(run).model()).size())
      << "the run's own format is fp32";
  // The first tensor that is not finite is still noticed.
  const SafetensorsFile file(run / "model.safetensors");
  TensorMap weights;
  for (const auto& name : file.names()) weights.emplace(name, file.tensor(name));
  const auto matrix = std::ranges::find_if(weights, [](const auto& item) { return item.second.dim() == 2; });
  matrix->second.index_put_({0, 0}, std::numeric_limits<float>::quiet_NaN());
  save_safetensors(run / "model.safetensors", weights);
  EXPECT_THAT(message_of<CheckpointError>([&] { Run::open(run, torch::kCPU, WeightFormat::int8); }),
              AllOf(HasSubstr(matrix->first), HasSubstr("not numbers")));
}

// Where nobody names a format, a processor does what the run says. Others have bf16 where a GPU is fast with
// it.
TEST_F(RunTest, ChoosesAFormatForItsUse) {
  auto experiment = world.experiment("language_modeling");
  const torch::Device gpu(torch::kCUDA, 0);
  const bool is_fast = resolve(Precision::automatic, gpu, 64) == Precision::bf16;
  const auto fast_one = is_fast ? WeightFormat::bf16 : WeightFormat::fp32;
  const auto chosen = [&](AutomaticWeights automatic, ModelOrigin origin, torch::Device device) {
    return chosen_format(WeightChoice(std::nullopt, automatic), experiment, origin, device);
  };
  using enum AutomaticWeights;
  for (const auto automatic : {stored, by_precision, fastest}) {
    EXPECT_EQ(chosen(automatic, ModelOrigin::run, torch::kCPU), WeightFormat::fp32);
    EXPECT_EQ(chosen(automatic, ModelOrigin::others, torch::kCPU), WeightFormat::fp32);
    EXPECT_EQ(chosen(automatic, ModelOrigin::others, gpu), fast_one);
  }
  experiment.training.precision = Precision::bf16;
  EXPECT_EQ(chosen(stored, ModelOrigin::run, gpu), WeightFormat::fp32);
  EXPECT_EQ(chosen(by_precision, ModelOrigin::run, gpu), WeightFormat::bf16);
  EXPECT_EQ(chosen(by_precision, ModelOrigin::run, torch::kCPU), WeightFormat::fp32);
  experiment.training.precision = Precision::fp32;
  EXPECT_EQ(chosen(by_precision, ModelOrigin::run, gpu), WeightFormat::fp32);
  EXPECT_EQ(chosen(fastest, ModelOrigin::run, gpu), fast_one);
  EXPECT_EQ(chosen_format(WeightFormat::int8, experiment, ModelOrigin::others, gpu), WeightFormat::int8);
  experiment.generation.weights = WeightFormat::int4;
  for (const auto automatic : {stored, by_precision, fastest})
    EXPECT_EQ(chosen(automatic, ModelOrigin::run, gpu), WeightFormat::int4) << "the run says so";
  experiment.generation.weights = WeightFormat::fp32;
  experiment.training.precision = Precision::bf16;
  experiment.task.type = "structure_prediction";
  EXPECT_EQ(chosen(by_precision, ModelOrigin::run, gpu), WeightFormat::fp32);
}

TEST_F(RunTest, TakesTheNewestCheckpointWhileThereIsNoBest) {
  fs::remove(run / "model.safetensors");
  EXPECT_EQ(Run::open(run).weights(), run / "checkpoints/step-4/model.safetensors");
  fs::remove(run / "checkpoints/last");
  EXPECT_EQ(Run::open(run).weights(), run / "checkpoints/step-4/model.safetensors");
  fs::remove_all(run / "checkpoints");
  EXPECT_THAT(opening(), HasSubstr("no weights yet"));
}

TEST_F(RunTest, SaysWhatIsMissing) {
  EXPECT_THAT(message_of<CheckpointError>([&] { Run::open(world.path("nowhere")); }),
              HasSubstr("no such run"));
  EXPECT_THAT(message_of<CheckpointError>([&] { Run::open(world.path("data")); }), HasSubstr("not a run"));
  fs::rename(run / "labels.json", run / "gone");
  EXPECT_THAT(opening(), HasSubstr("labels.json"));
  world.dir().write("run/labels.json", "{]");
  EXPECT_THAT(opening(), AllOf(HasSubstr("labels.json"), HasSubstr("damaged")));
  fs::rename(run / "gone", run / "labels.json");
  fs::remove(run / "tokenizer.json");
  EXPECT_THAT(opening(), HasSubstr("tokenizer.json"));
}

TEST_F(RunTest, NoticesTruncatedWeights) {
  const auto file = run / "model.safetensors";
  const auto size = fs::file_size(file);
  for (const auto left : {size - 1, size / 2, uintmax_t{9}, uintmax_t{0}}) {
    fs::resize_file(file, left);
    EXPECT_THAT(opening(), HasSubstr("model.safetensors")) << left;
  }
}

TEST_F(RunTest, NamesTheFirstTensorOfAnotherArchitecture) {
  const auto file = run / "model.safetensors";
  TensorMap tensors;
  {
    const SafetensorsFile stored(file);
    for (const auto& name : stored.names()) tensors.emplace(name, stored.tensor(name).clone());
  }
  const auto with = [&](TensorMap other) {
    save_safetensors(file, other);
    return opening();
  };
  const auto name = tensors.begin()->first;
  auto fewer = tensors;
  fewer.erase(name);
  EXPECT_THAT(with(fewer), AllOf(HasSubstr("another architecture"), HasSubstr("no tensor '" + name + "'")));
  auto more = tensors;
  more["zzz"] = torch::zeros({2});
  EXPECT_THAT(with(more), HasSubstr("'zzz' is not in the model"));
  auto reshaped = tensors;
  reshaped[name] = torch::zeros({2, 3, 4});
  EXPECT_THAT(with(reshaped), AllOf(HasSubstr(name), HasSubstr("(2, 3, 4)")));
  auto retyped = tensors;
  retyped[name] = tensors[name].to(torch::kInt32);
  EXPECT_THAT(with(retyped), AllOf(HasSubstr(name), HasSubstr("Int")));
  retyped[name] = tensors[name].to(torch::kHalf);  // is converted
  EXPECT_EQ(with(retyped), "no error");
  save_safetensors(file, tensors);
  EXPECT_EQ(opening(), "no error");
}

TEST_F(RunTest, DamagedCheckpointIsOneLine) {
  const auto resume = [&] {
    return message_of<CheckpointError>([&] {
      train(world.experiment("text_classification", {"training.steps=6"}),
            {.run_dir = run, .existing = ExistingRun::resume});
    });
  };
  for (const char* name : {"model.safetensors", "optimizer.safetensors", "state.json"}) {
    const auto file = run / "checkpoints/step-4" / name;
    const auto whole = read_file(file);
    fs::resize_file(file, whole.size() / 2);
    EXPECT_THAT(resume(), HasSubstr(name));
    fs::remove(file);
    EXPECT_THAT(resume(), HasSubstr(name));
    write_file_atomically(file, whole);
  }
  world.dir().write("run/checkpoints/step-4/state.json", R"({"step": "four"})");
  EXPECT_THAT(resume(), AllOf(HasSubstr("state.json"), HasSubstr("damaged")));
}

// Some bytes of text can describe a model of any size, so the file of weights is asked first. Built, these
// models would take gigabytes.
TEST_F(RunTest, AModelMuchLargerThanItsFileIsNotBuilt) {
  const auto config = read_file(run / "config.yaml");
  const auto with = [&](const std::string& key, const std::string& value) {
    auto changed = config;
    const auto at = changed.find("  " + key + ": ", changed.find("\nmodel:"));
    changed.replace(at, changed.find('\n', at) - at, "  " + key + ": " + value);
    world.dir().write("run/config.yaml", changed);
    return opening();
  };
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, std::string>>{{"n_layers", "4096"},
                                                        {"d_model", "1048576"},
                                                        {"d_ff", "1048576"},
                                                        {"head_dim", "1048576"},
                                                        {"max_positions", "1000000000"},
                                                        {"vocab_size", "1000000000"},
                                                        {"n_segments", "1048576"}}) {
    EXPECT_THAT(with(key, value), AllOf(HasSubstr("model.safetensors: of another architecture"),
                                        HasSubstr("describes a model with")))
        << key;
  }
  EXPECT_THAT(with("n_layers", "2"),
              AllOf(HasSubstr("of another architecture"), HasSubstr("it has no tensor")));
  EXPECT_THAT(message_of<CheckpointError>([&] {
                auto huge = world.experiment("text_classification", {"training.steps=6"});
                huge.model.n_layers = 4096;
                world.dir().write("run/config.yaml", dump_config(huge));
                train(huge, {.run_dir = run, .existing = ExistingRun::resume});
              }),
              HasSubstr("step-4/model.safetensors: of another architecture"));
}

TEST_F(RunTest, AVocabularyWithoutNeededTokensIsOneLine) {
  world.dir().write(
      "run/tokenizer.json",
      R"({"type":"byte","lowercase":false,"special":{"pad":null,"unk":null,"bos":null,"eos":null,)"
      R"("mask":null,"cls":null,"sep":null}})");
  EXPECT_THAT(opening(),
              AllOf(HasSubstr("tokenizer.json"), HasSubstr("no <cls>, which the task text_classification")));
}

TEST_F(RunTest, NumbersOfAStateAreWhatTheyCount) {
  const auto path = run / "checkpoints/step-4/state.json";
  const auto good = nlohmann::json::parse(read_file(path));
  const auto with = [&](const char* key, const nlohmann::json& value) {
    auto changed = good;
    changed[key] = value;
    write_file_atomically(path, changed.dump());
    return message_of<CheckpointError>([&] { read_training_state(path.parent_path()); });
  };
  for (const char* key :
       {"step", "epoch", "batch", "tokens", "peak_memory_bytes", "best_step", "steps_since_log",
        "sample_bytes", "micro_batch_size", "skipped_steps", "loss_scale_good_steps"}) {
    for (const nlohmann::json& value :
         {nlohmann::json(-1), nlohmann::json(1e300), nlohmann::json(1.5), nlohmann::json("1"),
          nlohmann::json(UINT64_MAX), nlohmann::json(INT64_MAX), nlohmann::json()})
      EXPECT_THAT(with(key, value), AllOf(HasSubstr("state.json: damaged"), HasSubstr(key))) << key << value;
  }
  EXPECT_THAT(with("seconds", -1.0), HasSubstr("seconds is negative"));
  EXPECT_THAT(with("loss_scale", 0.0), HasSubstr("loss_scale is not positive"));
  EXPECT_THAT(with("finished", 1), HasSubstr("finished"));
  EXPECT_THAT(with("step", 5), HasSubstr("step-4: damaged: its state is that of step 5"));
  EXPECT_THAT(with("step", 3), HasSubstr("step-4: damaged: its state is that of step 3"));
  EXPECT_EQ(with("step", 4), "no error");
}

/// Turns a run of a classifier into one of a model without its last layer.
void take_head_away(const fs::path& run, const char* task) {
  auto experiment = read_run_experiment(run);
  experiment.task = task_types().select(task);
  write_file_atomically(run / "config.yaml", dump_config(experiment));
  const SafetensorsFile file(run / "model.safetensors");
  TensorMap kept;
  for (const auto& name : file.names())
    if (!name.starts_with("head.classifier.")) kept.emplace(name, file.tensor(name).clone());
  save_safetensors(run / "bare", kept);
  fs::rename(run / "bare", run / "model.safetensors");
}

TEST_F(RunTest, WithoutAHeadHasFeaturesAndNothingElse) {
  const auto classifier = Run::open(run);
  take_head_away(run, "text_features");
  const auto bare = Run::open(run);
  const auto ids = torch::tensor(classifier.tokenizer().encode("sun moon"), torch::kInt64).unsqueeze(0);
  const Batch batch{.input = {.ids = ids}};
  const torch::NoGradGuard no_grad;
  EXPECT_TRUE(torch::equal(bare.model().features(batch), classifier.model().features(batch)));
  EXPECT_EQ(bare.model().generative(), nullptr);
  EXPECT_THAT(message_of<UsageError>([&] { bare.evaluate(Split::valid); }),
              HasSubstr("text_features has no"));
  EXPECT_THAT(message_of<UsageError>([&] { bare.task().predict(bare.model(), {"sun"}, {}); }),
              HasSubstr("text_features makes no predictions"));
  const auto training = world.experiment("text_classification", {"task=text_features"});
  EXPECT_THAT(message_of<UsageError>([&] { train(training, {.run_dir = world.path("new")}); }),
              HasSubstr("text_features has no data"));
}

TEST(ImageRun, WithoutAHeadHasFeatures) {
  const TinyWorld world;
  const auto dir = world.path("run");
  train(world.image_experiment({"training.steps=1", "model.pooler=false"}), {.run_dir = dir});
  const auto classifier = Run::open(dir);
  take_head_away(dir, "image_features");
  const auto bare = Run::open(dir);
  const Batch batch{.fields = {{fields::kImages, torch::randn({2, 1, 8, 8})}}};
  const torch::NoGradGuard no_grad;
  EXPECT_TRUE(torch::equal(bare.model().features(batch), classifier.model().features(batch)));
  EXPECT_THAT(message_of<UsageError>([&] { bare.evaluate(Split::valid); }),
              HasSubstr("image_features has no"));
}

TEST(Run, LargeWeightsAreAnnounced) {
  const TinyWorld world;
  const auto run =
      train(world.experiment("language_modeling", {"training.steps=1"}), {.run_dir = world.path("run")})
          .run_dir;
  const auto size = static_cast<int64_t>(std::filesystem::file_size(run / "model.safetensors"));
  EXPECT_EQ(weights_note(run, size),
            fmt::format("reading {} of weights from {}", bytes_text(size), run.string()));
  EXPECT_EQ(weights_note(run, size + 1), std::nullopt);
  EXPECT_EQ(weights_note(run), std::nullopt) << "a small model";
  const auto foreign = world.path("foreign");
  world.dir().write("foreign/model-1.safetensors", std::string(700, ' '));
  world.dir().write("foreign/model-2.safetensors", std::string(800, ' '));
  world.dir().write("foreign/other.bin", std::string(900, ' '));
  EXPECT_EQ(weights_note(foreign, 1500), fmt::format("reading 1.5 kB of weights from {}", foreign.string()));
  EXPECT_EQ(weights_note(foreign, 1501), std::nullopt);
  EXPECT_EQ(weights_note(world.path("nothing"), 1), std::nullopt) << "who opens it says what is wrong";
}

TEST(Checkpoint, TiedWeightsAreStoredOnce) {
  const TinyWorld world;
  const auto result =
      train(world.experiment("language_modeling", {"training.steps=1"}), {.run_dir = world.path("run")});
  const auto names = SafetensorsFile(result.run_dir / "model.safetensors").names();
  EXPECT_THAT(names, ::testing::Contains("token_embedding.weight"));
  EXPECT_THAT(names, Not(::testing::Contains(HasSubstr("head.output"))));
  EXPECT_EQ(names.size(), named_tensors(Run::open(result.run_dir).model()).size());
}

TEST(Device, IsParsedOrRefusedInOneLine) {
  EXPECT_TRUE(parse_device("cpu").is_cpu());
  EXPECT_EQ(parse_device("auto").is_cuda(), torch::cuda::is_available());
  for (const char* text : {"", "gpu", "cuda:", "cuda:x", "cuda:1x", "cuda:-1", "CPU"}) {
    EXPECT_THAT(message_of<UsageError>([&] { parse_device(text); }), HasSubstr("unknown device")) << text;
  }
  EXPECT_THAT(message_of<UsageError>([] { parse_device("cuda:120"); }), HasSubstr("no device 'cuda:120'"));
}

}  // namespace
}  // namespace zoo::testing
