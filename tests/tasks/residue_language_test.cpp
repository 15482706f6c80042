// Models that fold and begin with a language model of proteins.

#include "models/families/folding/residue_language.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "base/residues/residues.h"
#include "checkpoints/initial_weights.h"
#include "checkpoints/run.h"
#include "models/folding_model.h"
#include "models/inference_scope.h"
#include "tasks/structures/folded_chain.h"
#include "tests/support/training.h"

namespace zoo::testing {
namespace {

using ::testing::HasSubstr;

const std::string kLanguage =
    "language_model: {d_model: 16, n_layers: 2, n_heads: 2, position: rotary, max_positions: 64, attention: "
    "[{type: window, size: 3}, full], projection: fused}";

std::vector<std::string> flow_keys(const std::string& language = kLanguage) {
  return {"model={architecture: {type: fold_flow, steps: 3, time_width: 8, " + language +
          "}, d_model: 24, n_heads: 4, dropout: 0}"};
}

std::vector<std::string> pairs_keys(const std::string& language = kLanguage) {
  return {"model.architecture=fold_pairs",
          "model.architecture={type: fold_pairs, n_blocks: 1, residue_width: 16, pair_width: 8, "
          "residue_heads: 2, "
          "structure: {residue_width: 16, pair_width: 8, n_heads: 2, n_blocks: 2}, " +
              language + "}"};
}

/// A trained language model of residues, whose vocabulary is in another order than the kinds of residues.
struct LanguageWorld {
  explicit LanguageWorld(const std::string& letters = "ARNDCQEGHILKMFPSTWYVX") {
    std::string text;
    for (size_t i = 0; i < 40; ++i) {
      for (size_t j = 0; j < 20; ++j) text += letters[(7 * i + j * (i + 3)) % letters.size()];
      text += "\n";
    }
    world.dir().write("data/residues.txt", text);
    train(world.experiment("masked_language_modeling",
                           {"data.train=residues.txt", "data.valid_fraction=0.2", "model.n_layers=2",
                            "model.position=rotary", "model.max_positions=64", "training.steps=6",
                            "model.attention=[{type: window, size: 3}, full]", "model.projection=fused"}),
          {.run_dir = world.path("language")});
  }

  Experiment folding(std::vector<std::string> overrides) const {
    overrides.push_back("init_from=" + world.path("language").string());
    return world.structure_experiment(overrides);
  }
  std::string problem(const std::vector<std::string>& overrides) const {
    return message_of<ConfigError>([&] { open_initial_model(folding(overrides)); });
  }

