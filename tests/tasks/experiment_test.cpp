#include "tasks/experiment.h"

#include <filesystem>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "experiments/load_experiment.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace zoo {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string error_of(std::string_view text, const std::vector<std::string>& overrides = {}) {
  return testing::message_of<ConfigError>([&] { parse_experiment(text, "x.yaml", overrides); });
}

TEST(Experiment, DefaultsAreValidAndSurviveTheirDump) {
  const auto experiment = parse_experiment("name: x", "x.yaml");
  const auto text = dump_config(experiment);
  EXPECT_EQ(dump_config(parse_experiment(text, "dump.yaml")), text);
  EXPECT_FALSE(config_reference<Experiment>().empty());
}

// What the family's authors used, where the file says nothing else; a run's own file says everything.
TEST(Experiment, FamiliesBringTheirDefaults) {
  const std::string detr = "task: object_detection\nmodel: {architecture: {type: detr}";
  const auto model = parse_experiment(detr + "}", "x.yaml").model;
  EXPECT_EQ(model.init, Initialization::detr);
  EXPECT_EQ(model.activation, Activation::relu);
  EXPECT_EQ(model.position, Position::sinusoidal);
  const auto own = parse_experiment(detr + ", init: normal, activation: gelu}", "x.yaml");
  EXPECT_EQ(own.model.init, Initialization::normal);
  EXPECT_EQ(own.model.activation, Activation::gelu);
  EXPECT_EQ(own.model.position, Position::sinusoidal);
  EXPECT_EQ(
      parse_experiment("name: x", "x.yaml", {"task=object_detection", "model.architecture=detr"}).model.init,
      Initialization::detr);
  const std::string images = "task: image_classification\nmodel: {architecture: ";
  EXPECT_EQ(parse_experiment(images + "vit}", "x.yaml").model.norm_eps, 1e-6);
  EXPECT_EQ(parse_experiment(images + "resnet}", "x.yaml").model.dropout, 0);
  EXPECT_EQ(parse_experiment("name: x", "x.yaml").model.init, Initialization::normal);
  const auto text = dump_config(own);
  EXPECT_EQ(dump_config(parse_experiment(text, "dump.yaml")), text);
}

// What users of a task expect where the file says nothing: translations are searched for, texts are drawn.
TEST(Experiment, TasksBringTheirDefaultsOfGeneration) {
  const auto generation = [](const std::string& task, const std::string& keys = "") {
    const auto model = task == "text_to_text" ? "\nmodel: {architecture: encoder_decoder}" : "";
    const auto text = "task: " + task + model + (keys.empty() ? "" : "\ngeneration: {" + keys + "}");
    return parse_experiment(text, "x.yaml").generation;
  };
  const auto expect = [&](const GenerationConfig& found, int64_t beam, double temperature) {
    EXPECT_EQ(found.beam, beam);
    EXPECT_EQ(found.temperature, temperature);
  };
  expect(generation("language_modeling"), 1, 1);
  expect(generation("text_to_text"), 4, 0);
  expect(generation("text_to_text", "max_new_tokens: 9"), 4, 0);
  expect(generation("text_to_text", "beam: 1"), 1, 0);
  expect(generation("text_to_text", "beam: 7"), 7, 0);
  expect(generation("text_to_text", "temperature: 0"), 4, 0);
  expect(generation("text_to_text", "temperature: 0.7"), 1, 0.7);
  expect(generation("text_to_text", "top_p: 0.9"), 1, 1);
  expect(generation("text_to_text", "num_samples: 6"), 6, 0);
  expect(generation("text_to_text", "prompt_lookup: 2"), 1, 0);
  expect(generation("text_classification"), 1, 0);
  expect(generation("text_classification", "temperature: 0.5"), 1, 0.5);
  const auto text = dump_config(parse_experiment("task: text_to_text\nmodel: {architecture: decoder}", "x"));
  EXPECT_EQ(dump_config(parse_experiment(text, "dump.yaml")), text);
}

