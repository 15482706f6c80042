// What a comparison file may contain, and its errors.

#include "comparison/planning/comparison_config.h"

#include <functional>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace zoo::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kBase = R"(
task: language_modeling
data: {train: text.txt, sequence_length: 16, tokenizer: {type: char}}
model: {architecture: decoder, d_model: 16, n_layers: 1, n_heads: 2, max_positions: 32}
training: {steps: 20}
)";

class ComparisonFile : public ::testing::Test {
 protected:
  ComparisonFile() { dir_.write("base.yaml", kBase); }
  Comparison load(const std::string& text, const std::vector<std::string>& overrides = {}) {
    return load_comparison(dir_.write("study.yaml", text), overrides);
  }
  std::string error_of(const std::string& text) {
    return message_of<ConfigError>([&] { load(text); });
  }
  static std::vector<std::string> names(const Comparison& comparison) {
    std::vector<std::string> result;
    for (const auto& variant : comparison.variants) result.push_back(variant.name);
    return result;
  }

  TempDir dir_;
};

TEST_F(ComparisonFile, AnAblationHasTheModelsOfAnotherVariant) {
  const auto comparison = load(R"(
base: base.yaml
variants:
  wide: {model: {d_model: 32}}
  narrow: {}
  cut: {ablate: {of: wide, parts: [0.1, layers.0.feed_forward], by: mean, batches: 2}}
grid: {training.optimizer.lr: [0.1, 0.2]}
tune: {grid: {training.batch_size: [1, 2]}}
)");
  EXPECT_THAT(names(comparison), ElementsAre("wide, lr=0.1", "wide, lr=0.2", "narrow, lr=0.1",
                                             "narrow, lr=0.2", "cut, lr=0.1", "cut, lr=0.2"));
  const auto& cut = comparison.variants[5];
  EXPECT_FALSE(comparison.variants[1].ablation);
  ASSERT_TRUE(cut.ablation);
  EXPECT_EQ(cut.ablation->of, "wide, lr=0.2");
  EXPECT_THAT(cut.ablation->parts, ElementsAre("0.1", "layers.0.feed_forward"));
  EXPECT_EQ(cut.ablation->by, AblationBy::mean);
  EXPECT_EQ(cut.ablation->batches, 2);
  EXPECT_EQ(cut.experiment.model.d_model, 32);
  EXPECT_TRUE(cut.candidates.empty()) << "it has the choice of its model";
}

TEST_F(ComparisonFile, AnAblationOfNothingIsAnError) {
  const auto error = [&](const std::string& variants) {
    return error_of("base: base.yaml\nvariants:\n  a: {}\n" + variants);
  };
  EXPECT_THAT(error("  b: {ablate: {of: c, parts: [0.1]}}"),
              HasSubstr("study.yaml:4:15: variant 'b': ablate: of: no variant above it is called 'c'"));
  EXPECT_THAT(error("  b: {ablate: {of: b, parts: [0.1]}}"), HasSubstr("no variant above it"));
  EXPECT_THAT(error("  b: {ablate: {of: a, parts: [0.1]}}\n  c: {ablate: {of: b, parts: [0.1]}}"),
              HasSubstr("'b' is an ablation itself"));
  EXPECT_THAT(error("  b: {model: {d_model: 8}, ablate: {of: a, parts: [0.1]}}"),
              HasSubstr("has no other keys"));
  EXPECT_THAT(error("  b: {ablate: {of: a}}"), HasSubstr("give one of `parts`"));
  EXPECT_THAT(error("  b: {ablate: {of: a, parts: [0.1], strongest: induction}}"),
              HasSubstr("give one of `parts`"));
  EXPECT_THAT(error("  b: {ablate: {of: a, parts: [0.1], heads: 2}}"), HasSubstr("heads is for `strongest`"));
  EXPECT_THAT(error("  b: {ablate: {of: a, parts: [0.1], batches: 2}}"), HasSubstr("zeros need no data"));
  EXPECT_THAT(error("  b: {ablate: {of: a, parts: [head]}}"), HasSubstr("names no part of a model"));
  EXPECT_THAT(error("  b: {ablate: {of: a, part: [0.1]}}"), HasSubstr("unknown key"));
  EXPECT_THAT(error("  b: {ablate: 3}"), HasSubstr("no group of keys"));
}

