// Frozen parameters, groups of parameters, and adapters in whole trainings.

#include <signal.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "checkpoints/average_run.h"
#include "checkpoints/base_weights.h"
#include "checkpoints/merge_run.h"
#include "checkpoints/run.h"
#include "io/safetensors.h"
#include "models/lora.h"
#include "models/name_patterns.h"
#include "optimizers/optimizer.h"
#include "tests/support/small_models.h"
#include "tests/support/training.h"
#include "training/trainer.h"

namespace zoo::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TrainOptions going_on_with(const fs::path& run) { return {.run_dir = run, .existing = ExistingRun::resume}; }

class FineTuning : public ::testing::Test {
 protected:
  FineTuning() {
    train(world.experiment("masked_language_modeling", shape({"training.steps=4"})), {.run_dir = source});
  }
  static std::vector<std::string> shape(std::vector<std::string> overrides) {
    overrides.insert(overrides.begin(), {"model.n_layers=2", "model.n_segments=0"});
    return overrides;
  }
  /// A classification that starts with the run `source`.
  Experiment tuned(std::vector<std::string> overrides) const {
    overrides.push_back("init_from=" + source.string());
    return world.experiment("text_classification", shape(std::move(overrides)));
  }
  std::string error_of(const std::vector<std::string>& overrides) const {
    const auto message =
        message_of<Error>([&] { train(tuned(overrides), {.run_dir = world.path("refused")}); });
    EXPECT_FALSE(fs::exists(world.path("refused")));
    return message;
  }

  TinyWorld world;
  fs::path source = world.path("source"), run = world.path("run");
};

constexpr const char* kFreeze = "training.freeze=[token_embedding.*, encoder.layers.0.*]";

bool is_frozen(const std::string& name) {
  return name.starts_with("token_embedding.") || name.starts_with("encoder.layers.0.");
}

TEST_F(FineTuning, FrozenParametersKeepTheirBits) {
  train(tuned({kFreeze, "training.optimizer.weight_decay=0.5", "training.average_last=3",
               "training.keep_checkpoints=3"}),
        {.run_dir = run});
  const SafetensorsFile before(source / "model.safetensors");
  for (const auto& file :
       {"model.safetensors", "checkpoints/step-4/model.safetensors", "checkpoints/last/model.safetensors"}) {
    if (!fs::exists(run / file)) continue;
    const SafetensorsFile after(run / file);
    for (const auto& name : after.names()) {
      if (before.contains(name)) {
        EXPECT_EQ(torch::equal(before.tensor(name), after.tensor(name)), is_frozen(name)) << file << name;
      }
    }
  }
  const SafetensorsFile optimizer(run / "checkpoints/last/optimizer.safetensors");
  ASSERT_GT(optimizer.n_tensors(), 0U);
  for (const auto& name : optimizer.names()) EXPECT_FALSE(is_frozen(name)) << name;
}

/// The mean of many equal numbers may differ from them by rounding.
TEST_F(FineTuning, MeansOfCheckpointsKeepFrozenParameters) {
  train(tuned({kFreeze, "training.steps=11", "training.checkpoint_every=1", "training.keep_checkpoints=11"}),
        {.run_dir = run});
  average_run(run, {.out = world.path("mean"), .last = 11});
  const SafetensorsFile before(source / "model.safetensors"), after(world.path("mean") / "model.safetensors");
  for (const auto& name : before.names()) {
    if (!is_frozen(name)) continue;
    EXPECT_TRUE(torch::equal(before.tensor(name), after.tensor(name))) << name;
  }
}

TEST_F(FineTuning, TheHeadAloneCanBeTrained) {
  train(tuned({"training.freeze=[token_embedding.*, encoder*]"}), {.run_dir = run});
  const SafetensorsFile before(source / "model.safetensors"), after(run / "model.safetensors");
  for (const auto& name : after.names()) {
    if (before.contains(name)) {
      EXPECT_TRUE(torch::equal(before.tensor(name), after.tensor(name))) << name;
    }
  }
  EXPECT_EQ(SafetensorsFile(run / "checkpoints/last/optimizer.safetensors").names().front(),
            "head.classifier.bias.exp_avg");
}

