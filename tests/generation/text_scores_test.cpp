#include "generation/text_scores.h"

#include <cmath>
#include <span>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/error.h"
#include "generation/generator.h"
#include "generation/prompt.h"
#include "tests/support/errors.h"
#include "tests/support/text_models.h"

namespace zoo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using zoo::testing::described;
using zoo::testing::letters;
using zoo::testing::message_of;
using zoo::testing::small_config;
using zoo::testing::text_model;
using zoo::testing::varied_configs;

/// The models have large weights, which make rounding larger, too.
constexpr double kRounding = 1e-4;

void expect_near(const std::vector<double>& actual, const std::vector<double>& expected,
                 const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (size_t i = 0; i < actual.size(); ++i)
    EXPECT_NEAR(actual[i], expected[i], kRounding) << what << ", " << i;
}

/// The definition, for a text that the model sees as a whole: one forward pass for each token.
std::vector<double> by_hand(Model& model, const TokensToScore& text, const Tokenizer& tokenizer) {
  const torch::NoGradGuard no_grad;
  const bool continues = model.generative()->continues_prompt();
  TokenIds read = continues ? text.prompt : TokenIds{tokenizer.special().bos};
  std::vector<double> result;
  for (const int64_t id : text.ids) {
    Batch batch;
    batch.input.ids = torch::tensor(continues ? read : text.prompt, torch::kInt64).unsqueeze(0);
    if (!continues) batch.decoder.ids = torch::tensor(read, torch::kInt64).unsqueeze(0);
    const auto hidden = model.features(batch);
    const auto logits = model.logits(hidden.narrow(0, hidden.size(0) - 1, 1)).squeeze(0);
    result.push_back(logits.log_softmax(0)[id].item<double>());
    read.push_back(id);
  }
  return result;
}

class TextScores : public ::testing::TestWithParam<Architecture> {};

TEST_P(TextScores, AreThoseOfWholeForwardPasses) {
  const auto tokenizer = letters();
  for (const auto& config : varied_configs(GetParam())) {
    const auto model = text_model(config, *tokenizer);
    std::vector<TokensToScore> texts;
    for (const std::string text : {"abcde", "p", "", "fghij", "ca"}) {
      texts.push_back(GetParam() == Architecture::decoder
                          ? tokens_to_score(text, *tokenizer, *model->generative())
                          : tokens_to_score("abc" + text, text, *tokenizer, *model->generative()));
    }
    // Several texts behind one prompt, which is read once for those that share a batch.
    const auto prompt = texts.back().prompt;
    for (const std::string text : {"ab", "hijk", "cc"})
      texts.push_back({.prompt = prompt, .ids = tokenizer->encode(text)});
    const auto found = token_logprobs(*model, texts, 3);
    model->eval();
    for (size_t i = 0; i < texts.size(); ++i)
      expect_near(found[i], by_hand(*model, texts[i], *tokenizer), described(config));
  }
}

// Also of texts that are longer than a decoder sees.
TEST_P(TextScores, AreTheLogprobsOfGeneratedTexts) {
  const auto tokenizer = letters();
  const std::vector<std::string> prompts = {"abcde", "p", "fghijklmnopabcdefghijk", "ca"};
  for (const auto& config : varied_configs(GetParam())) {
    const auto model = text_model(config, *tokenizer);
    const auto outputs = Generator(*model, *tokenizer).generate(prompts, {.max_new_tokens = 60, .seed = 5});
    std::vector<TokensToScore> texts;
    for (const auto& output : outputs) {
      texts.push_back({.prompt = model_input(output.prompt_ids, *tokenizer, *model->generative(), "prompt"),
                       .ids = output.outputs.front().ids});
    }
    const auto together = token_logprobs(*model, texts);
    for (size_t i = 0; i < texts.size(); ++i) {
      expect_near(together[i], outputs[i].outputs.front().logprobs, described(config));
      expect_near(token_logprobs(*model, {texts[i]}).front(), together[i], "alone, " + described(config));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Of, TextScores,
                         ::testing::Values(Architecture::decoder, Architecture::encoder_decoder),
                         [](const auto& test) { return std::string(name_of(test.param)); });

TEST(TextsToScore, StandAfterWhatAModelReadsFirst) {
  const auto tokenizer = letters();
  const auto& special = tokenizer->special();
  const auto decoder = text_model(small_config(Architecture::decoder), *tokenizer);
  const auto text = tokens_to_score("ab", *tokenizer, *decoder->generative());
  EXPECT_THAT(text.prompt, ElementsAre(special.eos));
  EXPECT_EQ(text.ids, tokenizer->encode("ab"));
  EXPECT_THAT(token_logprobs(*decoder, {{.prompt = text.prompt, .ids = {}}}), ElementsAre(IsEmpty()));

  const auto translator = text_model(small_config(Architecture::encoder_decoder), *tokenizer);
  const auto pair = tokens_to_score("ab", "c", *tokenizer, *translator->generative());
  EXPECT_THAT(pair.prompt, SizeIs(3));
  EXPECT_EQ(pair.prompt.back(), special.eos);
  EXPECT_THAT(pair.ids, ElementsAre(tokenizer->encode("c").front(), special.eos));
}

TEST(TextsToScore, MayBeTooLongForAModelThatAnswers) {
  const auto tokenizer = letters();
  const auto model = text_model(small_config(Architecture::encoder_decoder), *tokenizer);
  const std::string longer(1000, 'a');
  const auto score = [&](const std::string& source, const std::string& target) {
    return message_of<DataError>([&] { tokens_to_score(source, target, *tokenizer, *model->generative()); });
  };
  EXPECT_THAT(score(longer, "a"), HasSubstr("the source has 1001 tokens with the end token"));
  EXPECT_THAT(score("a", longer), HasSubstr("the target has 1001 tokens with the end token"));
}

}  // namespace
}  // namespace zoo