TEST_F(ComparisonFile, VariantsDifferInWhatTheySay) {
  const auto comparison = load(R"(
title: Two
base: base.yaml
variants:
  wide: {model: {d_model: 32}}
  narrow: {}
budget: {tokens: 1000}
seeds: 2
correction: benjamini_hochberg
inputs: [one, two]
)");
  EXPECT_EQ(comparison.settings.correction, Correction::benjamini_hochberg);
  EXPECT_EQ(comparison.settings.name, "study");
  EXPECT_EQ(comparison.settings.title, "Two");
  EXPECT_EQ(comparison.settings.seeds, 2);
  EXPECT_THAT(comparison.settings.inputs, ElementsAre("one", "two"));
  EXPECT_THAT(names(comparison), ElementsAre("wide", "narrow"));  // in the order of the file
  EXPECT_EQ(comparison.variants[0].experiment.model.d_model, 32);
  EXPECT_EQ(comparison.variants[1].experiment.model.d_model, 16);
  EXPECT_EQ(comparison.variants[1].experiment.model.n_layers, 1);
  EXPECT_EQ(comparison.budget()->kind, BudgetKind::tokens);
  EXPECT_EQ(comparison.budget()->amount, 1000);
}

TEST_F(ComparisonFile, TuningGivesEveryVariantTheSameCandidates) {
  const auto comparison = load(R"(
base: base.yaml
variants: {a: {}, b: {training: {optimizer: {weight_decay: 7}}}}
tune:
  grid:
    training.optimizer.lr: [0.1, 0.2]
    model.dropout: [0.0, 0.5]
  share: 0.5
  seeds: 2
)");
  EXPECT_EQ(comparison.settings.tune.share, 0.5);
  EXPECT_EQ(comparison.settings.tune.seeds, 2);
  ASSERT_EQ(comparison.variants.size(), 2U);
  EXPECT_EQ(comparison.variants[1].candidates[0].experiment.training.optimizer.weight_decay, 7);
  for (const auto& variant : comparison.variants) {
    ASSERT_EQ(variant.candidates.size(), 4U);
    EXPECT_EQ(variant.candidates[1].name, "lr=0.1, dropout=0.5");
    EXPECT_EQ(variant.candidates[1].experiment.training.optimizer.lr, 0.1);
    EXPECT_EQ(variant.candidates[1].experiment.model.dropout, 0.5);
  }
  EXPECT_TRUE(load("base: base.yaml\ntune: null").variants[0].candidates.empty());
  EXPECT_THAT(error_of("base: base.yaml\ntune: {share: 0.5}"), HasSubstr("tune needs `grid`"));
  EXPECT_THAT(error_of("base: base.yaml\ntune: 3"), HasSubstr("tune must be a group of keys"));
  EXPECT_THAT(error_of("base: base.yaml\ntune: {grid: {training.optimizer.lr: 3}}"),
              HasSubstr("tune.grid: training.optimizer.lr must be a list"));
  EXPECT_THAT(error_of("base: base.yaml\ntune: {grid: {training.lr: [3]}}"), HasSubstr("unknown key"));
  EXPECT_THAT(error_of("base: base.yaml\ntune: {share: 2, grid: {training.optimizer.lr: [3]}}"),
              HasSubstr("tune.share must be > 0 and <= 1"));
}

TEST_F(ComparisonFile, SizesAreEveryVariantAtEverySize) {
  const std::string sizes = "sizes: {small: {model: {d_model: 8}}, large: {model: {d_model: 32}}}\n";
  const auto comparison =
      load("base: base.yaml\nvariants: {a: {}, b: {model: {activation: relu}}}\n" + sizes);
  EXPECT_THAT(comparison.sizes, ElementsAre("small", "large"));
  EXPECT_THAT(names(comparison), ElementsAre("a, small", "a, large", "b, small", "b, large"));
  const auto& last = comparison.variants.back();
  EXPECT_EQ(last.variant, "b");
  EXPECT_EQ(last.without_size, "b");
  EXPECT_EQ(last.size, "large");
  EXPECT_EQ(last.cell, "large") << "compared with the first variant of this size";
  EXPECT_EQ(last.experiment.model.d_model, 32);
  EXPECT_EQ(last.experiment.model.activation, Activation::relu);
  const auto grid = load("base: base.yaml\ngrid: {model.n_layers: [1, 2]}\n" + sizes);
  EXPECT_EQ(grid.variants[3].name, "n_layers=2, large");
  EXPECT_EQ(grid.variants[3].without_size, "n_layers=2");
  EXPECT_EQ(grid.variants[3].cell, "large");
  EXPECT_THAT(error_of("base: base.yaml\nsizes: {one: {}}"), HasSubstr("sizes must be two or more names"));
  EXPECT_THAT(error_of("base: base.yaml\nbudget: {flops: 1.0e9}\n" + sizes),
              HasSubstr("with `sizes`, larger models need more FLOPs and time"));
}

