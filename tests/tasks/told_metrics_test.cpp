// The metrics of each task on data that are small enough to be reckoned by hand, by a model that says what
// the test tells it.

#include <cmath>
#include <functional>
#include <map>
#include <numbers>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "base/random.h"
#include "checkpoints/initial_weights.h"
#include "data/images/image_file.h"
#include "models/embedders/audio_embedder.h"
#include "tasks/evaluation.h"
#include "tasks/metrics/text_metrics.h"
#include "tasks/task.h"
#include "tasks/text/translation.h"
#include "tests/support/small_recordings.h"
#include "tests/support/training.h"

namespace zoo::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Its features are its logits: what `told` says of a batch, (N, V), or (B, T, C) for recordings.
class ToldModel final : public Model, public AligningModel {
 public:
  using Told = std::function<torch::Tensor(const Batch&)>;
  /// `n_outputs`: targets are checked against it before outputs are known.
  explicit ToldModel(Told told, int64_t n_outputs = 1'000'000)
      : told_(std::move(told)), n_outputs_(n_outputs) {
    register_buffer("nothing", torch::zeros({1}));
  }

  torch::Tensor features(const Batch& batch) override { return hidden_states(batch).flatten(0, -2); }
  torch::Tensor logits(const torch::Tensor& features) override {
    n_outputs_ = features.size(-1);
    return features;
  }
  int64_t n_outputs() const override { return n_outputs_; }
  torch::Tensor hidden_states(const Batch& batch) override { return told_(batch); }
  void attention_maps(const Batch&, AttentionMaps&) override {}
  const AligningModel* aligning() const override { return this; }
  torch::Tensor n_moments(const Batch& batch) const override { return audio_lengths(batch); }
  int64_t blank() const override { return n_outputs_ - 1; }

 private:
  Told told_;
  int64_t n_outputs_;
};

/// The ids of the tokens from which a batch's targets are predicted, (N).
torch::Tensor read_tokens(const Batch& batch) {
  const auto ids = batch.input.ids.flatten();
  return batch.positions.defined() ? ids.index_select(0, batch.positions) : ids;
}

/// Logits (n) of which one class has this probability, and the others share the rest.
torch::Tensor with_probability(int64_t n, int64_t likely, double probability) {
  auto row = torch::full({n}, (1 - probability) / static_cast<double>(n - 1), torch::kDouble);
  row[likely].fill_(probability);
  return row.log().to(torch::kFloat);
}

class ToldMetrics : public ::testing::Test {
 protected:
  /// The id of a token that is one character.
  static int64_t id_of(const Task& task, const std::string& character) {
    return task.tokenizer().encode(character).at(0);
  }

  const TinyWorld world_;
};

// After "a" comes "b" with probability 1/4, after "b" comes "a" with probability 1/2: two bits and one bit.
class ToldLanguage : public ToldMetrics {
 protected:
  ToldLanguage() {
    std::string text;
    for (int i = 0; i < 20; ++i) text += "ab";
    world_.dir().write("data/ab.txt", text);
  }
  Metrics measured(std::vector<std::string> overrides, const EvaluationOptions& options = {}) const {
    overrides.insert(overrides.begin(), {"data.valid=ab.txt", "model.max_positions=5000"});
    const auto task = task_of_new_run(world_.experiment("language_modeling", overrides));
    const int64_t a = id_of(*task, "a"), b = id_of(*task, "b"), n = task->tokenizer().vocab_size();
    auto table = torch::zeros({n, n});
    table[a].copy_(with_probability(n, b, 0.25));
    table[b].copy_(with_probability(n, a, 0.5));
    ToldModel model([=](const Batch& batch) { return table.index_select(0, read_tokens(batch)); });
    return task->evaluate(model, Split::valid, options);
  }
  static void expect_bits(const Metrics& metrics, double bits, double tokens) {
    EXPECT_EQ(metrics.at("tokens"), tokens);
    EXPECT_NEAR(metrics.at("loss"), bits / tokens * std::numbers::ln2, 1e-6);
    EXPECT_NEAR(metrics.at("perplexity"), std::exp2(bits / tokens), 1e-5);
    EXPECT_NEAR(metrics.at("bits_per_byte"), bits / tokens, 1e-6);  // each token is a byte
  }
};