TEST(Experiment, IsNamedAfterItsFileUnlessItSaysAName) {
  const testing::TempDir dir;
  const auto nameless = dir.write("small.v2.yaml", "model: {n_layers: 1}");
  dir.write("base.yaml", "name: base");
  const auto named = dir.write("extending.yaml", "extends: base.yaml");
  EXPECT_EQ(load_experiment(nameless).name, "small.v2");
  EXPECT_EQ(load_experiment(nameless, {"name=other"}).name, "other");
  EXPECT_EQ(load_experiment(named).name, "extending") << "with --overwrite it would replace runs/base";
  EXPECT_EQ(load_experiment(dir.write("own.yaml", "extends: [base.yaml, extending.yaml]\nname: mine")).name,
            "mine");
  EXPECT_EQ(parse_experiment("task: language_modeling", "x.yaml").name, "unnamed");
  const auto hidden = dir.write(".yaml", "model: {n_layers: 1}");
  EXPECT_THROW(load_experiment(hidden), ConfigError) << "runs/.yaml";
}

TEST(Experiment, NamesPlaceAndKeyOfWhatIsWrongInAPart) {
  EXPECT_THAT(error_of("model:\n  d_model: 30\n  n_heads: 4\n"),
              AllOf(HasSubstr("x.yaml:3:"), HasSubstr("model.n_heads"), HasSubstr("30")));
  EXPECT_THAT(error_of("training: {optimizer: {betas: [0.9]}}"),
              HasSubstr("training.optimizer.betas must be two"));
  EXPECT_THAT(error_of("training: {optimizer: {betas: [0.9, 1.0]}}"), HasSubstr("< 1"));
  EXPECT_THAT(error_of("training: {optimizer: {momentum: 0.9}}"), HasSubstr("training.optimizer.momentum"));
  EXPECT_THAT(error_of("training: {optimizer: {type: muon, momentum: 0.9}}"), HasSubstr("muon.momentum"));
  EXPECT_THAT(error_of("training: {optimizer: {type: lion, muon: {nesterov: false}}}"),
              HasSubstr("training.optimizer.muon has no meaning for lion"));
  EXPECT_THAT(error_of("training: {optimizer: {adafactor: {min_rms: 0.1}}}"),
              HasSubstr("training.optimizer.adafactor has no meaning for adamw"));
  EXPECT_THAT(error_of("training: {optimizer: {decayed: biases}}"), HasSubstr("matrices_without_embeddings"));
  EXPECT_THAT(error_of("training: {ema_decay: 1}"), HasSubstr("training.ema_decay"));
  EXPECT_THAT(error_of("training: {steps: 10, checkpoint_every: 4, average_last: 4}"),
              HasSubstr("training.average_last 4 is more than the 3 checkpoints of 10 steps"));
  EXPECT_THAT(error_of("training: {schedule: {type: noam}}"), HasSubstr("training.schedule.warmup_steps"));
  EXPECT_THAT(error_of("training: {schedule: {type: noam, warmup_steps: 4, decay_steps: 5}}"),
              HasSubstr("no meaning for noam"));
  EXPECT_THAT(error_of("training: {schedule: {warmup_steps: 9, decay_steps: 5}}"), HasSubstr("warm-up"));
  EXPECT_THAT(
      error_of(
          "training: {steps: 10, schedule: {type: warmup_stable_decay, warmup_steps: 6, decay_steps: 5}}"),
      HasSubstr("more than the 10"));
  EXPECT_THAT(error_of("training: {stesp: 10}"), HasSubstr("steps"));
  EXPECT_THAT(error_of("training: {steps: 0}"), HasSubstr("training.steps must be >= 1"));
  EXPECT_THAT(error_of("name: a/b"), HasSubstr("name"));
  EXPECT_THAT(error_of("init_from: ''"), HasSubstr("x.yaml:1:12: init_from names no run"));
}