// One of two values would be lost, and rows with different names would be the same model.
TEST_F(ComparisonFile, AKeyHasItsValueFromOnePlace) {
  const std::string wide = "base: base.yaml\nvariants: {a: {}, b: {model: {d_model: 32}}}\n";
  const std::string sizes = "sizes: {small: {model: {d_model: 8}}, large: {model: {d_model: 64}}}\n";
  EXPECT_THAT(error_of(wide + "grid: {model.d_model: [16, 48]}\n"),
              HasSubstr("study.yaml:3:24: grid: model.d_model has a value of its own in 'b'"));
  EXPECT_THAT(error_of(wide + sizes), HasSubstr("sizes: small: model.d_model has a value of its own in 'b'"));
  EXPECT_THAT(error_of(wide + "tune: {grid: {model.d_model: [16, 48]}}\n"),
              HasSubstr("tune.grid: model.d_model has a value of its own in 'b'"));
  EXPECT_THAT(error_of("base: base.yaml\ngrid: {model.d_model: [16, 48]}\n" + sizes),
              HasSubstr("sizes: small: model.d_model has a value of its own in 'd_model=16'"));
  EXPECT_THAT(error_of("base: base.yaml\ngrid: {model.norm: [layer, rms], model.norm.eps: [0.1, 0.2]}\n"),
              HasSubstr("grid: model.norm has a value of its own"));
  EXPECT_THAT(error_of("base: base.yaml\nvariants: {a: {model: {norm: rms}}}\ngrid: {model.norm.eps: [0.1]}"),
              HasSubstr("model.norm has a value of its own in 'a'"));
  EXPECT_THAT(error_of("base: base.yaml\ngrid: {model.n_layers: [1, 2, 1]}"),
              HasSubstr("study.yaml:2:31: grid: model.n_layers has the value 1 twice"));
  EXPECT_THAT(error_of("base: base.yaml\ngrid: {model.n_layers: []}"), HasSubstr("has no values"));
  EXPECT_THAT(error_of("base: base.yaml\nsizes: {a: {model: {n_layers: 2}}, b: {model: {n_layers: 2}}}"),
              HasSubstr("sizes: 'b' has the keys of 'a'"));
  EXPECT_THAT(error_of("base: base.yaml\ngrid: {training.seed: [1, 2]}"),
              HasSubstr("`seeds` gives every row"));
  EXPECT_THAT(error_of("base: base.yaml\ntune: {grid: {training.steps: [1, 2]}}"),
              HasSubstr("tune.grid: training.steps cannot be here"));
  EXPECT_THAT(error_of("base: base.yaml\nbudget: {steps: 9}\ngrid: {training.epochs: [1, 2]}"),
              HasSubstr("grid: training.epochs cannot be here: the budget says"));
  EXPECT_EQ(load("base: base.yaml\ngrid: {training.steps: [7, 9]}").variants[1].experiment.training.steps, 9);
  // A file that a variant extends is a base.
  dir_.write("lr.yaml", "training: {optimizer: {lr: 7}}");
  const auto extended =
      load("base: base.yaml\nvariants: {a: {extends: lr.yaml}}\ngrid: {training.optimizer.lr: [0.1, 0.2]}");
  EXPECT_EQ(extended.variants[1].experiment.training.optimizer.lr, 0.2);
}