TEST_F(ToldLanguage, PerplexityIsThatOfAllTokensButTheFirst) {
  for (const char* const length : {"3", "7", "24", "38", "39", "40", "1000"}) {
    for (const char* const batch : {"1", "2", "100"}) {
      SCOPED_TRACE(fmt::format("{}, {}", length, batch));
      expect_bits(measured({fmt::format("data.sequence_length={}", length),
                            fmt::format("training.batch_size={}", batch)}),
                  20 * 2 + 19 * 1, 39);
    }
  }
  // The first window reads 7 tokens: "abababa". Of its targets, 4 stand after "a" and 3 after "b".
  expect_bits(measured({"data.sequence_length=7", "training.batch_size=1"}, {.max_batches = 1}), 4 * 2 + 3,
              7);
}

TEST_F(ToldLanguage, TokensOfThePrefixAreReadOnly) {
  // The tokens 5 … 39 are predicted, each once: 18 "b" and 17 "a".
  for (const char* const length : {"5", "6", "12", "39", "100"})
    expect_bits(measured({"data.prefix_length=5", fmt::format("data.sequence_length={}", length)}),
                18 * 2 + 17, 35);
  expect_bits(measured({"data.prefix_length=1"}), 20 * 2 + 19, 39);
  // The longest prefix leaves one token.
  expect_bits(measured({"data.prefix_length=39", "data.sequence_length=39"}), 2, 1);
  EXPECT_THAT(message_of<DataError>([&] { measured({"data.prefix_length=40", "data.sequence_length=40"}); }),
              HasSubstr("a text of 40 tokens is too short for language modelling after a prefix of 40"));
  EXPECT_THAT(message_of<ConfigError>([&] { measured({"data.prefix_length=8", "data.sequence_length=7"}); }),
              HasSubstr("prefix_length"));
}

// Scores are computed for about a thousand predictions at a time.
TEST_F(ToldLanguage, ScoresInPartsAreThoseOfTheWhole) {
  CounterRandom random({4});
  for (const int64_t n : {1024, 1025, 1026, 2049, 3000}) {
    std::string text;
    while (std::ssize(text) < n) text += "ab"[random.below(2)];
    world_.dir().write("data/ab.txt", text);
    int64_t n_seen = 0;
    const auto task = task_of_new_run(world_.experiment(
        "language_modeling", {"data.valid=ab.txt", "data.sequence_length=5000", "model.max_positions=5000"}));
    ToldModel model([&](const Batch& batch) {
      return torch::zeros({batch.n_targets(), task->tokenizer().vocab_size()});
    });
    const auto others = static_cast<double>(task->tokenizer().vocab_size() - 1);
    double nats = 0;
    for (size_t i = 0; i + 1 < text.size(); ++i) {
      const double right = text[i] == 'a' ? 0.25 : 0.5;
      nats -= std::log(text[i] != text[i + 1] ? right : (1 - right) / others);
    }
    const auto metrics = measured({"data.sequence_length=5000"});
    EXPECT_EQ(metrics.at("tokens"), n - 1);
    EXPECT_NEAR(metrics.at("loss"), nats / static_cast<double>(n - 1), 1e-5);
    const auto batch = task->batches(Split::valid).batch(0, 0);
    std::vector<torch::Tensor> seen;
    score(model, task->batches(Split::valid), {},
          [&](const torch::Tensor& logits, const torch::Tensor& targets) {
            EXPECT_EQ(logits.size(0), targets.size(0));
            n_seen += targets.size(0);
            seen.push_back(targets);
          });
    EXPECT_EQ(n_seen, n - 1);
    EXPECT_TRUE(torch::equal(torch::cat(seen), batch.targets)) << "each once, in order";
  }
}