TEST_F(FineTuning, AnAverageKeepsFrozenParameters) {
  train(tuned({kFreeze, "training.ema_decay=0.9"}), {.run_dir = run});
  const SafetensorsFile before(source / "model.safetensors"), after(run / "model.safetensors"),
      average(run / "checkpoints/last/average.safetensors");
  EXPECT_TRUE(torch::equal(before.tensor("token_embedding.weight"), after.tensor("token_embedding.weight")));
  EXPECT_FALSE(average.contains("token_embedding.weight"));
  EXPECT_TRUE(average.contains("head.classifier.weight"));
}

TEST_F(FineTuning, PatternsWithoutAMatchAreNamed) {
  EXPECT_THAT(error_of({"training.freeze=[encodr.layers.0.*]"}),
              AllOf(StartsWith("training.freeze: no parameter of the model matches 'encodr.layers.0.*'"),
                    HasSubstr("did you mean 'encoder.layers.0.*'?")));
  EXPECT_THAT(error_of({"training.freeze=[xyzzy]"}),
              HasSubstr("; it has encoder.*, encoder_embedder.*, head.*"));
  EXPECT_THAT(error_of({"training.freeze=['*']"}), HasSubstr("leaves no parameter to train"));
  EXPECT_THAT(error_of({"training.parameter_groups=[{pattern: haed.*, lr_factor: 10}]"}),
              AllOf(StartsWith("training.parameter_groups: no trained parameter"), HasSubstr("'head.*'")));
  EXPECT_THAT(error_of({kFreeze, "training.parameter_groups=[{pattern: token_embedding.*}]"}),
              HasSubstr("no trained parameter"));
  EXPECT_THAT(error_of({"training.lora={targets: ['*.query']}"}),
              StartsWith("training.lora.targets: no linear map of the model matches '*.query'"));
  EXPECT_THAT(error_of({"training.lora={trained: [pooler.*]}"}),
              StartsWith("training.lora.trained: no parameter"));
  EXPECT_THAT(error_of({"training.lora={rank: 64}"}), StartsWith("training.lora.rank: 64 is more than 16"));
  // The new head would stay as it is drawn.
  EXPECT_THAT(error_of({"training.lora={trained: []}"}),
              AllOf(StartsWith("training.lora.trained: head."), HasSubstr("would stay random")));
}

TEST(Patterns, StandForWholeNames) {
  for (const auto& [pattern, name, matches] :
       std::vector<std::tuple<const char*, const char*, bool>>{{"a.b", "a.b", true},
                                                               {"a.b", "a.bc", false},
                                                               {"a.*", "a.b.c", true},
                                                               {"a.*", "a", false},
                                                               {"*", "", true},
                                                               {"", "", true},
                                                               {"", "a", false},
                                                               {"*.q", "x.q", true},
                                                               {"*.q", "x.q.y.q", true},
                                                               {"*.q", "x.qq", false},
                                                               {"a*b*c", "abbc", true},
                                                               {"a*b*c", "acb", false},
                                                               {"**a", "ba", true},
                                                               {"a?", "ab", false},
                                                               {"x*", "xx", true},
                                                               {"a*a", "a", false}})
    EXPECT_EQ(matches_any({pattern}, name), matches) << pattern << " " << name;
}

/// Parameters of which the second half has values of its own.
TEST(ParameterGroups, StepAsOptimizersOfTheirOwn) {
  const auto parameters = [] {
    torch::manual_seed(3);
    std::vector<Parameter> made;
    for (const char* name : {"body.weight", "body.bias", "head.weight", "head.bias"}) {
      const bool is_bias = std::string(name).ends_with("bias");
      auto tensor = is_bias ? torch::randn({5}) : torch::randn({5, 4});
      made.push_back(
          {name, tensor.requires_grad_(), is_bias ? ParameterRole::vector : ParameterRole::hidden_matrix});
      made.back().tensor.mutable_grad() = torch::randn_like(tensor);
    }
    return made;
  };
  for (const auto type :
       {OptimizerKind::adamw, OptimizerKind::sgd, OptimizerKind::lion, OptimizerKind::muon}) {
    const OptimizerConfig config{.type = type, .lr = 0.1, .weight_decay = 0.2};
    auto together = parameters();
    // The first matching pattern counts.
    apply_groups({{.pattern = "head.bias", .lr_factor = 0.5, .weight_decay = {}},
                  {.pattern = "head.*", .lr_factor = 10, .weight_decay = 0.7},
                  {.pattern = "*.bias", .lr_factor = 3, .weight_decay = {}}},
                 together);
    Optimizer(config, together).step(0.1);

    auto alone = parameters();
    const auto step = [&](size_t i, double lr, double weight_decay, DecayedParameters decayed) {
      auto own = config;
      own.weight_decay = weight_decay;
      own.decayed = decayed;
      Optimizer(own, {alone[i]}).step(lr);
    };
    step(0, 0.1, 0.2, DecayedParameters::matrices);
    step(1, 0.3, 0.2, DecayedParameters::matrices);
    step(2, 1.0, 0.7, DecayedParameters::all);
    step(3, 0.05, 0.2, DecayedParameters::matrices);
    for (size_t i = 0; i < alone.size(); ++i)
      EXPECT_TRUE(torch::allclose(together[i].tensor, alone[i].tensor, 1e-6, 1e-7)) << alone[i].name;
  }
}