TEST_F(ComparisonFile, AGridIsEveryCombinationOfEveryVariant) {
  const auto comparison = load(R"(
base: base.yaml
variants: {a: {}, b: {model: {activation: relu}}}
grid:
  model.n_layers: [1, 2]
  training.optimizer.lr: [0.1]
)");
  EXPECT_THAT(names(comparison), ElementsAre("a, n_layers=1, lr=0.1", "a, n_layers=2, lr=0.1",
                                             "b, n_layers=1, lr=0.1", "b, n_layers=2, lr=0.1"));
  EXPECT_EQ(comparison.variants[3].experiment.model.n_layers, 2);
  EXPECT_EQ(comparison.variants[3].experiment.training.optimizer.lr, 0.1);
  EXPECT_EQ(comparison.variants[3].experiment.model.activation, Activation::relu);
  EXPECT_EQ(comparison.variants[3].cell, "n_layers=2, lr=0.1");
  EXPECT_EQ(comparison.variants[1].cell, comparison.variants[3].cell);
  EXPECT_EQ(comparison.variants[3].variant, "b");
  ASSERT_EQ(comparison.variants[3].grid.size(), 2U);
  EXPECT_EQ(comparison.variants[3].grid[0].key, "model.n_layers");
  EXPECT_EQ(comparison.variants[3].grid[0].value, "2");
  EXPECT_EQ(comparison.variants[3].grid[1].value, "0.1");
  EXPECT_FALSE(comparison.budget());
}

TEST_F(ComparisonFile, AGridOfOneVariantIsOneListOfRows) {
  const auto comparison = load("base: base.yaml\ngrid: {model.n_layers: [1, 2]}\n");
  EXPECT_THAT(names(comparison), ElementsAre("n_layers=1", "n_layers=2"));
  EXPECT_EQ(comparison.variants[1].cell, "");
}

TEST_F(ComparisonFile, BasesMayBeKeysAndVariantsMayExtend) {
  dir_.write("other/layers.yaml", "model: {n_layers: 3}");
  const auto comparison = load(R"(
base: {extends: base.yaml, training: {steps: 7}}
variants:
  deep: {extends: other/layers.yaml, model: {d_model: 8}}
)",
                               {"training.batch_size=5"});
  const auto& deep = comparison.variants.at(0).experiment;
  EXPECT_EQ(deep.model.n_layers, 3);
  EXPECT_EQ(deep.model.d_model, 8);
  EXPECT_EQ(deep.training.steps, 7);
  EXPECT_EQ(deep.training.batch_size, 5);
  EXPECT_EQ(deep.name, comparison.settings.name) << "a name is not inherited";
}

TEST_F(ComparisonFile, ErrorsNameThePlace) {
  EXPECT_THAT(error_of("base: nothing.yaml\n"),
              HasSubstr("study.yaml:1:7: base: cannot read 'nothing.yaml': No such file"));
  EXPECT_THAT(error_of("base: [a]\n"), HasSubstr("study.yaml:1:7: base must be a configuration file"));
  EXPECT_THAT(error_of("base: base.yaml\nvariants: [a]\n"),
              HasSubstr("study.yaml:2:11: variants must be names"));
  EXPECT_THAT(error_of("base: base.yaml\nvariants: {a: 3}\n"),
              HasSubstr("variant 'a' must be a group of keys"));
  EXPECT_THAT(error_of("base: base.yaml\nvariants: {a: {model: {d_modle: 3}}}\n"),
              ::testing::AllOf(HasSubstr("study.yaml:2:24"), HasSubstr("d_model")));
  EXPECT_THAT(error_of("base: base.yaml\ngrid: {model.n_layers: 3}\n"),
              HasSubstr("must be a list of values"));
  EXPECT_THAT(error_of("base: base.yaml\ngrid: {model..n: [3]}\n"), HasSubstr("names joined by dots"));
  EXPECT_THAT(error_of("base: base.yaml\nseed: 3\n"), HasSubstr("seeds"));
  EXPECT_THAT(error_of("base: base.yaml\nseeds: 0\n"), HasSubstr("study.yaml:2:8"));
  EXPECT_THAT(error_of("base: base.yaml\nbudget: {steps: 1, tokens: 5}\n"), HasSubstr("give only one of"));
  EXPECT_THAT(error_of("base: base.yaml\nname: ../x\n"), HasSubstr("cannot be the name"));
}