TEST_F(ToldMetrics, OfMaskedTokens) {
  const auto task = task_of_new_run(world_.experiment("masked_language_modeling"));
  const int64_t n = task->tokenizer().vocab_size();
  int64_t n_told = 0, n_right = 0;
  ToldModel model([&](const Batch& batch) {
    std::vector<torch::Tensor> rows;
    for (int64_t i = 0; i < batch.n_targets(); ++i, ++n_told) {
      // Two of three are right.
      const int64_t right = batch.targets[i].item<int64_t>();
      const bool is_right = n_told % 3 != 1;
      n_right += is_right ? 1 : 0;
      rows.push_back(with_probability(n, is_right ? right : (right + 1) % n, 0.5));
    }
    return torch::stack(rows);
  });
  const auto metrics = task->evaluate(model, Split::valid);
  ASSERT_GT(n_told, 10);
  const auto all = static_cast<double>(n_told), right = static_cast<double>(n_right);
  EXPECT_EQ(metrics.at("tokens"), all);
  EXPECT_DOUBLE_EQ(metrics.at("accuracy"), right / all);
  const double loss =
      (right * std::log(2) + (all - right) * std::log(2.0 * static_cast<double>(n - 1))) / all;
  EXPECT_NEAR(metrics.at("loss"), loss, 1e-6);
  EXPECT_NEAR(metrics.at("perplexity"), std::exp(loss), 1e-4 * std::exp(loss));
}

TEST_F(ToldMetrics, OfMarkedTokens) {
  world_.dir().write("data/train.txt", "a=ab=b\nb=b=a\n");
  world_.dir().write("data/valid.txt", "a=ab=b\nb=a=a\n");
  const auto task = task_of_new_run(world_.experiment(
      "language_modeling", {"task=marked_tokens", "data.train=train.txt", "data.valid=valid.txt"}));
  const int64_t n = task->tokenizer().vocab_size(), a = id_of(*task, "a");
  // Always says "a". Behind the marks stand a, b, a and a.
  ToldModel model(
      [&](const Batch& batch) { return with_probability(n, a, 0.5).expand({batch.n_targets(), n}); });
  const auto metrics = task->evaluate(model, Split::valid);
  EXPECT_EQ(metrics.at("tokens"), 4);
  EXPECT_DOUBLE_EQ(metrics.at("accuracy"), 3.0 / 4);
}

// Actual: blue three times, red twice. Told: blue once, red four times.
TEST_F(ToldMetrics, OfClassesOfTexts) {
  world_.dir().write("data/valid.tsv",
                     "sentence\tlabel\nsun\tblue\nmoon\tblue\nbird\tblue\nwind\tred\nrain\tred\n");
  const auto task = task_of_new_run(
      world_.experiment("text_classification", {"data.valid=valid.tsv", "training.batch_size=2"}));
  ASSERT_THAT(task->vocabulary().labels, ElementsAre("blue", "dark green", "red"));
  const int64_t s = id_of(*task, "s");
  ToldModel model([&](const Batch& batch) {
    std::vector<torch::Tensor> rows;
    for (int64_t i = 0; i < batch.n_targets(); ++i)
      rows.push_back(with_probability(3, (batch.input.ids[i] == s).any().item<bool>() ? 0 : 2, 0.5));
    return torch::stack(rows);
  });
  torch::Tensor confusion;
  const auto metrics = task->evaluate(model, Split::valid, {.confusion = &confusion});
  EXPECT_TRUE(torch::equal(confusion, torch::tensor({{1, 0, 2}, {0, 0, 0}, {0, 0, 2}}, torch::kLong)))
      << confusion;
  EXPECT_DOUBLE_EQ(metrics.at("accuracy"), 3.0 / 5);
  // Blue: precision 1, recall 1/3. Red: precision 1/2, recall 1. Nothing is green, or is said to be.
  EXPECT_DOUBLE_EQ(metrics.at("f1"), (1.0 / 2 + 2.0 / 3) / 2);
  EXPECT_NEAR(metrics.at("loss"), (3 * std::log(2) + 2 * std::log(4)) / 5, 1e-6);
  EXPECT_NEAR(metrics.at("perplexity"), std::exp2(7.0 / 5), 1e-5);
  EXPECT_EQ(metrics.at("tokens"), 5);
  EXPECT_DOUBLE_EQ(task->evaluate(model, Split::valid, {.max_batches = 1}).at("tokens"), 2);
}

