// Vectors of texts, for each family and pooling, against the hidden states of one text alone.

#include "analysis/embeddings.h"

#include <cmath>
#include <string>
#include <vector>

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/error.h"
#include "models/inference_scope.h"
#include "tests/support/errors.h"
#include "tests/support/text_models.h"
#include "tests/support/training.h"

namespace zoo::testing {
namespace {

using ::testing::HasSubstr;

/// A model and how a run with it embeds texts.
struct Case {
  Architecture architecture;
  HeadKind head;
  TextLayout layout;
};
const std::vector<Case> kCases = {
    {Architecture::encoder, HeadKind::masked_language_modeling, TextLayout::cls_tokens_sep},
    {Architecture::encoder, HeadKind::classification, TextLayout::cls_tokens_sep},
    {Architecture::decoder, HeadKind::language_modeling, TextLayout::tokens},
    {Architecture::decoder, HeadKind::classification, TextLayout::tokens_eos},
    {Architecture::decoder, HeadKind::language_modeling, TextLayout::question_and_answer},
    {Architecture::encoder_decoder, HeadKind::language_modeling, TextLayout::source_and_target}};

std::vector<EmbeddingPooling> poolings_of(const Case& c) {
  std::vector<EmbeddingPooling> poolings = {EmbeddingPooling::mean,          EmbeddingPooling::cls,
                                            EmbeddingPooling::last,          EmbeddingPooling::max,
                                            EmbeddingPooling::weighted_mean, EmbeddingPooling::mean_sqrt_len};
  if (c.architecture == Architecture::encoder && c.head == HeadKind::classification)
    poolings.push_back(EmbeddingPooling::pooler);
  return poolings;
}

std::shared_ptr<Model> model_of(const Case& c, const Tokenizer& tokenizer) {
  return text_model(small_config(c.architecture, Position::learned), tokenizer, c.head);
}

/// The tokens that the model reads.
TokenIds tokens_of(const Case& c, const Tokenizer& tokenizer, const std::string& text) {
  auto ids = tokenizer.encode(text);
  if (c.layout == TextLayout::cls_tokens_sep) ids.insert(ids.begin(), tokenizer.special().cls);
  if (c.layout != TextLayout::tokens)
    ids.push_back(c.layout == TextLayout::cls_tokens_sep ? tokenizer.special().sep : tokenizer.special().eos);
  return ids;
}

/// What the definition of the pooling says of these tokens alone.
torch::Tensor expected(Model& model, const TokenIds& ids, EmbeddingPooling pooling) {
  const InferenceScope scope(model);
  Batch batch;
  batch.input.ids = torch::tensor(ids).unsqueeze(0);
  const auto hidden = model.hidden_states(batch)[0];
  switch (pooling) {
    case EmbeddingPooling::mean:
      return hidden.mean(0);
    case EmbeddingPooling::cls:
      return hidden[0];
    case EmbeddingPooling::last:
      return hidden[std::ssize(ids) - 1];
    case EmbeddingPooling::max:
      return std::get<0>(hidden.max(0));
    case EmbeddingPooling::weighted_mean: {
      const auto places = torch::arange(1, std::ssize(ids) + 1, torch::kFloat);
      return places.matmul(hidden) / places.sum();
    }
    case EmbeddingPooling::mean_sqrt_len:
      return hidden.sum(0) / std::sqrt(static_cast<double>(ids.size()));
    case EmbeddingPooling::pooler:
      break;
  }
  const auto weights = model.named_parameters();
  return torch::tanh(weights["head.pooler.weight"].mv(hidden[0]) + weights["head.pooler.bias"]);
}

std::vector<std::string> some_texts() {
  std::vector<std::string> texts;
  for (int i = 0; i < 700; ++i) {
    std::string text;
    for (int j = 0; j <= i * 5 % 23; ++j) text += static_cast<char>('a' + (i + j * j) % 16);
    texts.push_back(text);
  }
  return texts;
}

TEST(Embeddings, OfManyTextsAreAsOneByOne) {
  const auto tokenizer = letters();
  const auto texts = some_texts();
  for (const auto& c : kCases) {
    const auto model = model_of(c, *tokenizer);
    for (const auto pooling : poolings_of(c)) {
      SCOPED_TRACE(
          fmt::format("{} {} {}", name_of(c.architecture), static_cast<int>(c.layout), name_of(pooling)));
      std::vector<int64_t> progress;
      const auto together =
          embed(*model, *tokenizer, texts,
                {.layout = c.layout, .pooling = {pooling}, .on_progress = [&](int64_t done, int64_t) {
                   progress.push_back(done);
                 }});
      ASSERT_EQ(together.vectors.sizes(), (std::vector<int64_t>{std::ssize(texts), kWidth}));
      EXPECT_EQ(together.n_cut, 0);
      EXPECT_GT(progress.size(), 1U) << "several batches";
      EXPECT_EQ(progress.back(), std::ssize(texts));
      for (size_t i = 0; i < texts.size(); i += 29) {
        // Few rows and many rows are multiplied by different functions, which round differently.
        const auto alone = expected(*model, tokens_of(c, *tokenizer, texts[i]), pooling);
        EXPECT_LE((together.vectors[static_cast<int64_t>(i)] - alone).abs().max().item<double>(), 5e-5)
            << texts[i];
      }
    }
  }
}

TEST(Embeddings, OfATokenizerWithoutPaddingAreTheSame) {
  const auto tokenizer = letters(SpecialTokenSet::none);
  ASSERT_LT(tokenizer->special().pad, 0);
  const Case decoder = kCases[2];
  const auto model = model_of(decoder, *tokenizer);
  const auto vectors =
      embed(*model, *tokenizer, {"abc", "ponmlk"}, {.pooling = {EmbeddingPooling::last}}).vectors;
  EXPECT_TRUE(close(vectors[0], expected(*model, tokenizer->encode("abc"), EmbeddingPooling::last), 1e-5));
}

TEST(Embeddings, AreNormalizedWhereAsked) {
  const auto tokenizer = letters();
  const auto model = model_of(kCases[0], *tokenizer);
  EmbedOptions options{.layout = TextLayout::cls_tokens_sep};
  const auto plain = embed(*model, *tokenizer, {"abc", "pon"}, options).vectors;
  options.normalize = true;
  const auto normalized = embed(*model, *tokenizer, {"abc", "pon"}, options).vectors;
  EXPECT_TRUE(close(normalized.norm(2, 1), torch::ones(2), 1e-6));
  EXPECT_TRUE(close(normalized * plain.norm(2, 1, true), plain, 1e-5));
}

TEST(Embeddings, OfLongTextsAreOfTheirBeginnings) {
  const auto tokenizer = letters();
  for (const auto& c : kCases) {
    const auto model = model_of(c, *tokenizer);
    const size_t room = 8 - (tokens_of(c, *tokenizer, "a").size() - 1);
    const std::string whole = std::string("abcdefghij").substr(0, room);
    const auto cut = embed(*model, *tokenizer, {whole, whole + "p"}, {.layout = c.layout, .max_length = 8});
    EXPECT_EQ(cut.n_cut, 1);
    EXPECT_TRUE(close(cut.vectors[0], cut.vectors[1], 1e-6)) << "the end of the text is not read";
  }
  // Tokens far beyond the limit are not even made: here the last one would be an error.
  const auto model = model_of(kCases[0], *tokenizer);
  const std::string huge = std::string(size_t{2} << 20, 'a') + "\xFF";
  EXPECT_EQ(embed(*model, *tokenizer, {huge}, {.layout = TextLayout::cls_tokens_sep, .max_length = 8}).n_cut,
            1);
}

TEST(Embeddings, ProblemsNameTheText) {
  const auto tokenizer = letters(SpecialTokenSet::none);
  const auto model = model_of(kCases[2], *tokenizer);
  const auto problem = [&](const std::vector<std::string>& texts, TextLayout layout = TextLayout::tokens) {
    return message_of<DataError>([&] { embed(*model, *tokenizer, texts, {.layout = layout}); });
  };
  EXPECT_EQ(problem({"abc", ""}), "text 2: there are no tokens, so there is no vector: leave the text out");
  EXPECT_THAT(problem({"abc", "a", "xyz"}), HasSubstr("text 3: the character \"x\""));
  EXPECT_THAT(problem({"abc"}, TextLayout::cls_tokens_sep), HasSubstr("text 1: the tokenizer has no <cls>"));
  const torch::NoGradGuard no_grad;
  for (auto& parameter : model->parameters()) parameter.fill_(NAN);
  EXPECT_THAT(message_of<CheckpointError>([&] { embed(*model, *tokenizer, {"abc"}, {}); }),
              HasSubstr("not numbers"));
}

TEST(Embeddings, OfARunFollowItsTask) {
  const TinyWorld world;
  struct Expected {
    std::string task;
    std::vector<std::string> overrides;
    TextLayout layout;
    EmbeddingPooling pooling;
    bool has_pooler;
  };
  const std::vector<Expected> all = {
      {"language_modeling", {}, TextLayout::tokens, EmbeddingPooling::last, false},
      {"masked_language_modeling", {}, TextLayout::cls_tokens_sep, EmbeddingPooling::mean, false},
      {"text_to_text", {}, TextLayout::source_and_target, EmbeddingPooling::mean, false},
      {"text_classification", {}, TextLayout::cls_tokens_sep, EmbeddingPooling::mean, true},
      {"text_classification",
       {"model.pooler=false"},
       TextLayout::cls_tokens_sep,
       EmbeddingPooling::mean,
       false},
      {"text_classification",
       {"model.architecture=decoder"},
       TextLayout::tokens_eos,
       EmbeddingPooling::last,
       false}};
  for (size_t i = 0; i < all.size(); ++i) {
    const auto& [name, overrides, layout, pooling, has_pooler] = all[i];
    SCOPED_TRACE(fmt::format("{} {}", name, fmt::join(overrides, " ")));
    auto experiment = world.experiment(name, overrides);
    experiment.training.steps = 1;
    const auto run = Run::open(train(experiment, {.run_dir = world.path(fmt::format("run{}", i))}).run_dir);
    const auto options = embed_options(run);
    EXPECT_EQ(options.layout, layout);
    EXPECT_EQ(options.max_length, 24);
    EXPECT_EQ(options.pooling, std::vector{pooling});
    EXPECT_EQ(embed_options(run, {EmbeddingPooling::cls}).pooling, std::vector{EmbeddingPooling::cls});
    const auto message = message_of<UsageError>([&] { embed_options(run, {EmbeddingPooling::pooler}); });
    EXPECT_THAT(message, HasSubstr(has_pooler ? "no error" : "this model has no pooler"));
    EXPECT_EQ(embed(run.model(), run.tokenizer(), {"sun", "rain and sea"}, options).vectors.size(0), 2);
  }
}

}  // namespace
}  // namespace zoo::testing