TEST_F(FineTuning, DetrHasItsTwoGroups) {
  const auto with = [&](const std::string& group) {
    const auto out = world.path("detr" + std::to_string(group.size()));
    train(world.detection_experiment({"training.steps=2", "training.optimizer={type: sgd, weight_decay: 0}",
                                      "training.schedule={type: constant, warmup_steps: 0}",
                                      "training.parameter_groups=" + group}),
          {.run_dir = out});
    return out;
  };
  const SafetensorsFile slow(with("[{pattern: embedder.backbone.*, lr_factor: 1.0e-30}]") /
                             "checkpoints/last/model.safetensors"),
      usual(with("[]") / "checkpoints/last/model.safetensors");
  EXPECT_TRUE(slow.contains("embedder.backbone.stem.convolution.weight"));
  int changed = 0;
  for (const auto& name : slow.names()) {
    if (!name.starts_with("embedder.backbone.") || torch::equal(slow.tensor(name), usual.tensor(name)))
      continue;
    ++changed;
  }
  EXPECT_GT(changed, 10);
}

TEST_F(FineTuning, ListsOfGroupsAreReadAndWritten) {
  const auto experiment = tuned(
      {"training.parameter_groups=[{pattern: 'head.*', lr_factor: 10}, {pattern: a, weight_decay: 0}]"});
  const auto& groups = parse_experiment(dump_config(experiment), "again.yaml").training.parameter_groups;
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].pattern, "head.*");
  EXPECT_EQ(groups[0].lr_factor, 10);
  EXPECT_FALSE(groups[0].weight_decay);
  EXPECT_EQ(groups[1].lr_factor, 1);
  EXPECT_EQ(groups[1].weight_decay, 0);
  const auto problem = [&](const char* value) {
    return message_of<ConfigError>([&] { tuned({std::string("training.parameter_groups=") + value}); });
  };
  EXPECT_THAT(problem("[{pattern: a, lr: 1}]"),
              HasSubstr("unknown key 'lr' in training.parameter_groups[0]"));
  EXPECT_THAT(problem("{pattern: a}"), HasSubstr("must be a list of groups of keys"));
  EXPECT_THAT(problem("[a]"), HasSubstr("must be a list of groups of keys"));
  EXPECT_THAT(problem("[{lr_factor: 2}]"), HasSubstr("has an empty pattern"));
  EXPECT_THAT(problem("[{pattern: a, lr_factor: 0}]"),
              HasSubstr("training.parameter_groups[0].lr_factor must be > 0"));
}

// ---- LoRA

constexpr const char* kLora =
    "training.lora={rank: 3, alpha: 6, dropout: 0.1, targets: ['*.q', '*.v', '*.down']}";

torch::Tensor logits_of(const Run& run) {
  const torch::NoGradGuard no_grad;
  const auto batch = run.task().batches(Split::valid).batch(0, 0);
  return run.model().logits(run.model().features(batch));
}