TEST_F(ToldMetrics, OfSeveralLabelsAndOfNumbers) {
  world_.dir().write("data/labels.tsv", "sentence\tlabel\nsun\ta,b\nmoon\tb\nbird\t\nwind\ta\n");
  const auto labels = task_of_new_run(world_.experiment(
      "text_classification", {"task={type: text_classification, problem: multi_label}",
                              "data.train=labels.tsv", "data.valid=labels.tsv", "training.batch_size=3"}));
  ASSERT_THAT(labels->vocabulary().labels, ElementsAre("a", "b"));
  // Says "a" of all texts, surest of "wind", and "b" of none, likeliest of "moon".
  std::map<int64_t, std::vector<float>> told;
  const auto tell = [&](const Task& task, const std::string& first, std::vector<float> logits) {
    told[id_of(task, first)] = std::move(logits);
  };
  ToldModel model([&](const Batch& batch) {
    std::vector<torch::Tensor> rows;
    for (int64_t i = 0; i < batch.n_targets(); ++i) {
      for (const auto& [token, logits] : told)
        if ((batch.input.ids[i] == token).any().item<bool>()) rows.push_back(torch::tensor(logits));
    }
    return torch::stack(rows);
  });
  tell(*labels, "s", {1, -3});
  tell(*labels, "m", {2, -1});
  tell(*labels, "b", {0.5, -2});
  tell(*labels, "w", {3, -4});
  const auto found = labels->evaluate(model, Split::valid);
  EXPECT_EQ(found.at("targets"), 4);
  EXPECT_DOUBLE_EQ(found.at("f1_micro"), 2.0 * 2 / (4 + 4));        // found 2 of 4, said 4
  EXPECT_DOUBLE_EQ(found.at("f1_macro"), (2.0 * 2 / (4 + 2)) / 2);  // "b" has 0
  EXPECT_DOUBLE_EQ(found.at("accuracy"), 1.0 / 4);                  // "wind" alone
  // "a": wind, moon, sun, bird: 1 and 2/3. "b": moon, bird, sun, wind: 1 and 2/3.
  EXPECT_DOUBLE_EQ(found.at("map"), (1 + 2.0 / 3) / 2);

  world_.dir().write("data/numbers.tsv", "sentence\tlabel\nsun\t1\nmoon\t2\nbird\t3\nwind\t6\n");
  const auto numbers = task_of_new_run(world_.experiment(
      "text_classification", {"task={type: text_classification, problem: regression}",
                              "data.train=numbers.tsv", "data.valid=numbers.tsv", "training.batch_size=3"}));
  told.clear();
  tell(*numbers, "s", {2});
  tell(*numbers, "m", {1});
  tell(*numbers, "b", {4});
  tell(*numbers, "w", {5});
  const auto measured = numbers->evaluate(model, Split::valid);
  EXPECT_NEAR(measured.at("loss"), (1 + 1 + 1 + 1) / 4.0, 1e-6);
  // From the means 3 and 3: (-2)(-1) + (-1)(-2) + 0·1 + 3·2, norms √14 and √10.
  EXPECT_NEAR(measured.at("pearson"), 10 / std::sqrt(14.0 * 10), 1e-6);
  // Ranks 1 2 3 4 and 2 1 3 4: 1 - 6·2 / (4·15).
  EXPECT_NEAR(measured.at("spearman"), 0.8, 1e-6);
}