TEST(Experiment, NamesContradictionsBetweenParts) {
  EXPECT_THAT(
      error_of("task: text_to_text\nmodel: {architecture: encoder}"),
      HasSubstr("model.architecture must be decoder or encoder_decoder for text_to_text, not encoder"));
  EXPECT_THAT(error_of("task: masked_language_modeling\nmodel: {architecture: decoder}"),
              HasSubstr("model.architecture must be encoder"));
  EXPECT_THAT(error_of("task: language_modeling\nmodel: {architecture: encoder}"),
              HasSubstr("model.architecture must be decoder"));
  EXPECT_THAT(error_of("training: {batch_tokens: 4000}"),
              HasSubstr("training.batch_tokens is not for language_modeling"));
  EXPECT_THAT(
      error_of("data: {sequence_length: 64}\nmodel: {max_positions: 32}"),
      AllOf(HasSubstr("x.yaml:1:"), HasSubstr("data.sequence_length"), HasSubstr("model.max_positions 32")));
  EXPECT_THAT(error_of("data: {target_length: 9}"), HasSubstr("data.target_length is for text_to_text"));
  EXPECT_THAT(error_of("training: {best_by: bleu}"),
              HasSubstr("training.best_by cannot be bleu for language_modeling"));
  EXPECT_THAT(error_of("task: text_to_text\ntraining: {best_by: accuracy}"),
              HasSubstr("training.best_by cannot be accuracy for text_to_text"));
  EXPECT_THAT(error_of("task: text_classification\ntraining:\n  best_by: acuracy\n"),
              AllOf(HasSubstr("x.yaml:3:12: training.best_by cannot be acuracy for text_classification"),
                    HasSubstr("which has loss, accuracy and last")));
  EXPECT_EQ(error_of("task: text_classification\nmodel: {architecture: encoder}\n"
                     "training: {best_by: accuracy}"),
            "no error");
  EXPECT_EQ(error_of("training: {best_by: last}"), "no error");
  EXPECT_THAT(error_of("training: {best_by: last, patience: 3}"), HasSubstr("which patience needs"));
  EXPECT_THAT(error_of("training: {best_by: last, average_last: 2}"),
              HasSubstr("whether average_last is better"));
  for (const char* architecture : {"encoder", "decoder", "encoder_decoder"}) {
    EXPECT_EQ(error_of("task: text_classification", {fmt::format("model.architecture={}", architecture)}),
              "no error");
  }
}

TEST(Experiment, NamesTypesThatThereAreNot) {
  EXPECT_THAT(error_of("task: language_modelling"),
              AllOf(HasSubstr("x.yaml:1:7: task must be one of language_modeling, "),
                    HasSubstr("did you mean 'language_modeling'?")));
  EXPECT_THAT(error_of("model: {architecture: decodr}"),
              AllOf(HasSubstr("x.yaml:1:23: model.architecture must be one of encoder, decoder, "),
                    HasSubstr("did you mean 'decoder'?")));
  EXPECT_THAT(error_of("training: {objective: cross_entropi}"),
              AllOf(HasSubstr("training.objective must be one of task, cross_entropy"),
                    HasSubstr("did you mean 'cross_entropy'?")));
  EXPECT_EQ(error_of("training: {objective: cross_entropy}"), "no error");
}

TEST(Experiment, SelectsTheAttentionOfEachLayer) {
  const auto attention = [](const std::string& value) { return "model: {n_layers: 2, attention: " + value; };
  for (const char* accepted : {"full}", "{type: full}}", "[full]}", "[full, {type: full}]}"}) {
    const auto experiment = parse_experiment(attention(accepted), "x.yaml");
    for (int64_t layer = 0; layer < 2; ++layer)
      EXPECT_TRUE(experiment.model.attention_of(layer) == "full") << accepted;
    EXPECT_EQ(dump_config(parse_experiment(dump_config(experiment), "dump.yaml")), dump_config(experiment));
  }
  EXPECT_THAT(error_of(attention("ful}")),
              AllOf(HasSubstr("x.yaml:1:33: model.attention must be one of full"), HasSubstr("not 'ful'"),
                    HasSubstr("did you mean 'full'?")));
  EXPECT_THAT(error_of(attention("[full, round]}")),
              AllOf(HasSubstr("model.attention[1] must be one of full"), HasSubstr("not 'round'")));
  EXPECT_THAT(error_of(attention("{type: full, size: 3}}")),
              HasSubstr("unknown key 'size' of the type full"));
  EXPECT_THAT(error_of(attention("[]}")), HasSubstr("model.attention must be one type or a list"));

  // Longer than the layers.
  EXPECT_THAT(
      error_of(attention("[full, full, full]}")),
      AllOf(HasSubstr("x.yaml:1:33: model.attention is a list of 3 for 2 layers"), HasSubstr("shorten it")));
  EXPECT_THAT(error_of("model: {n_layers: 1, attention: [full, full]}"),
              HasSubstr("model.attention is a list of 2 for 1 layer:"));
  const auto both = [](int64_t n_decoder_layers) {
    return error_of("task: text_to_text",
                    {"model={architecture: encoder_decoder, n_layers: 1, attention: [full, full, full]}",
                     fmt::format("model.n_decoder_layers={}", n_decoder_layers)});
  };
  EXPECT_THAT(both(2), HasSubstr("model.attention is a list of 3 for 2 layers"));
  EXPECT_EQ(both(3), "no error");

  // Shorter: it begins again.
  ModelConfig model;
  model.attention = {Selection("a"), Selection("b"), Selection("a")};
  std::string types;
  for (int64_t layer = 0; layer < 8; ++layer) types += model.attention_of(layer).type;
  EXPECT_EQ(types, "abaabaab");
}