// Each further key of a grid multiplies the variants.
TEST_F(ComparisonFile, TooManyVariantsAreOneLine) {
  std::string grid = "base: base.yaml\ngrid:\n";
  for (const char* key : {"training.log_every", "training.evaluate_every", "training.checkpoint_every",
                          "training.batch_size", "training.keep_checkpoints", "data.sequence_length"})
    grid += fmt::format("  {}: [3, 4, 5, 6, 7, 8, 9, 10, 11, 12]\n", key);
  EXPECT_THAT(error_of(grid), HasSubstr("makes more than 1000 variants"));
}

TEST_F(ComparisonFile, IsToldFromAConfiguration) {
  EXPECT_FALSE(is_comparison_file(dir_ / "base.yaml"));
  EXPECT_TRUE(is_comparison_file(dir_.write("a.yaml", "base: base.yaml")));
  EXPECT_TRUE(is_comparison_file(dir_.write("b.yaml", "extends: a.yaml")));
  for (const auto* const key : {"variants", "grid", "tune", "sizes", "tasks"})
    EXPECT_TRUE(is_comparison_file(dir_.write("c.yaml", fmt::format("{}: {{}}", key)))) << key;
  EXPECT_FALSE(is_comparison_file(dir_ / "none.yaml"));
}

// No column of a key is the product of those of two others, so no main effect is mixed with that of two keys.
TEST_F(ComparisonFile, AFractionalDesignTellsEachKeyFromPairsOfOthers) {
  const std::vector<std::string> all = {"model.n_layers",     "model.d_ff",
                                        "model.dropout",      "training.batch_size",
                                        "training.log_every", "training.evaluate_every"};
  for (const size_t n_keys : {4U, 5U, 6U}) {
    std::string text = "base: base.yaml\ndesign: fractional\ngrid:\n";
    for (size_t j = 0; j < n_keys; ++j)
      text += fmt::format("  {}: [{}]\n", all[j], all[j] == "model.dropout" ? "0, 0.1" : "4, 8");
    const auto comparison = load(text);
    const auto& rows = comparison.variants;
    ASSERT_EQ(rows.size(), n_keys == 4 ? 8U : 16U);
    std::vector<std::vector<int>> columns;
    for (size_t j = 0; j < n_keys; ++j) {
      columns.emplace_back();
      for (const auto& row : rows) {
        EXPECT_EQ(row.grid[j].key, all[j]);
        columns.back().push_back(row.grid[j].value == rows[0].grid[j].value ? -1 : 1);
      }
    }
    const auto product = [&](std::initializer_list<size_t> keys) {
      int sum = 0;
      for (size_t i = 0; i < rows.size(); ++i) {
        int sign = 1;
        for (const size_t key : keys) sign *= columns[key][i];
        sum += sign;
      }
      return sum;
    };
    for (size_t i = 0; i < n_keys; ++i) {
      EXPECT_EQ(product({i}), 0) << "each value as often";
      for (size_t j = 0; j < i; ++j) {
        EXPECT_EQ(product({i, j}), 0);
        for (size_t k = 0; k < j; ++k) EXPECT_EQ(product({i, j, k}), 0) << i << j << k;
      }
    }
  }
  EXPECT_THAT(error_of("base: base.yaml\ndesign: fractional\n"), HasSubstr("is for a `grid`"));
  EXPECT_THAT(error_of("base: base.yaml\ndesign: fractional\ngrid: {model.n_layers: [1, 2]}\n"),
              HasSubstr("for 4 to 64 keys of a grid, and these are 1"));
  EXPECT_THAT(
      error_of("base: base.yaml\ndesign: fractional\ngrid: {model.n_layers: [1, 2, 3], model.d_ff: [4, 8], "
               "training.batch_size: [1, 2], training.log_every: [1, 2]}\n"),
      HasSubstr("needs two values of each key"));
}