TEST_F(ToldMetrics, OfEntities) {
  world_.dir().write("data/valid.tsv",
                     "sentence\tlabel\nmoon bird wind\tB-SKY I-SKY O\nrain tree\tB-SKY O\nmoon sea\tO -\n");
  const auto task = task_of_new_run(
      world_.experiment("token_classification", {"data.valid=valid.tsv", "training.batch_size=2"}));
  ASSERT_THAT(task->vocabulary().labels, ElementsAre("O", "B-SKY", "I-SKY"));
  // Each word that is not "bird" or "wind" is the beginning of an entity.
  const int64_t b = id_of(*task, "b"), w = id_of(*task, "w");
  ToldModel model([&](const Batch& batch) {
    std::vector<torch::Tensor> rows;
    const auto tokens = read_tokens(batch);
    for (int64_t i = 0; i < tokens.size(0); ++i) {
      const auto token = tokens[i].item<int64_t>();
      rows.push_back(with_probability(3, token == b || token == w ? 0 : 1, 0.5));
    }
    return torch::stack(rows);
  });
  const auto metrics = task->evaluate(model, Split::valid);
  // Said: moon, rain, tree, moon. Right: moon bird, rain. Only "rain" has the right words.
  EXPECT_DOUBLE_EQ(metrics.at("entity_precision"), 1.0 / 4);
  EXPECT_DOUBLE_EQ(metrics.at("entity_recall"), 1.0 / 2);
  EXPECT_DOUBLE_EQ(metrics.at("entity_f1"), 2.0 / (4 + 2));
  // moon, wind and rain of six words; "sea" does not count.
  EXPECT_EQ(metrics.at("tokens"), 6);
  EXPECT_DOUBLE_EQ(metrics.at("accuracy"), 3.0 / 6);
  // O: 1 of 2 said, 3 right. B-SKY: 2 of 4 said, 2 right. I-SKY: never said.
  EXPECT_DOUBLE_EQ(metrics.at("f1"), (2.0 / 5 + 4.0 / 6 + 0) / 3);
  EXPECT_NEAR(metrics.at("loss"), (3 * std::log(2) + 3 * std::log(4)) / 6, 1e-6);
}

TEST_F(ToldMetrics, OfClassesOfPictures) {
  constexpr int64_t n_classes = 7;
  for (int64_t c = 0; c < n_classes; ++c) {
    for (const char* const part : {"train", "valid"}) {
      world_.dir().write(fmt::format("data/{}-pictures/class{}/a.png", part, c),
                         encode_png({.shape = {.channels = 1, .height = 8, .width = 8},
                                     .pixels = std::vector<uint8_t>(64, static_cast<uint8_t>(30 * c))}));
    }
  }
  const auto task =
      task_of_new_run(world_.image_experiment({"data.train=train-pictures", "data.valid=valid-pictures",
                                               "data.images.label_names=[]", "data.images.augment={}"}));
  ASSERT_EQ(task->vocabulary().labels.size(), 7U);
  // Class 3 is the likeliest of all pictures, and class 0 and 6 are the least likely ones.
  const auto logits = torch::tensor({-5.F, 1.F, 2.F, 9.F, 3.F, 4.F, -6.F});
  ToldModel model([&](const Batch& batch) { return logits.expand({batch.n_targets(), n_classes}); });
  const auto metrics = task->evaluate(model, Split::valid);
  EXPECT_EQ(metrics.at("images"), 7);
  EXPECT_DOUBLE_EQ(metrics.at("accuracy"), 1.0 / 7);
  EXPECT_DOUBLE_EQ(metrics.at("top_5_accuracy"), 5.0 / 7);
  EXPECT_DOUBLE_EQ(metrics.at("f1"), 2.0 / (1 + 7) / 7);
  EXPECT_NEAR(metrics.at("loss"), (7 * logits.logsumexp(0) - logits.sum()).item<double>() / 7, 1e-5);
}