TEST(Experiment, SaysWhatIsWrongWithAPattern) {
  const auto error = [](const std::string& attention, const std::string& architecture = "decoder",
                        const std::string& position = "rotary") {
    return error_of(
        fmt::format("task: {}\ndata: {{sequence_length: 64}}\nmodel: {{architecture: {}, n_layers: 2, "
                    "max_positions: 64, position: {}, attention: {}}}",
                    architecture == "decoder" ? "language_modeling" : "masked_language_modeling",
                    architecture, position, attention));
  };
  EXPECT_EQ(error("{type: window, size: 8}"), "no error");
  EXPECT_THAT(error("{type: window, size: 0}"), HasSubstr("size"));
  EXPECT_THAT(error("{type: window, dilation: 64}"),
              HasSubstr("window has dilation 64, but max_positions is 64: make it smaller"));
  EXPECT_THAT(error("{type: window, global: class}"), HasSubstr("which is for encoders"));
  EXPECT_THAT(error("{type: window, global: ids}", "encoder"), HasSubstr("global_ids"));
  EXPECT_THAT(error("{type: window, n_global: 2}"), HasSubstr("for global: first"));
  EXPECT_THAT(error("{type: window, global_projections: true}"), HasSubstr("global_projections"));
  EXPECT_THAT(error("window", "decoder", "alibi"), HasSubstr("window cannot have position alibi"));
  EXPECT_THAT(error("{type: strided, stride: 1}"), HasSubstr("stride"));
  EXPECT_THAT(error("{type: strided, stride: 64}"), HasSubstr("strided has stride 64"));
  EXPECT_THAT(error("{type: fixed, stride: 8, n_summary: 8}"), HasSubstr("must be less than its stride 8"));
  EXPECT_THAT(error("{type: blocks, size: 64}"), HasSubstr("blocks has size 64"));
  EXPECT_THAT(error("{type: linformer, k: 65}", "encoder", "learned"), HasSubstr("k 65"));
  EXPECT_THAT(error("{type: linformer, k: 8}", "decoder", "learned"),
              HasSubstr("linformer cannot be causal"));
  EXPECT_THAT(error("delta", "encoder"), HasSubstr("delta sees only the past"));
  EXPECT_THAT(error("[full, full, window]"), HasSubstr("is a list of 3 for 2 layers"));
}

TEST(Experiment, EveryFileOfTheCatalogueLoads) {
  const auto folder = std::filesystem::absolute(__FILE__).parent_path() / "../../configs";
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const auto& path = entry.path();
    // Comparisons are files of another kind.
    if (path.extension() != ".yaml" || path.parent_path().filename() == "compare") continue;
    SCOPED_TRACE(path.string());
    std::string name;
    EXPECT_NO_THROW(name = load_experiment(path).name);
    EXPECT_TRUE(names.insert(name).second) << name << " would be the directory of two runs";
  }
  EXPECT_GT(names.size(), 15U);
}

TEST(Experiment, FlattenKnowsEveryDifference) {
  const auto a = flatten(parse_experiment("name: x", "x.yaml"));
  const auto b =
      flatten(parse_experiment("training: {optimizer: {lr: 0.0010000000000000002}}\nname: x", "x.yaml"));
  ASSERT_EQ(a.size(), b.size());
  std::vector<std::string> different;
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].key, b[i].key);
    if (a[i].value != b[i].value) different.push_back(a[i].key);
  }
  EXPECT_THAT(different, ::testing::ElementsAre("training.optimizer.lr"));
}

}  // namespace
}  // namespace zoo