  TinyWorld world;
};

TokenBatch two_chains() {
  const auto one = residues_of("MKTAYIAKQR"), other = residues_of("GHWXN");
  auto ids = torch::full({2, 10}, kUnknownResidue, torch::kInt64);
  ids[0].copy_(one);
  ids[1].narrow(0, 0, 5).copy_(other);
  return {.ids = ids, .lengths = torch::tensor({10, 5}, torch::kInt64)};
}

ResidueLanguageImpl& language_of(Model& model) {
  for (const auto& module : model.modules()) {
    if (auto* const found = dynamic_cast<ResidueLanguageImpl*>(module.get())) return *found;
  }
  throw UsageError("no language model");
}

TEST(ResidueLanguage, TheInnerModelReadsAChainAsItsRunDoes) {
  const LanguageWorld language;
  const auto run = zoo::Run::open(language.world.path("language"));
  for (const auto& keys : {flow_keys(), pairs_keys()}) {
    const auto experiment = language.folding(keys);
    const auto source = open_initial_model(experiment);
    ASSERT_TRUE(source);
    const auto task = task_of_new_run(experiment);
    EXPECT_FALSE(task->vocabulary().tokenizer) << "chains are not tokens";
    const auto model = initialized_model(task->experiment(), *task);
    const auto report = load_initial_weights(*source, *task, *model);
    EXPECT_THAT(report, HasSubstr("starts from"));
    EXPECT_THAT(report, HasSubstr("language.norm"));
    EXPECT_THAT(report, HasSubstr("left behind: head"));
    const InferenceScope scope(*model);
    const auto states = language_of(*model).states(two_chains()).back();
    for (const auto& [row, text] : {std::pair{0, "MKTAYIAKQR"}, std::pair{1, "GHWXN"}}) {
      const InferenceScope other(run.model());
      const auto& tokenizer = *run.task().vocabulary().tokenizer;
      auto ids = tokenizer.encode(text);
      ids.insert(ids.begin(), tokenizer.special().cls);
      ids.push_back(tokenizer.special().sep);
      Batch batch;
      batch.input.ids = torch::tensor(ids).unsqueeze(0);
      const auto expected = run.model().hidden_states(batch)[0];
      EXPECT_LT((states[row].narrow(0, 0, expected.size(0)) - expected).abs().max().item<double>(), 1e-5)
          << text;
    }
  }
}

TEST(ResidueLanguage, TheRunGivesTheKeysOfTheInnerModel) {
  const LanguageWorld language;
  for (const auto& family : {"fold_flow", "fold_pairs"}) {
    const auto experiment = language.folding({"model={architecture: " + std::string(family) + "}"});
    const auto keys = to_text(experiment.model.architecture);
    for (const char* const key : {"n_layers: 2", "projection: fused", "attention: [{type: window, size: 3,"})
      EXPECT_THAT(keys, HasSubstr(key)) << family;
    EXPECT_EQ(experiment.model.n_layers, 1) << "its own";
    EXPECT_TRUE(open_initial_model(experiment));
  }
}

TEST(ResidueLanguage, WhatIsFrozenKeepsItsBitsAndTheRestLearns) {
  const LanguageWorld language;
  const auto source = zoo::Run::open(language.world.path("language"));
  const auto before = source.model().named_parameters();
  auto keys = flow_keys();
  keys.insert(keys.end(), {"training.steps=3",
                           "training.freeze=[language.token_embedding.*, "
                           "language.encoder*]"});
  train(language.folding(keys), {.run_dir = language.world.path("frozen")});
  keys.back() = "training.freeze=[]";
  train(language.folding(keys), {.run_dir = language.world.path("free")});
  const auto frozen = zoo::Run::open(language.world.path("frozen")),
             free = zoo::Run::open(language.world.path("free"));
  const std::string name = "encoder.layers.0.feed_forward.up.weight";
  const auto trained = [&](const zoo::Run& run) {
    return run.model().named_parameters()["language." + name];
  };
  EXPECT_TRUE(torch::equal(trained(frozen), before[name]));
  EXPECT_FALSE(torch::equal(trained(free), before[name]));
  // Such a run is complete: it folds, and another run starts from all of it.
  EXPECT_EQ(fold_chain(frozen.model(), {.name = "chain", .letters = "MKTAY"})
                .structure.models.front()
                .chains.front()
                .residues.size(),
            5U);
  auto next = flow_keys();
  next.push_back("init_from=" + language.world.path("free").string());
  const auto experiment = language.world.structure_experiment(next);
  const auto task = task_of_new_run(experiment);
  const auto model = initialized_model(task->experiment(), *task);
  load_initial_weights(*open_initial_model(experiment), *task, *model);
  EXPECT_TRUE(torch::equal(model->named_parameters()["language." + name], trained(free)));
}

TEST(ResidueLanguage, ARowDoesNotDependOnItsCompany) {
  const TinyWorld world;
  const auto task = task_of_new_run(world.structure_experiment(flow_keys()));
  torch::manual_seed(3);
  const auto model = initialized_model(task->experiment(), *task);
  const InferenceScope scope(*model);
  const auto chains = two_chains();
  const auto together = language_of(*model).forward(chains);
  const auto alone =
      language_of(*model).forward({.ids = chains.ids.narrow(0, 1, 1).narrow(1, 0, 5), .lengths = {}});
  EXPECT_LT((together[1].narrow(0, 0, 5) - alone[0]).abs().max().item<double>(), 1e-6);
}

TEST(ResidueLanguage, OtherModelsAreRefusedInOneLine) {
  const LanguageWorld language;
  EXPECT_EQ(language.problem(flow_keys()), "no error");
  EXPECT_THAT(language.problem(flow_keys("language_model: {projection: separate}")),
              HasSubstr("model.architecture.language_model.projection is separate, but model.projection is "
                        "fused in"));
  // A run of another kind cannot be within.
  train(language.world.experiment("language_modeling", {"training.steps=1"}),
        {.run_dir = language.world.path("decoder")});
  EXPECT_THAT(message_of<ConfigError>([&] {
                open_initial_model(language.world.structure_experiment(
                    {"init_from=" + language.world.path("decoder").string()}));
              }),
              HasSubstr("of a fold_flow must be rotary, not learned"));
  auto deeper = kLanguage;
  deeper.replace(deeper.find("n_layers: 2"), 11, "n_layers: 3");
  const auto experiment = language.folding(flow_keys(deeper));
  const auto task = task_of_new_run(experiment);
  const auto model = initialized_model(task->experiment(), *task);
  EXPECT_THAT(
      message_of<ConfigError>([&] { load_initial_weights(*open_initial_model(experiment), *task, *model); }),
      HasSubstr("which model.architecture.language_model needs"));
  const TinyWorld world;
  EXPECT_THAT(message_of<ConfigError>([&] {
                const auto bad = task_of_new_run(world.structure_experiment(
                    flow_keys("language_model: {d_model: 16, n_heads: 2, token_dropout: 3}")));
                initialized_model(bad->experiment(), *bad);
              }),
              HasSubstr("must be at least 23"));
}

TEST(ResidueLanguage, AVocabularyWithoutResiduesIsRefused) {
  const LanguageWorld language("ARND");
  const auto experiment = language.folding(flow_keys());
  const auto task = task_of_new_run(experiment);
  const auto model = initialized_model(task->experiment(), *task);
  EXPECT_THAT(
      message_of<Error>([&] { load_initial_weights(*open_initial_model(experiment), *task, *model); }),
      HasSubstr("has no token for C"));
}

}  // namespace
}  // namespace zoo::testing