TEST_F(ToldMetrics, OfTranscripts) {
  const std::vector<float> sound = tone(400, 8000, 8000);  // a second
  std::string list = "audio\ttext\tspeaker\n";
  const std::vector<std::array<std::string, 3>> recordings = {
      {"low high", "ann", "low hig"}, {"high", "bob", ""}, {"low low", "bob", "low low high"}};
  for (size_t i = 0; i < recordings.size(); ++i) {
    const auto name = fmt::format("told/{}.wav", i);
    world_.dir().write("data/" + name, wav(sound, 8000));
    list += fmt::format("{}\t{}\t{}\n", name, recordings[i][0], recordings[i][1]);
  }
  world_.dir().write("data/told.tsv", list);
  const auto task =
      task_of_new_run(world_.speech_experiment({"data.valid=told.tsv", "training.batch_size=2"}));
  const int64_t blank = task->tokenizer().vocab_size();
  ToldModel model(
      [&](const Batch& batch) {
        const int64_t n_rows = batch.n_rows(),
                      n = n_audio_vectors(batch.field(fields::kSpectrograms).size(2));
        auto logits = torch::zeros({n_rows, n, blank + 1});
        for (int64_t b = 0; b < n_rows; ++b) {
          // The transcripts tell the recordings apart.
          const auto n_tokens = (batch.field(fields::kTranscripts)[b] >= 0).sum().item<int64_t>();
          const auto* told = &recordings[0];
          for (const auto& recording : recordings)
            if (std::ssize(recording[0]) == n_tokens) told = &recording;
          const auto ids = task->tokenizer().encode((*told)[2]);
          EXPECT_GE(n, std::ssize(ids));
          for (int64_t t = 0; t < n; ++t)
            logits[b][t][t < std::ssize(ids) ? ids[static_cast<size_t>(t)] : blank].fill_(20);
        }
        return logits;
      },
      blank + 1);
  std::vector<ClassMetrics> speakers;
  const auto metrics = task->evaluate(model, Split::valid, {.classes = &speakers});
  EXPECT_EQ(metrics.at("recordings"), 3);
  EXPECT_EQ(metrics.at("tokens"), 8 + 4 + 7);
  EXPECT_DOUBLE_EQ(metrics.at("wer"), (1.0 + 1 + 1) / (2 + 1 + 2));  // replaced, left out, inserted
  EXPECT_DOUBLE_EQ(metrics.at("cer"), (1.0 + 4 + 5) / (8 + 4 + 7));
  ASSERT_EQ(speakers.size(), 2U);
  EXPECT_EQ(speakers[0].label, "ann");
  EXPECT_DOUBLE_EQ(speakers[0].metrics.at("wer"), 1.0 / 2);
  EXPECT_DOUBLE_EQ(speakers[1].metrics.at("wer"), 2.0 / 3);
  EXPECT_EQ(speakers[1].metrics.at("recordings"), 2);
}

TEST(TranslationMetrics, CompareOutputsWithTheirReferences) {
  const Translations translations{
      .sources = {"1", "2"}, .outputs = {"a b c d e", "x y"}, .references = {"a b c d", "x z"}};
  const auto metrics = translation_metrics(translations);
  // 5 of 7 words, 3 of 5 pairs, 2 of 3 triples, 1 of 2 quadruples; seven words are no less than six.
  EXPECT_NEAR(metrics.at("bleu"), 100 * std::pow(5.0 / 7 * 3 / 5 * 2 / 3 * 1 / 2, 0.25), 1e-9);
  EXPECT_DOUBLE_EQ(metrics.at("chrf"), corpus_chrf(translations.outputs, {translations.references}));
  EXPECT_EQ(metrics.size(), 2U);
}

}  // namespace
}  // namespace zoo::testing