TEST_F(FineTuning, LoraStoresWhatItTrains) {
  train(tuned({kLora}), {.run_dir = run});
  EXPECT_FALSE(fs::exists(run / "model.safetensors"));
  const SafetensorsFile before(source / "model.safetensors"), base(run / kBaseFile),
      adapter(run / "adapter.safetensors"), checkpoint(run / "checkpoints/last/adapter.safetensors");
  for (const auto& name : base.names())
    EXPECT_TRUE(torch::equal(base.tensor(name), before.tensor(name))) << name;
  EXPECT_TRUE(base.contains("encoder.layers.1.self_attention.q.weight"));
  EXPECT_EQ(adapter.names(), checkpoint.names());
  for (const auto& name : adapter.names())
    EXPECT_TRUE(is_adapter_parameter(name) || name.starts_with("head.")) << name;
  EXPECT_EQ(adapter.n_tensors(),
            2U * 3 * 2 + 4);  // A and B of three maps in two layers; pooler and classifier
  EXPECT_NE(checkpoint.tensor("encoder.layers.1.self_attention.q.lora_b").abs().max().item<double>(), 0);
  for (const auto& name : SafetensorsFile(run / "checkpoints/last/optimizer.safetensors").names())
    EXPECT_TRUE(name.find("lora_") != name.npos || name.starts_with("head.")) << name;
}

TEST_F(FineTuning, MergedAdaptersAreTheAdapters) {
  for (const char* projection : {"separate", "fused"}) {
    const std::string shape = std::string("model.projection=") + projection;
    const fs::path from = world.path(std::string("from-") + projection),
                   tuned_run = world.path(std::string("tuned-") + projection),
                   out = world.path(std::string("merged-") + projection);
    train(world.experiment("language_modeling", {"training.steps=4", shape}), {.run_dir = from});
    train(world.experiment("language_modeling", {kLora, shape, "init_from=" + from.string()}),
          {.run_dir = tuned_run});
    const auto merged = merge_run(tuned_run, out);
    EXPECT_EQ(merged.n_adapters, 3);
    const auto adapted = Run::open(tuned_run), ordinary = Run::open(out);
    EXPECT_FALSE(has_adapters(ordinary.model()));
    const auto expected = logits_of(adapted), actual = logits_of(ordinary);
    EXPECT_LT((actual - expected).abs().max().item<double>(), 1e-5);
    EXPECT_GT((actual - logits_of(Run::open(from))).abs().max().item<double>(), 1e-3);
    EXPECT_EQ(SafetensorsFile(out / "model.safetensors").names(),
              SafetensorsFile(from / "model.safetensors").names());
    EXPECT_THAT(message_of<UsageError>([&] { merge_run(tuned_run, out); }), HasSubstr("exists already"));
    EXPECT_THAT(message_of<UsageError>([&] { merge_run(from, world.path("x")); }),
                HasSubstr("has no adapters"));
    // A merged run is one to start from; one with adapters is not.
    const auto next = [&](const fs::path& begin) {
      train(world.experiment("language_modeling", {shape, "training.steps=1", "init_from=" + begin.string()}),
            {.run_dir = world.path("next"), .existing = ExistingRun::replace});
    };
    next(out);
    EXPECT_THAT(message_of<ConfigError>([&] { next(tuned_run); }), HasSubstr("merge"));
  }
}

/// Cached decoding, other formats of the base, and copies have the same adapters.
TEST(Adapters, WorkInEveryUse) {
  auto config = small_gpt2();
  config.projection = Projection::fused;
  const auto model = initialized_model(config, {.vocab_size = kVocabulary});
  add_adapters(*model, {.rank = 4, .targets = {"*.q", "*.v", "*.up"}}, HeadKind::language_modeling);
  {
    const torch::NoGradGuard no_grad;
    for (auto& item : model->named_parameters())
      if (is_adapter_parameter(item.key())) item.value().normal_(0, 0.2);
  }
  model->eval();
  const torch::NoGradGuard no_grad;
  const auto ids = torch::randint(kVocabulary, {2, 9}, torch::kInt64);
  const auto logits = [&](Model& of) {
    Batch batch;
    batch.input = {ids, {}};
    return of.logits(of.features(batch)).view({2, 9, kVocabulary});
  };
  const auto expected = logits(*model);
  DecodingState state = model->generative()->begin({.input = {.ids = ids}});
  for (int64_t t = 0; t < 9; ++t) {
    const auto next = model->generative()->forward({ids.narrow(1, t, 1), {}}, state);
    EXPECT_LT((next - expected.select(1, t)).abs().max().item<double>(), 1e-4);
  }
  const auto copy = copy_of(model);
  EXPECT_TRUE(torch::equal(logits(*copy), expected));
  EXPECT_FALSE(copy->named_parameters()["token_embedding.weight"].requires_grad());
  for (const auto& [format, tolerance] :
       {std::pair(WeightFormat::bf16, 0.1), std::pair(WeightFormat::int8, 0.1)}) {
    const auto stored = copy_of(model);
    store_weights(*stored, format);
    EXPECT_LT((logits(*stored) - expected).abs().mean().item<double>(), tolerance);
  }
  EXPECT_EQ(merge_adapters(*copy), 6);
  for (const auto& parameter : copy->parameters()) EXPECT_TRUE(parameter.requires_grad());
  EXPECT_LT((logits(*copy) - expected).abs().max().item<double>(), 1e-5);
}

