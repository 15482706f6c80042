// Whatever a prompt is, it gets an answer or an error of one line.

#include <random>
#include <string>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "base/error.h"
#include "generation/generator.h"
#include "generation/prompt.h"
#include "tests/support/text_models.h"
#include "tokenizers/tokenizer_file.h"

namespace zoo {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using zoo::testing::letters;
using zoo::testing::small_config;
using zoo::testing::text_model;

constexpr int kPromptsOfAModel = 2500;  // for each model

/// Prompts of every kind that a person or a program may give.
class AnyPrompt {
 public:
  explicit AnyPrompt(uint32_t seed) : random_(seed) {}

  std::string next() {
    switch (number(0, 7)) {
      case 0:
        return "";
      case 1:
        return std::string(1, letter());
      case 2:
        return written(number(2, 12));
      case 3:
        return written(number(20, 200));  // longer than the model's context
      case 4:
        return std::string(static_cast<size_t>(number(1, 5)), '\n');
      case 5: {  // names of special tokens, which are plain text here
        std::string text;
        for (int i = number(1, 4); i > 0; --i) text += number(0, 1) == 0 ? "<eos>" : "<bos>";
        return text;
      }
      case 6: {  // often not UTF-8
        std::string text;
        for (int i = number(1, 12); i > 0; --i) text += static_cast<char>(number(0, 255));
        return text;
      }
      default:  // far more than any model reads
        return number(0, 20) == 0 ? std::string(static_cast<size_t>(number(5000, 400000)), letter())
                                  : written(number(2, 12)) + "é" + written(3);
    }
  }

 private:
  int number(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }
  char letter() { return static_cast<char>('a' + number(0, 15)); }
  std::string written(int n) {
    std::string text;
    for (int i = 0; i < n; ++i) text += letter();
    return text;
  }

  std::mt19937 random_;
};

/// What `zoo generate` does with a prompt.
Generation answer(const Generator& generator, const Tokenizer& tokenizer, GenerativeModel& model,
                  const std::string& prompt, const GenerationConfig& options) {
  check_prompt_size(prompt, model.max_length());
  check_utf8(prompt);
  return generator.generate(std::vector<TokenIds>{encode_prompt(tokenizer, prompt, model)}, options).front();
}

class EveryPrompt : public ::testing::TestWithParam<std::tuple<Architecture, TokenizerKind>> {};

TEST_P(EveryPrompt, HasAnAnswerOrAnErrorOfOneLine) {
  const auto [architecture, kind] = GetParam();
  TokenizerConfig config;
  config.type = kind;
  const auto tokenizer = kind == TokenizerKind::character
                             ? letters()
                             : make_tokenizer(config, SpecialTokenSet::all, [](const auto&) {});
  auto shape = small_config(architecture);
  shape.max_positions = 24;
  const auto model = text_model(shape, *tokenizer);
  const Generator generator(*model, *tokenizer);
  const GenerationConfig options{.max_new_tokens = 2, .temperature = 0};
  AnyPrompt prompts(1);
  int n_answers = 0, n_errors = 0;
  for (int i = 0; i < kPromptsOfAModel; ++i) {
    const auto prompt = prompts.next();
    try {
      const auto generation = answer(generator, *tokenizer, *model->generative(), prompt, options);
      ASSERT_EQ(generation.outputs.size(), 1U);
      ASSERT_LE(generation.outputs[0].ids.size(), 2U);
      ASSERT_EQ(generation.outputs[0].ids.size(), generation.outputs[0].logprobs.size());
      ++n_answers;
    } catch (const DataError& error) {
      ASSERT_STRNE(error.what(), "") << i;
      ASSERT_THAT(error.what(), Not(HasSubstr("\n"))) << i;
      ++n_errors;
    }
  }
  EXPECT_GT(n_answers, kPromptsOfAModel / 3);
  EXPECT_GT(n_errors, kPromptsOfAModel / 20);
}

INSTANTIATE_TEST_SUITE_P(
    Models, EveryPrompt,
    ::testing::Combine(::testing::Values(Architecture::decoder, Architecture::encoder_decoder),
                       ::testing::Values(TokenizerKind::character, TokenizerKind::byte)));

}  // namespace
}  // namespace zoo
