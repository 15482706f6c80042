#include "generation/generator.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/error.h"
#include "generation/prompt.h"
#include "models/inference_scope.h"
#include "tests/support/errors.h"
#include "tests/support/text_models.h"

namespace zoo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using zoo::testing::described;
using zoo::testing::letters;
using zoo::testing::message_of;
using zoo::testing::small_config;
using zoo::testing::text_model;
using zoo::testing::varied_configs;

/// Logits of the next token from one forward pass over everything, as in training: no cache, no batch.
torch::Tensor uncached_logits(Model& model, const TokenIds& source, const TokenIds& decoder) {
  const torch::NoGradGuard no_grad;
  Batch batch;
  batch.input.ids = torch::tensor(source, torch::kInt64).unsqueeze(0);
  if (!decoder.empty()) batch.decoder.ids = torch::tensor(decoder, torch::kInt64).unsqueeze(0);
  const auto hidden = model.features(batch);
  return model.logits(hidden.narrow(0, hidden.size(0) - 1, 1)).squeeze(0);
}

/// Greedy generation by its definition.
Hypothesis greedy_by_hand(Model& model, const Tokenizer& tokenizer, TokenIds prompt, int64_t n) {
  const auto& special = tokenizer.special();
  const bool continues = model.generative()->continues_prompt();
  const int64_t limit = model.generative()->max_length();
  TokenIds answer = {special.bos};
  if (!continues) {
    prompt.push_back(special.eos);
    n = std::min(n, limit);
  }
  const SuppressTokens suppress(tokenizer.never_generated(), tokenizer.vocab_size(), torch::kCPU);
  Hypothesis result;
  while (static_cast<int64_t>(result.ids.size()) < n &&
         (result.ids.empty() || result.ids.back() != special.eos)) {
    if (continues && static_cast<int64_t>(prompt.size()) > limit)
      prompt.erase(prompt.begin(), prompt.end() - (limit + 1) / 2);
    const auto logits = uncached_logits(model, prompt, continues ? TokenIds() : answer);
    const auto token = suppress.process(logits.unsqueeze(0), {}).argmax().item<int64_t>();
    result.append(token, logits.log_softmax(0)[token].item<double>());
    (continues ? prompt : answer).push_back(token);
  }
  return result;
}

const GenerationConfig kGreedy{.max_new_tokens = 60, .temperature = 0};

class GeneratorVariants : public ::testing::TestWithParam<Architecture> {};

// Neither caching nor padding changes a token, also in texts longer than the model sees.
TEST_P(GeneratorVariants, GreedyTextIsThatOfWholeForwardPasses) {
  const auto tokenizer = letters();
  const std::vector<std::string> prompts = {"abcde", "p", "fghijklmnopabcdefghijk", "ca", "ppppp"};
  for (const auto& config : varied_configs(GetParam())) {
    const auto model = text_model(config, *tokenizer);
    const auto found = Generator(*model, *tokenizer).generate(prompts, kGreedy);
    model->eval();
    std::set<TokenIds> different;
    for (size_t i = 0; i < prompts.size(); ++i) {
      const auto expected = greedy_by_hand(*model, *tokenizer, tokenizer->encode(prompts[i]), 60);
      const auto& output = found[i].outputs.at(0);
      EXPECT_EQ(output.ids, expected.ids) << described(config) << ", prompt " << i;
      ASSERT_EQ(output.logprobs.size(), output.ids.size());
      for (size_t t = 0; t < std::min(output.ids.size(), expected.ids.size()); ++t) {
        EXPECT_NEAR(output.logprobs[t], expected.logprobs[t], 1e-4) << described(config);
      }
      different.insert(output.ids);
    }
    EXPECT_GT(different.size(), 2U) << described(config) << " gives equal texts for all prompts: a weak test";
  }
}