TEST_F(FineTuning, LoraWithOtherOptionsHasTheSameLosses) {
  const auto losses = [&](std::vector<std::string> overrides) {
    overrides.insert(overrides.begin(), {kLora, "training.log_every=1", "training.batch_size=8"});
    train(tuned(overrides), {.run_dir = run, .existing = ExistingRun::replace});
    std::vector<double> values;
    for (const auto& row : metrics(run))
      if (row.contains("train_loss")) values.push_back(row["train_loss"]);
    return values;
  };
  const auto usual = losses({});
  ASSERT_EQ(usual.size(), 20U);
  EXPECT_EQ(losses({"training.activation_checkpointing=every_layer"}), usual);
  EXPECT_THAT(losses({"training.threads=2"}), ::testing::Pointwise(::testing::DoubleNear(1e-4), usual));
  EXPECT_THAT(losses({"training.precision=bf16"}), ::testing::Pointwise(::testing::DoubleNear(0.05), usual));
}

TEST_F(FineTuning, AKilledRunGoesOnToTheSameBits) {
  const auto experiment = tuned({kLora, "training.ema_decay=0.9"});
  ASSERT_EQ(Child([&] { return train(experiment, {.run_dir = world.path("whole")}), 0; }).wait(), 0);
  for (const int64_t step : {1, 4, 6, 7, 13, 20}) {
    Child child([&, at = step] {
      auto options = going_on_with(run);
      options.on_progress = [&](const TrainProgress& progress) {
        if (progress.step == at && progress.message.empty()) ::raise(SIGKILL);
      };
      return train(experiment, options), 0;
    });
    ASSERT_EQ(child.wait(), -SIGKILL) << "at step " << step;
  }
  ASSERT_EQ(Child([&] { return train(experiment, going_on_with(run)), 0; }).wait(), 0);
  for (const char* file :
       {"base.safetensors", "adapter.safetensors", "samples.txt", "checkpoints/last/adapter.safetensors",
        "checkpoints/last/optimizer.safetensors", "checkpoints/last/average.safetensors"})
    EXPECT_TRUE(read_file(run / file) == read_file(world.path("whole") / file)) << file;
  EXPECT_EQ(timeless_metrics(run), timeless_metrics(world.path("whole")));
}

TEST_F(FineTuning, AnotherBaseIsRefused) {
  train(tuned({kLora, "training.steps=8"}), {.run_dir = run});
  train(tuned({kLora, "training.seed=7", "training.steps=8"}), {.run_dir = world.path("other")});
  const auto go_on = [&] { train(tuned({kLora, "training.steps=12"}), going_on_with(run)); };
  // The adapters of another base: the same one, until one of its numbers is changed.
  TensorMap tensors;
  StringMap metadata;
  {
    const SafetensorsFile base(run / kBaseFile);
    for (const auto& name : base.names()) tensors.emplace(name, base.tensor(name));
    metadata = base.metadata();
  }
  tensors.begin()->second.view({-1})[0] += 1e-3;
  save_safetensors(run / kBaseFile, tensors, metadata);
  EXPECT_THAT(message_of<CheckpointError>(go_on), HasSubstr("base.safetensors: damaged"));
  EXPECT_THAT(message_of<CheckpointError>([&] { merge_run(run, world.path("out")); }), HasSubstr("damaged"));
  save_safetensors(run / kBaseFile, tensors, {{"sha256", hash_of_tensors(tensors)}});
  EXPECT_THAT(message_of<CheckpointError>(go_on), HasSubstr("belongs to another base.safetensors"));
  EXPECT_THAT(message_of<CheckpointError>([&] { Run::open(run); }), HasSubstr("belongs to another"));
  EXPECT_THAT(message_of<ConfigError>([&] { train(tuned({"training.steps=12"}), going_on_with(run)); }),
              HasSubstr("training.lora"));
}

}  // namespace
}  // namespace zoo::testing