TEST_F(ComparisonFile, TasksAreComparisonsOfTheSameVariants) {
  dir_.write("other.yaml", "extends: base.yaml\ntraining: {steps: 9}\nmodel: {n_layers: 4}");
  const auto path = dir_.write("study.yaml", R"(
title: Both
note: A note.
tasks: {first: base.yaml, second: {extends: other.yaml, data: {sequence_length: 12}}}
base: {model: {d_model: 8}}
variants: {plain: {}, deep: {model: {n_layers: 3}}}
seeds: 2
)");
  EXPECT_TRUE(is_comparison_file(path));
  EXPECT_TRUE(is_task_comparison_file(path));
  EXPECT_FALSE(is_task_comparison_file(dir_ / "base.yaml"));
  const auto study = load_task_comparison(path, {"training.batch_size=5"});
  EXPECT_EQ(study.settings.title, "Both");
  EXPECT_EQ(study.settings.note, "A note.");
  ASSERT_EQ(study.tasks.size(), 2U);
  const auto& [name, second] = study.tasks[1];
  EXPECT_EQ(name, "second");
  EXPECT_EQ(second.of_task, "second");
  EXPECT_EQ(second.settings.title, "Both: second");
  EXPECT_EQ(second.settings.note, "");
  EXPECT_EQ(second.settings.seeds, 2);
  EXPECT_THAT(names(second), ElementsAre("plain", "deep"));
  const auto &plain = second.variants[0].experiment, &deep = second.variants[1].experiment;
  EXPECT_EQ(plain.model.d_model, 8) << "of base";
  EXPECT_EQ(plain.model.n_layers, 4) << "of the task";
  EXPECT_EQ(deep.model.n_layers, 3) << "of the variant";
  EXPECT_EQ(plain.training.steps, 9);
  EXPECT_EQ(plain.training.batch_size, 5);
  EXPECT_EQ(plain.data.sequence_length, 12);
  EXPECT_NE(study.tasks[0].comparison.variants[0].experiment.data.sequence_length, 12);
  // A list of files gives the names.
  const auto list =
      load_task_comparison(dir_.write("list.yaml", "tasks: [base.yaml, other.yaml]\nvariants: {a: {}}\n"));
  EXPECT_EQ(list.tasks[0].name, "base");
  EXPECT_EQ(list.tasks[1].name, "other");
}

TEST_F(ComparisonFile, BadTasksAreOneLine) {
  const auto problem = [&](const std::string& text) {
    const auto path = dir_.write("study.yaml", text);
    return message_of<ConfigError>([&] { load_task_comparison(path); });
  };
  EXPECT_THAT(problem("tasks: base.yaml\n"), HasSubstr("study.yaml:1:8: tasks must be two or more names"));
  EXPECT_THAT(problem("tasks: [base.yaml]\n"), HasSubstr("two or more"));
  EXPECT_THAT(problem("tasks: [base.yaml, base.yaml]\n"), HasSubstr("tasks: base comes twice"));
  EXPECT_THAT(problem("tasks: [base.yaml, {a: b}]\n"), HasSubstr("a list has configuration files"));
  EXPECT_THAT(problem("tasks: {a: base.yaml, ../b: base.yaml}\n"),
              HasSubstr("cannot be the name of a directory"));
  EXPECT_THAT(problem("tasks: {a: base.yaml, b: nothing.yaml}\n"), HasSubstr("cannot read 'nothing.yaml'"));
  EXPECT_THAT(problem("variants: {a: {}}\n"), HasSubstr("needs `tasks`"));
  EXPECT_THAT(error_of("tasks: {a: base.yaml, b: base.yaml}\n"), HasSubstr("tasks"))
      << "not for one comparison";
}

TEST_F(ComparisonFile, ConfigurationsOfOneNameGetNumbers) {
  const auto comparison = comparison_of({dir_ / "base.yaml", dir_ / "base.yaml"}, {"training.steps=3"});
  EXPECT_THAT(names(comparison), ElementsAre("base", "base (2)"));
  EXPECT_EQ(comparison.variants[1].experiment.training.steps, 3);
  dir_.write("a.yaml", "base: base.yaml");
  EXPECT_THROW(comparison_of({dir_ / "base.yaml", dir_ / "a.yaml"}), UsageError);
  EXPECT_THROW(comparison_of({dir_.path()}), CheckpointError);
}

TEST(Budget, IsAKindAndANumber) {
  EXPECT_EQ(parse_budget("flops=2e12").kind, BudgetKind::flops);
  EXPECT_EQ(parse_budget("flops=2e12").amount, 2e12);
  for (const char* wrong : {"", "12", "steps", "steps=", "steps=0", "steps=-3", "steps=x", "epochs=3",
                            "steps=3x", "seconds=inf", "tokens=nan"}) {
    EXPECT_THROW(parse_budget(wrong), UsageError) << wrong;
  }
}

}  // namespace
}  // namespace zoo::testing