TEST_P(GeneratorVariants, BeamSearchOfManyPromptsIsThatOfEachAlone) {
  const auto tokenizer = letters();
  const std::vector<std::string> prompts = {"abcde", "p", "fghijklmnopabcdefghijk", "ca"};
  const GenerationConfig options{.max_new_tokens = 30, .beam = 3, .num_samples = 3};
  for (const auto& config : varied_configs(GetParam())) {
    const auto model = text_model(config, *tokenizer);
    const Generator generator(*model, *tokenizer);
    const auto together = generator.generate(prompts, options);
    for (size_t i = 0; i < prompts.size(); ++i) {
      const auto alone = generator.generate(std::vector{prompts[i]}, options);
      ASSERT_EQ(alone[0].outputs.size(), together[i].outputs.size());
      for (size_t b = 0; b < alone[0].outputs.size(); ++b) {
        EXPECT_EQ(alone[0].outputs[b].ids, together[i].outputs[b].ids)
            << described(config) << ", prompt " << i;
        if (b > 0) {
          EXPECT_LE(together[i].outputs[b].score, together[i].outputs[b - 1].score);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, GeneratorVariants,
                         ::testing::Values(Architecture::decoder, Architecture::encoder_decoder),
                         [](const auto& param) { return std::string(name_of(param.param)); });

struct Fixture {
  std::shared_ptr<const Tokenizer> tokenizer = letters();
  std::shared_ptr<Model> model;
  Generator generator;

  explicit Fixture(Architecture architecture = Architecture::decoder, Position position = Position::rotary)
      : model(text_model(small_config(architecture, position), *tokenizer)), generator(*model, *tokenizer) {}
};

TEST(Generator, GivesTheSameTextForTheSameSeedInAnyBatch) {
  const Fixture f;
  const std::vector<std::string> prompts = {"abc", "p", "bcdefgh"};
  GenerationConfig options{.max_new_tokens = 40, .temperature = 1.5, .num_samples = 3, .seed = 8};
  const auto first = f.generator.generate(prompts, options);
  options.batch_size = 1;  // a batch for each prompt
  const auto second = f.generator.generate(prompts, options);
  options.seed = 9;
  const auto other = f.generator.generate(prompts, options);
  std::set<TokenIds> texts;
  for (size_t p = 0; p < prompts.size(); ++p) {
    ASSERT_EQ(first[p].outputs.size(), 3U);
    for (size_t s = 0; s < 3; ++s) {
      EXPECT_EQ(first[p].outputs[s].ids, second[p].outputs[s].ids);
      EXPECT_EQ(first[p].outputs[s].text, second[p].outputs[s].text);
      texts.insert(first[p].outputs[s].ids);
      texts.insert(other[p].outputs[s].ids);
    }
  }
  EXPECT_EQ(texts.size(), 18U) << "samples, prompts and seeds should differ";
}

TEST(Generator, ItsRequestsGiveASchedulerTheSameOutputs) {
  const Fixture f;
  const GenerationConfig options{.max_new_tokens = 20, .temperature = 1.2, .num_samples = 3, .seed = 4};
  const auto expected = f.generator.generate(std::vector<std::string>{"abc", "p"}, options)[1];
  const auto prompt = f.generator.encode("p");
  const int64_t n_tokens = f.model->n_outputs();
  const InferenceScope scope(*f.model);
  Scheduler scheduler(*f.model->generative(), torch::kCPU);
  auto asked = f.generator.request(prompt, options, 1);
  asked.n_likeliest = n_tokens;
  const auto request = scheduler.submit(std::move(asked));
  while (scheduler.step()) {
  }
  const auto outputs = scheduler.take(request);
  ASSERT_EQ(outputs.size(), 3U);
  for (size_t s = 0; s < 3; ++s) {
    const auto output = f.generator.output(outputs[s], prompt, options);
    EXPECT_EQ(output.text, expected.outputs[s].text);
    EXPECT_EQ(output.logprobs, expected.outputs[s].logprobs);
    EXPECT_EQ(output.end, expected.outputs[s].end);
    // All tokens are there, the likeliest first, with the model's probabilities.
    ASSERT_EQ(outputs[s].likeliest.size(), output.ids.size());
    for (size_t t = 0; t < output.ids.size(); ++t) {
      const auto& tokens = outputs[s].likeliest[t];
      ASSERT_EQ(std::ssize(tokens), n_tokens);
      double sum = 0;
      for (size_t i = 0; i < tokens.size(); ++i) {
        sum += std::exp(tokens[i].logprob);
        if (i > 0) {
          EXPECT_GE(tokens[i - 1].logprob, tokens[i].logprob);
        }
        if (tokens[i].id == output.ids[t]) {
          EXPECT_EQ(tokens[i].logprob, output.logprobs[t]);
        }
      }
      EXPECT_NEAR(sum, 1, 1e-9);
    }
  }
  auto wrong = options;
  wrong.sequence_biases = {{.tokens = {99}, .bias = 1}};
  EXPECT_THAT(message_of<Error>([&] { f.generator.request(prompt, wrong); }),
              HasSubstr("99 is not a token id"));
}

// Forms are kept by their names: whole outputs have no mark that could tell them apart.
TEST(GeneratorForms, AreThoseOfTheirNames) {
  const Fixture f;
  const GenerationConfig options{.max_new_tokens = 12, .temperature = 0};
  const auto prompt = f.generator.encode("p");
  const InferenceScope scope(*f.model);
  for (const std::string text : {"abc", "cab", "abc"}) {
    const FormedParts parts{.form = PartForm{.then = PartForm::Then::end,
                                             .texts = [=] { return Expression::text(text); },
                                             .name = text}};
    Scheduler scheduler(*f.model->generative(), torch::kCPU);
    const auto request = scheduler.submit(f.generator.request(prompt, options, 0, parts));
    while (scheduler.step()) {
    }
    EXPECT_EQ(f.generator.output(scheduler.take(request).front(), prompt, options).text, text);
  }
}

TEST(Generator, StreamsTheTextThatItGenerates) {
  const Fixture f;
  const GenerationConfig options{.max_new_tokens = 50, .temperature = 1.2, .num_samples = 2, .seed = 4};
  const std::vector<std::string> prompts = {"abc", "p"};
  const auto expected = f.generator.generate(prompts, options);
  size_t pieces = 0, characters = 0;
  for (size_t p = 0; p < 2; ++p) {
    for (size_t s = 0; s < 2; ++s) {
      std::string text;
      auto stream = f.generator.stream(prompts[p], options, {.prompt = p, .sample = s});
      for (const auto& piece : stream) {
        EXPECT_FALSE(piece.empty());
        text += piece;
        ++pieces;
      }
      characters += text.size();
      EXPECT_EQ(text, expected[p].outputs[s].text);
      EXPECT_EQ(stream.output().ids, expected[p].outputs[s].ids);
    }
  }
  EXPECT_EQ(pieces, characters) << "each token is a character, and should be a piece";
  EXPECT_GT(pieces, 20U);
}

TEST(Generator, TakesUpACharacterThatThePromptBegan) {
  TokenizerConfig config;
  config.type = TokenizerKind::byte;
  const std::shared_ptr<const Tokenizer> tokenizer =
      make_tokenizer(config, SpecialTokenSet::none, [](const auto&) {});
  ContinuationDecoder decoder(*tokenizer, TokenIds{'o', 'k', 0xE2, 0x82});
  EXPECT_EQ(decoder.push(0xAC), "\xE2\x82\xAC");
  EXPECT_EQ(decoder.push('!'), "!");
  EXPECT_EQ(decoder.finish(), "");
}

TEST(Generator, DoesNotRepeatAMarkAtThePromptsEnd) {
  for (const auto type : {TokenizerKind::byte, TokenizerKind::character}) {
    TokenizerConfig config;
    config.type = type;
    const std::shared_ptr<const Tokenizer> tokenizer =
        make_tokenizer(config, SpecialTokenSet::none, [](const auto& sink) { sink("ok!\uFFFD"); });
    ContinuationDecoder decoder(*tokenizer, tokenizer->encode("ok\uFFFD"));
    EXPECT_EQ(decoder.push(tokenizer->encode("!").front()) + decoder.finish(), "!");
  }
}

// Prompt and answer share the positions of a decoder, also in one that answers.
TEST(Generator, ADecoderAnswersWithinItsPositions) {
  const auto tokenizer = letters();
  const auto config = small_config(Architecture::decoder, Position::learned);
  torch::manual_seed(3);
  const auto model = initialized_model(config, {.head = HeadKind::language_modeling,
                                                .prompt = PromptUse::answered,
                                                .vocab_size = tokenizer->vocab_size(),
                                                .start_token = tokenizer->special().bos});
  const Generator generator(*model, *tokenizer);
  const std::vector<std::string> prompts = {"a", "bcdefgh", "bc", "ed", std::string(30, 'k')};
  const GenerationConfig options{.max_new_tokens = 1000, .temperature = 0.5};
  const auto together = generator.generate(prompts, options);
  for (size_t i = 0; i < prompts.size(); ++i) {
    const auto& output = together[i].outputs[0];
    EXPECT_LE(output.ids.size() + prompts[i].size() + 1, static_cast<size_t>(config.max_positions));
    std::string text;
    for (const auto& piece : generator.stream(prompts[i], options, {.prompt = i})) text += piece;
    EXPECT_EQ(text, output.text);
  }
  EXPECT_THAT(message_of<DataError>([&] { generator.generate({std::string(31, 'k')}, options); }),
              HasSubstr("reads at most 31"));
}

TEST(Generator, MoreSamplesThanGoTogetherAreTheSame) {
  const Fixture f;
  const std::vector<std::string> prompts = {"abc"};
  GenerationConfig options{.max_new_tokens = 10, .temperature = 1.5, .num_samples = 7, .seed = 8};
  const auto expected = f.generator.generate(prompts, options)[0].outputs;
  options.batch_size = 3;
  const auto found = f.generator.generate(prompts, options)[0].outputs;
  ASSERT_EQ(found.size(), 7U);
  for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i].ids, expected[i].ids) << i;
}

TEST(Generator, NeverGeneratesTokensWithoutText) {
  for (const auto architecture : {Architecture::decoder, Architecture::encoder_decoder}) {
    auto tokenizer = letters();
    auto config = small_config(architecture, Position::rotary);
    config.vocab_size = tokenizer->vocab_size() + 40;  // more outputs than tokens
    const auto model = text_model(config, *tokenizer);
    const Generator generator(*model, *tokenizer);
    for (const int64_t beam : {1, 4}) {
      const auto found =
          generator.generate(std::vector<std::string>{"abc", "d"},
                             {.max_new_tokens = 24, .beam = beam, .temperature = 50, .num_samples = 4});
      for (const auto& generation : found) {
        for (const auto& output : generation.outputs) {
          for (const int64_t id : output.ids) {
            EXPECT_TRUE(id == tokenizer->special().eos || id > tokenizer->special().sep) << id;
            EXPECT_LT(id, tokenizer->vocab_size());
          }
          const auto eos = std::ranges::find(output.ids, tokenizer->special().eos);
          EXPECT_TRUE(eos == output.ids.end() || eos + 1 == output.ids.end()) << "something follows the end";
        }
      }
    }
  }
}

TEST(Generator, StopsAtItsLimits) {
  const Fixture decoder(Architecture::decoder), translator(Architecture::encoder_decoder);
  const std::vector<std::string> prompts = {"a", "bc", "def", "klm", "nop", "gh"};
  size_t longest = 0;
  for (const auto& generation : decoder.generator.generate(prompts, {.max_new_tokens = 7})) {
    longest = std::max(longest, generation.outputs[0].ids.size());
  }
  EXPECT_EQ(longest, 7U);
  longest = 0;
  for (const auto& generation :
       translator.generator.generate(prompts, {.max_new_tokens = 1000, .temperature = 0.5})) {
    longest = std::max(longest, generation.outputs[0].ids.size());
  }
  EXPECT_EQ(longest, 32U) << "max_positions";
}

TEST(Generator, BeginsAnEmptyPromptAsDocumentsBeginInTraining) {
  const auto all = letters(), none = letters(SpecialTokenSet::none);
  for (const auto& tokenizer : {all, none}) {
    const auto model = text_model(small_config(Architecture::decoder, Position::rotary), *tokenizer);
    const Generator generator(*model, *tokenizer);
    const int64_t start = tokenizer == all ? tokenizer->special().eos : tokenizer->encode("\n").front();
    const auto empty = generator.generate(std::vector<std::string>{""}, kGreedy);
    const auto begun = generator.generate(std::vector<TokenIds>{{start}}, kGreedy);
    EXPECT_EQ(empty[0].outputs[0].ids, begun[0].outputs[0].ids);
    EXPECT_TRUE(empty[0].prompt_ids.empty());
  }
}

TEST(Generator, ScoresAreLogprobsOverLength) {
  const Fixture f(Architecture::encoder_decoder);
  for (const int64_t beam : {1, 3}) {
    const auto output = f.generator
                            .generate(std::vector<std::string>{"abc"},
                                      {.max_new_tokens = 9, .beam = beam, .length_penalty = 0.7})[0]
                            .outputs[0];
    double total = 0;
    for (const double logprob : output.logprobs) total += logprob;
    EXPECT_NEAR(output.score, total / std::pow(static_cast<double>(output.ids.size()), 0.7), 1e-9);
  }
}

TEST(Generator, LeavesTheModelAndTheGlobalGeneratorAsTheyWere) {
  Fixture f;
  f.model->train();
  torch::manual_seed(5);
  const auto expected = torch::rand({4});
  torch::manual_seed(5);
  f.generator.generate(std::vector<std::string>{"abc"}, {.max_new_tokens = 30});
  EXPECT_TRUE(torch::equal(torch::rand({4}), expected));
  EXPECT_TRUE(f.model->is_training());
  // Training continues, and can use tables that the model made during generation.
  Batch batch;
  batch.input.ids = torch::tensor({{7, 8, 9}});
  f.model->logits(f.model->features(batch)).sum().backward();
}

TEST(Generator, ModelsWithTablesCanBeTrainedAfterwards) {
  for (const auto& config : varied_configs(Architecture::decoder)) {
    const auto tokenizer = letters();
    const auto model = text_model(config, *tokenizer);
    Generator(*model, *tokenizer).generate(std::vector<std::string>{"abc"}, {.max_new_tokens = 30});
    Batch batch;
    batch.input.ids = torch::tensor({{7, 8, 9}});
    EXPECT_NO_THROW(model->logits(model->features(batch)).sum().backward()) << described(config);
  }
}

TEST(Generator, SaysWhatIsWrongInOneLine) {
  const Fixture decoder(Architecture::decoder), translator(Architecture::encoder_decoder);
  EXPECT_THAT(message_of<Error>([&] { decoder.generator.generate(std::vector<TokenIds>{{8}, {8, 99}}); }),
              HasSubstr("prompt 2: 99 is not a token id: this vocabulary has 0 to 23"));
  EXPECT_THROW(decoder.generator.generate(std::vector<TokenIds>{{-1}}), DataError);
  EXPECT_THROW(decoder.generator.stream(TokenIds{24}), DataError);
  EXPECT_THAT(
      message_of<Error>([&] { translator.generator.generate(std::vector<TokenIds>{{9}, TokenIds(32, 9)}); }),
      HasSubstr("prompt 2 has 33 tokens with the end token, and the model reads at most 32"));
  EXPECT_NO_THROW(
      translator.generator.generate(std::vector<TokenIds>{TokenIds(31, 9)}, {.max_new_tokens = 1}));
  EXPECT_THROW(decoder.generator.generate(std::vector<std::string>{"\xFF"}), DataError);
  EXPECT_THAT(message_of<Error>([&] { decoder.generator.stream("a", {.beam = 2}); }), HasSubstr("beam"));

  EXPECT_THAT(
      message_of<Error>([&] { decoder.generator.generate(std::vector<std::string>{"a"}, {.top_p = 1.5}); }),
      HasSubstr("top_p is 1.5, and must be > 0 and <= 1"));
  for (const auto& options :
       std::vector<GenerationConfig>{{.max_new_tokens = 0},
                                     {.beam = 0},
                                     {.beam = 2, .num_samples = 3},
                                     {.temperature = -1},
                                     {.top_k = -1},
                                     {.top_p = 0},
                                     {.num_samples = 0},
                                     {.num_samples = kMostSamples + 1},
                                     {.min_p = -0.1},
                                     {.min_p = 1.1},
                                     {.stop = {"a", ""}},
                                     {.repetition_penalty = 0},
                                     {.presence_penalty = 1e9},
                                     {.no_repeat_ngram_size = -1},
                                     {.batch_size = 0},
                                     {.temperature = std::numeric_limits<double>::quiet_NaN()}}) {
    EXPECT_THROW(decoder.generator.generate(std::vector<std::string>{"a"}, options), UsageError);
  }
}

TEST(Generator, RefusesTextsThatNoModelReads) {
  const Fixture decoder(Architecture::decoder);
  constexpr size_t most = size_t{1} << 20;
  EXPECT_NO_THROW(check_prompt_size(std::string(most, 'a'), /*max_length=*/32));
  EXPECT_THAT(
      message_of<DataError>([&] { decoder.generator.stream(std::string(most + 1, 'a'), {.beam = 1}); }),
      HasSubstr("the text has more than 1048576 bytes, and the model reads at most 32 tokens: shorten it"));
}

/// The text before the first of these texts.
std::string before(const std::string& text, const std::vector<std::string>& stops) {
  size_t end = text.size();
  for (const auto& stop : stops) end = std::min(end, text.find(stop));
  return text.substr(0, end);
}

/// A letter pair that occurs in the middle of the text.
std::string pair_in(const std::string& text) { return text.substr(text.size() / 2, 2); }

TEST(Generator, EndsBeforeAStopText) {
  for (const auto architecture : {Architecture::decoder, Architecture::encoder_decoder}) {
    const Fixture f(architecture);
    const std::vector<std::string> prompts = {"abc", "p", "bcdefgh", "kk"};
    for (const double temperature : {0.0, 1.3}) {
      GenerationConfig options{.max_new_tokens = 24, .temperature = temperature, .num_samples = 2, .seed = 3};
      const auto whole = f.generator.generate(prompts, options);
      options.stop = {pair_in(whole[0].outputs[0].text), pair_in(whole[2].outputs[1].text)};
      const auto stopped = f.generator.generate(prompts, options);
      size_t n_shorter = 0;
      for (size_t p = 0; p < prompts.size(); ++p) {
        for (size_t s = 0; s < 2; ++s) {
          const auto &all = whole[p].outputs[s], &some = stopped[p].outputs[s];
          const auto expected = before(all.text, options.stop);
          EXPECT_EQ(some.text, expected);
          // The tokens end with the one that completes the stop text.
          const bool is_shorter = expected.size() < all.text.size();
          const size_t n_tokens = is_shorter ? expected.size() + 2 : all.ids.size();
          EXPECT_EQ(some.ids, TokenIds(all.ids.begin(), all.ids.begin() + static_cast<ptrdiff_t>(n_tokens)));
          EXPECT_EQ(some.logprobs.size(), n_tokens);
          n_shorter += is_shorter;
          std::string text;
          for (const auto& piece : f.generator.stream(prompts[p], options, {.prompt = p, .sample = s}))
            text += piece;
          EXPECT_EQ(text, expected) << "streamed";
        }
      }
      EXPECT_GE(n_shorter, 2U);
    }
  }
}

TEST(Generator, StopsBeamsWhereTheirTextHasAStopText) {
  for (const auto architecture : {Architecture::decoder, Architecture::encoder_decoder}) {
    const Fixture f(architecture);
    const std::vector<std::string> prompts = {"abc", "p", "bcdefgh"};
    GenerationConfig options{.max_new_tokens = 12, .beam = 3, .num_samples = 3};
    const auto best = f.generator.generate(prompts, options)[0].outputs[0].text;
    ASSERT_GT(best.size(), 3U);
    options.stop = {pair_in(best)};
    const auto together = f.generator.generate(prompts, options);
    size_t n_stopped = 0;
    for (size_t p = 0; p < prompts.size(); ++p) {
      const auto alone = f.generator.generate(std::vector{prompts[p]}, options);
      for (size_t b = 0; b < together[p].outputs.size(); ++b) {
        const auto& output = together[p].outputs[b];
        EXPECT_EQ(output.ids, alone[0].outputs[b].ids);
        auto ids = output.ids;
        if (ids.back() == f.tokenizer->special().eos) ids.pop_back();
        const auto text = f.tokenizer->decode(ids);
        EXPECT_EQ(output.text, before(text, options.stop));
        EXPECT_TRUE(text.find(options.stop[0]) == text.npos || text.ends_with(options.stop[0])) << text;
        n_stopped += text.ends_with(options.stop[0]);
      }
    }
    EXPECT_GE(n_stopped, 1U);
  }
}

/// Whether some `n` tokens follow each other twice.
bool repeats(const TokenIds& ids, size_t n) {
  std::set<TokenIds> seen;
  for (size_t i = 0; i + n <= ids.size(); ++i) {
    const auto begin = ids.begin() + static_cast<ptrdiff_t>(i);
    if (!seen.emplace(begin, begin + static_cast<ptrdiff_t>(n)).second) return true;
  }
  return false;
}

TEST(Generator, SaysNothingTwiceIfItMustNot) {
  for (const auto architecture : {Architecture::decoder, Architecture::encoder_decoder}) {
    const Fixture f(architecture);
    const std::vector<std::string> prompts = {"abab", "p", "cdcdc"};
    for (const int64_t beam : {1, 3}) {
      for (const double temperature : {0.0, 0.3}) {
        GenerationConfig options{.max_new_tokens = 24, .beam = beam, .temperature = temperature};
        size_t n_repeating = 0;
        for (const auto& generation : f.generator.generate(prompts, options))
          n_repeating += repeats(generation.outputs[0].ids, 2);
        EXPECT_GE(n_repeating, 1U) << "a weak test";
        options.no_repeat_ngram_size = 2;
        const auto found = f.generator.generate(prompts, options);
        for (size_t p = 0; p < prompts.size(); ++p) {
          auto said = f.generator.continues_prompt() ? found[p].prompt_ids : TokenIds();
          const bool prompt_repeats = repeats(said, 2);
          said.insert(said.end(), found[p].outputs[0].ids.begin(), found[p].outputs[0].ids.end());
          if (!prompt_repeats) {
            EXPECT_FALSE(repeats(said, 2)) << p;
          }
          EXPECT_FALSE(repeats(found[p].outputs[0].ids, 2)) << p;
          if (beam > 1) continue;
          std::string text;
          for (const auto& piece : f.generator.stream(prompts[p], options, {.prompt = p})) text += piece;
          EXPECT_EQ(text, found[p].outputs[0].text);
        }
      }
    }
  }
}

TEST(Generator, PenaltiesMakeTextsMoreVaried) {
  const auto n_different = [](const Fixture& f, const GenerationConfig& options) {
    size_t n = 0;
    for (const auto& generation : f.generator.generate(std::vector<std::string>{"abc", "p", "ko"}, options)) {
      const auto& ids = generation.outputs[0].ids;
      n += std::set<int64_t>(ids.begin(), ids.end()).size();
    }
    return n;
  };
  for (const auto architecture : {Architecture::decoder, Architecture::encoder_decoder}) {
    const Fixture f(architecture);
    for (const int64_t beam : {1, 2}) {
      for (const double temperature : {0.0, 0.5}) {
        const GenerationConfig plain{.max_new_tokens = 16, .beam = beam, .temperature = temperature};
        const auto before_penalties = n_different(f, plain);
        auto repetition = plain, presence = plain, frequency = plain;
        repetition.repetition_penalty = 1000;
        presence.presence_penalty = 50;
        frequency.frequency_penalty = 50;
        for (const auto& options : {repetition, presence, frequency})
          EXPECT_GT(n_different(f, options), before_penalties) << beam << " beams";
      }
    }
  }
}

TEST(Generator, MinPLeavesTheLikeliest) {
  const Fixture f;
  const std::vector<std::string> prompts = {"abc", "p"};
  const auto greedy = f.generator.generate(prompts, {.max_new_tokens = 20, .temperature = 0});
  const auto sampled = f.generator.generate(prompts, {.max_new_tokens = 20, .temperature = 1.5, .min_p = 1});
  const auto free = f.generator.generate(prompts, {.max_new_tokens = 20, .temperature = 1.5});
  for (size_t p = 0; p < prompts.size(); ++p) {
    EXPECT_EQ(sampled[p].outputs[0].ids, greedy[p].outputs[0].ids);
    EXPECT_NE(free[p].outputs[0].ids, greedy[p].outputs[0].ids);
  }
}

TEST(Generator, BadWordsAndEarlyEndsAreNotSaid) {
  const auto tokenizer = letters();
  const auto model = text_model(small_config(Architecture::decoder), *tokenizer);
  const Generator generator(*model, *tokenizer);
  for (const int64_t beam : {1, 3}) {
    for (const double temperature : {0.0, 1.0}) {
      GenerationConfig options{.max_new_tokens = 30, .beam = beam, .temperature = temperature, .seed = 4};
      if (beam > 1) options.temperature = 1;
      const auto before = generator.generate(std::vector<std::string>{"ab"}, options)[0].outputs[0];
      ASSERT_GE(before.text.size(), 2u);
      options.bad_words = {before.text.substr(0, 2), before.text.substr(1, 1)};
      const auto without = generator.generate(std::vector<std::string>{"ab"}, options)[0].outputs[0];
      for (const auto& word : options.bad_words)
        EXPECT_EQ(without.text.find(word), std::string::npos) << word;
      // An output that could end at once goes on.
      options.bad_words = {};
      options.stop = {};
      options.min_new_tokens = 30;
      const auto all = generator.generate(std::vector<std::string>{"ab"}, options)[0].outputs[0];
      EXPECT_EQ(std::ssize(all.ids), 30);
      EXPECT_EQ(std::ranges::count(all.ids, tokenizer->special().eos), 0);
      EXPECT_EQ(all.end, OutputEnd::length);
    }
  }
}

// Both alternatives begin alike: the first token must not lead to one that cannot be written.
TEST(Generator, SuppressedTokensLeaveAFormAWay) {
  const auto tokenizer = letters();
  const auto model = text_model(small_config(Architecture::decoder), *tokenizer);
  const Generator generator(*model, *tokenizer);
  const auto a = tokenizer->encode("a").front(), d = tokenizer->encode("d").front();
  GenerationConfig options{.max_new_tokens = 12, .temperature = 0};
  options.sequence_biases = {{.tokens = {a}, .bias = 50}};
  options.suppress_tokens = {d};
  options.regex = "ad|bc";
  EXPECT_EQ(generator.generate(std::vector<std::string>{"ab"}, options)[0].outputs[0].text, "bc");
  options.suppress_tokens = {};
  EXPECT_EQ(generator.generate(std::vector<std::string>{"ab"}, options)[0].outputs[0].text, "ad");
}

// A decoder's prompt counts for lengths and leaves a place for a forced first token only if it is one token;
// of a model that answers, the first token that its decoder reads counts. A batch has both kinds of prompts.
TEST(Generator, CountsLengthsAsTransformersDoes) {
  const auto tokenizer = letters();
  const int64_t eos = tokenizer->special().eos, b = tokenizer->encode("b").front();
  for (const auto architecture : {Architecture::decoder, Architecture::encoder_decoder}) {
    const auto model = text_model(small_config(architecture), *tokenizer);
    const Generator generator(*model, *tokenizer);
    const std::vector<TokenIds> prompts = {tokenizer->encode("a"), tokenizer->encode("abcab")};
    for (const int64_t beam : {1, 3}) {
      for (size_t p = 0; p < prompts.size(); ++p) {
        const bool continues = architecture == Architecture::decoder;
        const int64_t before = continues ? std::ssize(prompts[p]) : 1;
        const auto written = [&](GenerationConfig options) {
          options.beam = beam;
          options.temperature = 0;
          return generator.generate(prompts, options)[p].outputs.front();
        };
        const auto longest = written({.max_length = 9, .min_length = 9});
        EXPECT_EQ(std::ssize(longest.ids), 9 - before);
        EXPECT_EQ(std::ranges::count(longest.ids, eos), 0);
        EXPECT_EQ(std::ssize(written({.max_new_tokens = 4, .max_length = 9, .min_new_tokens = 4}).ids), 4);
        GenerationConfig forcing{.max_length = 8,
                                 .min_length = 20,
                                 .suppress_first_tokens = {longest.ids.front()},
                                 .forced_last_token = eos};
        const auto free = written(forcing);
        forcing.forced_first_token = b;
        const auto forced = written(forcing);
        EXPECT_EQ(std::ssize(forced.ids), 8 - before);
        EXPECT_EQ(forced.ids.back(), eos);
        EXPECT_NE(free.ids.front(), longest.ids.front());
        if (before == 1) {
          EXPECT_EQ(forced.ids.front(), b);
          EXPECT_NE(forced.ids[1], longest.ids.front()) << "the first token that is not forced";
        } else {
          EXPECT_EQ(forced.ids, free.ids);
        }
        const auto endless = written(
            {.max_new_tokens = 6, .ignore_eos = true, .sequence_biases = {{.tokens = {eos}, .bias = 100}}});
        EXPECT_EQ(endless.ids, TokenIds(6, eos));
        EXPECT_EQ(endless.end, OutputEnd::length);
      }
    }
  }
  const auto model = text_model(small_config(Architecture::decoder), *tokenizer);
  EXPECT_THAT(message_of<UsageError>([&] {
                Generator(*model, *tokenizer).generate(std::vector<std::string>{"abc"}, {.max_length = 3});
              }),
              HasSubstr("max_length 3 leaves no room for an output, because 3 tokens are there before it"));
}

// The rules look at each row by itself: in a batch, with proposals, as a stream, an output is the same.
TEST(Generator, AppliesRulesByRow) {
  const auto tokenizer = letters();
  const auto model = text_model(small_config(Architecture::decoder), *tokenizer);
  const Generator generator(*model, *tokenizer);
  const auto ids = tokenizer->encode("abc");
  const GenerationConfig options{
      .max_length = 16,
      .temperature = 0.9,
      .epsilon_cutoff = 0.01,
      .eta_cutoff = 0.02,
      .seed = -3,
      .min_length = 9,
      .sequence_biases = {{.tokens = {ids[0], ids[1]}, .bias = 2}, {.tokens = {ids[1], ids[2]}}},
      .forced_first_token = ids[2],
      .forced_last_token = tokenizer->special().eos,
      .encoder_repetition_penalty = 1.5,
      .encoder_no_repeat_ngram_size = 3,
      .exponential_decay_length_penalty = {2, 1.1},
      .renormalize_logits = true};
  auto proposing = options;
  proposing.prompt_lookup = 4;
  const std::vector<std::string> prompts = {"a", "abcabcab", "bc", "aaaaaa"};
  const auto together = generator.generate(prompts, options),
             proposed = generator.generate(prompts, proposing);
  for (size_t p = 0; p < prompts.size(); ++p) {
    const auto& output = together[p].outputs.front();
    EXPECT_EQ(proposed[p].outputs.front().ids, output.ids);
    std::string streamed;
    for (const auto& piece : generator.stream(prompts[p], options, {.prompt = p})) streamed += piece;
    EXPECT_EQ(streamed, output.text);
    for (size_t i = 1; i < output.ids.size(); ++i)
      EXPECT_FALSE(output.ids[i - 1] == ids[1] && output.ids[i] == ids[2]) << "bc in " << output.text;
  }
}

TEST(Generator, SaysWhyAnOutputEnded) {
  const auto tokenizer = letters();
  const auto model = text_model(small_config(Architecture::decoder), *tokenizer);
  const Generator generator(*model, *tokenizer);
  const auto end = [&](const GenerationConfig& options) {
    return generator.generate(std::vector<std::string>{"ab"}, options)[0].outputs[0].end;
  };
  GenerationConfig options = kGreedy;
  options.min_new_tokens = 4;
  const auto text = generator.generate(std::vector<std::string>{"ab"}, options)[0].outputs[0].text;
  options.stop = {text.substr(1, 1)};
  EXPECT_EQ(end(options), OutputEnd::stop_text);
  options.stop = {};
  options.max_new_tokens = 4;
  EXPECT_EQ(end(options), OutputEnd::length);
  options.min_new_tokens = 0;
  options.forced_last_token = tokenizer->special().eos;
  EXPECT_EQ(end(options), OutputEnd::end_token);
}

TEST(Generator, AnswersNothingWithNothing) {
  const Fixture translator(Architecture::encoder_decoder);
  const std::vector<std::string> prompts = {"abc", "", "de"};
  for (const int64_t beam : {1, 2}) {
    const GenerationConfig options{.max_new_tokens = 8, .beam = beam, .temperature = 0, .num_samples = beam};
    const auto found = translator.generator.generate(prompts, options);
    ASSERT_EQ(found[1].outputs.size(), static_cast<size_t>(beam));
    for (const auto& output : found[1].outputs) {
      EXPECT_EQ(output.text, "");
      EXPECT_TRUE(output.ids.empty());
      EXPECT_EQ(output.score, 0);
    }
    // The others are as without it.
    const auto alone = translator.generator.generate(std::vector<std::string>{"abc"}, options);
    EXPECT_EQ(found[0].outputs[0].ids, alone[0].outputs[0].ids);
  }
  for (const auto& piece : translator.generator.stream("", kGreedy)) ADD_FAILURE() << piece;
  EXPECT_TRUE(translator.generator.generate(std::vector<std::string>{""})[0].outputs[0].text.empty());
}

TEST(Generator, RefusesATextThatNoModelReads) {
  const Fixture f;
  const std::string long_text(2 << 20, 'a');
  EXPECT_THAT(message_of<DataError>([&] { f.generator.generate(std::vector{long_text}); }),
              HasSubstr("more than 1048576 bytes, and the model reads at most 32 tokens"));
  EXPECT_THROW(f.generator.stream(long_text), DataError);
  EXPECT_NO_THROW(f.generator.generate(std::vector<std::string>{std::string(1000, 'a')},
                                       {.max_new_tokens = 1, .temperature = 0}));
}

TEST(Generator, RefusesModelsThatDoNotGenerate) {
  const auto tokenizer = letters();
  const auto config = small_config(Architecture::decoder, Position::rotary);
  EXPECT_THROW(Generator(*text_model(config, *tokenizer, HeadKind::classification), *tokenizer), UsageError);
  const auto bert = small_config(Architecture::encoder, Position::learned);
  EXPECT_THROW(Generator(*text_model(bert, *tokenizer, HeadKind::masked_language_modeling), *tokenizer),
               UsageError);
}

TEST(Generator, OfNoPromptsGivesNothing) {
  EXPECT_TRUE(Fixture().generator.generate(std::vector<TokenIds>{}).empty());
}

TEST(Generator, ReadsWeightsThatAreNotNumbersAsDamaged) {
  Fixture f;
  {
    const torch::NoGradGuard no_grad;
    f.model->parameters().back().fill_(std::numeric_limits<float>::quiet_NaN());
  }
  for (const int64_t beam : {1, 2}) {
    EXPECT_THROW(f.generator.generate(std::vector<std::string>{"a"}, {.beam = beam}), CheckpointError);
  }
}

TEST(GenerationConfig, ChecksMethodsAgainstEachOther) {
  const auto problem = [](const GenerationConfig& options) {
    return message_of<UsageError>([&] { check(options); });
  };
  EXPECT_THAT(problem({.max_new_tokens = 3, .min_new_tokens = 4}),
              HasSubstr("4 is more than max_new_tokens 3"));
  EXPECT_THAT(problem({.bad_words = {"a", ""}}), HasSubstr("bad_words: has an empty text"));
  EXPECT_THAT(problem({.typical_p = 0}), HasSubstr("typical_p is 0"));
  EXPECT_THAT(problem({.sequence_biases = {{.tokens = {1}, .bias = 1e9}}}), HasSubstr("bias is 1000000000"));
  EXPECT_THAT(problem({.sequence_biases = {{}}}), HasSubstr("has a sequence without tokens"));
  EXPECT_THAT(problem({.exponential_decay_length_penalty = {1}}), HasSubstr("must be [start, factor]"));
  EXPECT_EQ(problem({.max_length = 500, .seed = -1, .min_new_tokens = 300}), "no error");
}

TEST(GenerationConfig, IsReadAndWritten) {
  GenerationConfig config;
  ConfigFile::parse("early_stopping: never\nbeam: 4\ntop_p: 0.9\n", "test").read(config);
  EXPECT_EQ(config.early_stopping, EarlyStopping::never);
  for (const auto value : {EarlyStopping::first_finished, EarlyStopping::heuristic, EarlyStopping::never}) {
    config.early_stopping = value;
    GenerationConfig again;
    ConfigFile::parse(dump_config(config), "dump").read(again);
    EXPECT_EQ(again.early_stopping, value);
    EXPECT_EQ(again.beam, 4);
  }
  ConfigFile::parse("stop: [\"\\n\\n\", \"# End: 1\", ' ']\nmin_p: 0.1\n", "test").read(config);
  EXPECT_THAT(config.stop, ElementsAre("\n\n", "# End: 1", " "));
  GenerationConfig copy;
  ConfigFile::parse(dump_config(config), "dump").read(copy);
  EXPECT_EQ(copy.stop, config.stop);
  EXPECT_EQ(copy.min_p, 0.1);
  ConfigFile::parse(
      "sequence_biases: [{tokens: [5, 6], bias: 2.5}, {tokens: [7]}]\nmax_length: 9\nseed: -1\n", "test")
      .read(config);
  ConfigFile::parse(dump_config(config), "dump").read(copy);
  ASSERT_EQ(copy.sequence_biases.size(), 2U);
  EXPECT_THAT(copy.sequence_biases[0].tokens, ElementsAre(5, 6));
  EXPECT_EQ(copy.sequence_biases[0].bias, 2.5);
  EXPECT_FALSE(copy.sequence_biases[1].bias || copy.max_new_tokens);
  EXPECT_EQ(copy.max_length, 9);
  EXPECT_EQ(copy.seed, -1);
  ConfigFile::parse("early_stopping: true\n", "test").read(config);
  EXPECT_EQ(config.early_stopping, EarlyStopping::first_finished);
  EXPECT_THROW(ConfigFile::parse("early_stopping: sometimes\n", "test").read(config), ConfigError);
  EXPECT_THROW(ConfigFile::parse("top_p: 0\n", "test").read(config), ConfigError);
}

}  // namespace
}  // namespace zoo
