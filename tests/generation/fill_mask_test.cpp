#include "generation/fill_mask.h"

#include <cctype>
#include <cmath>
#include <limits>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/error.h"
#include "io/files.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text_models.h"
#include "tokenizers/sentencepiece_tokenizer.h"

namespace zoo {
namespace {

using ::testing::HasSubstr;
using zoo::testing::letters;
using zoo::testing::small_config;
using zoo::testing::text_model;

struct MaskFixture {
  std::shared_ptr<const Tokenizer> tokenizer = letters();
  std::shared_ptr<Model> model = text_model(small_config(Architecture::encoder, Position::learned),
                                            *tokenizer, HeadKind::masked_language_modeling);
};

TEST(FillMasks, RanksTheTokensByTheirProbability) {
  const MaskFixture f;
  const TokenIds ids = f.tokenizer->encode_masked("ab<mask>de");
  const auto found = fill_masks(*f.model, *f.tokenizer, "ab<mask>de", {.candidates = 24});
  EXPECT_EQ(found.prompt_ids, ids);
  ASSERT_EQ(found.masks.size(), 1U);
  // Every token of text, and no other.
  ASSERT_EQ(found.masks[0].size(), static_cast<size_t>(f.tokenizer->vocab_size() - 7));
  Batch batch;
  TokenIds whole = ids;
  whole.insert(whole.begin(), f.tokenizer->special().cls);
  whole.push_back(f.tokenizer->special().sep);
  batch.input.ids = torch::tensor(whole).unsqueeze(0);
  f.model->eval();
  const torch::NoGradGuard no_grad;
  const auto expected = f.model->logits(f.model->features(batch)).softmax(1)[3];
  double previous = 1;
  for (const auto& candidate : found.masks[0]) {
    EXPECT_NEAR(candidate.probability, expected[candidate.id].item<double>(), 1e-5);
    EXPECT_EQ(candidate.text, f.tokenizer->decode({&candidate.id, 1}));
    EXPECT_LE(candidate.probability, previous);
    previous = candidate.probability;
  }
}

TEST(FillMasks, WritesTheFilledText) {
  const MaskFixture f;
  const auto found = fill_masks(*f.model, *f.tokenizer, "ab<mask>de", {.candidates = 3});
  ASSERT_EQ(found.outputs.size(), 3U);
  for (size_t i = 0; i < 3; ++i) {
    const auto& candidate = found.masks[0][i];
    EXPECT_EQ(found.outputs[i].text, "ab" + candidate.text + "de");
    EXPECT_EQ(found.outputs[i].ids, TokenIds{candidate.id});
    EXPECT_NEAR(found.outputs[i].logprobs.at(0), std::log(candidate.probability), 1e-9);
  }
}

TEST(FillMasks, FindsTheBestCombinationsOfManyMasks) {
  const MaskFixture f;
  constexpr int64_t n = 6;
  const auto found = fill_masks(*f.model, *f.tokenizer, "<mask>b<mask><mask>", {.candidates = n});
  ASSERT_EQ(found.masks.size(), 3U);
  std::vector<double> scores;
  for (const auto& a : found.masks[0]) {
    for (const auto& b : found.masks[1]) {
      for (const auto& c : found.masks[2])
        scores.push_back(std::log(a.probability * b.probability * c.probability));
    }
  }
  std::ranges::sort(scores, std::greater<>());
  ASSERT_EQ(found.outputs.size(), static_cast<size_t>(n));
  for (size_t i = 0; i < n; ++i) {
    EXPECT_NEAR(found.outputs[i].score, scores[i], 1e-9);
    EXPECT_EQ(found.outputs[i].ids.size(), 3U);
  }
  EXPECT_EQ(found.outputs[0].text,
            found.masks[0][0].text + "b" + found.masks[1][0].text + found.masks[2][0].text);
}

/// How each token of a vocabulary is shown as a candidate.
std::map<std::string, std::string> shown_by_label(const Tokenizer& tokenizer) {
  const auto model = text_model(small_config(Architecture::encoder, Position::learned), tokenizer,
                                HeadKind::masked_language_modeling);
  std::map<std::string, std::string> shown;
  const auto found = fill_masks(*model, tokenizer, "<mask>", {.candidates = tokenizer.vocab_size()});
  for (const auto& candidate : found.masks[0]) {
    EXPECT_EQ(candidate.text, tokenizer.decode({&candidate.id, 1}));
    shown[tokenizer.label(candidate.id)] = candidate.shown;
  }
  return shown;
}

std::unique_ptr<Tokenizer> pieces(const std::vector<std::string>& texts, int64_t vocab_size) {
  TokenizerConfig config;
  config.vocab_size = vocab_size;
  config.byte_fallback = false;
  return make_tokenizer(config, SpecialTokenSet::all, [&](const auto& sink) {
    for (int i = 0; i < 50; ++i) std::ranges::for_each(texts, sink);
  });
}

TEST(FillMasks, ShowsCandidatesAsPeopleWriteThem) {
  const auto english = shown_by_label(
      *pieces({"to do or not to do.\nhe is doing it, she was going", "go on and do it: ça va «là»"}, 37));
  std::map<std::string, int> seen;
  for (const auto& [label, shown] : english) {
    const std::string mark = "▁";
    if (label == mark) {
      ++seen["blank"];
      EXPECT_EQ(shown, "␣");
    } else if (label.starts_with(mark)) {
      ++seen["word"];
      EXPECT_EQ(shown, label.substr(mark.size()));
    } else if (label == "↵" || std::string(".,:«»").find(label) != std::string::npos) {
      ++seen["sign"];
      EXPECT_EQ(shown, label);
    } else {
      ++seen["part"];
      EXPECT_EQ(shown, "-" + label);
    }
  }
  EXPECT_EQ(seen.size(), 4U);
  EXPECT_EQ(english.at("à"), "-à");
  EXPECT_EQ(english.at("↵"), "↵");
  EXPECT_EQ(english.at("«"), "«");

  // Words have no hyphen, even capitalised ones, which this tokenizer cannot encode because it folds case.
  const testing::TempDir dir;
  pieces({"Berlin und Paris", "Paris und Bern"}, 23)->save(dir.path());
  const SentencePieceTokenizer folding(
      read_file(dir / "tokenizer.model"),
      {.lowercase = true, .normalization = TextNormalization::none, .marks_lines = true});
  int64_t capitals = 0;
  for (const auto& [label, shown] : shown_by_label(folding)) {
    if (!label.starts_with("▁") || label == "▁") continue;
    const auto word = label.substr(std::string("▁").size());
    EXPECT_EQ(shown, word);
    capitals += std::isupper(static_cast<unsigned char>(word[0])) != 0;
  }
  EXPECT_GT(capitals, 0);

  // No hyphens in a script without blanks between words.
  const auto chinese = shown_by_label(*pieces({"我们在家", "他在我们家里", "你们好吗"}, 18));
  EXPECT_EQ(chinese.at("们"), "们");
}

TEST(FillMasks, ShowsCharactersAsTheyAreAndBytesByTheirNumber) {
  const auto letter = shown_by_label(*letters());
  EXPECT_EQ(letter.at("a"), "a");
  EXPECT_EQ(letter.at("↵"), "↵");
  TokenizerConfig config;
  config.type = TokenizerKind::byte;
  const auto byte =
      shown_by_label(*make_tokenizer(config, SpecialTokenSet::all, [](const auto& sink) { sink(""); }));
  EXPECT_EQ(byte.at("a"), "a");
  EXPECT_EQ(byte.at("▁"), "␣");
  EXPECT_EQ(byte.at("<0x1B>"), "<0x1B>");
  EXPECT_EQ(byte.at("<0xC3>"), "<0xC3>");
}

TEST(FillMasks, SaysWhatIsWrong) {
  const MaskFixture f;
  const auto fails_with = [&](const std::string& text, const FillMaskOptions& options,
                              const std::string& problem) {
    try {
      fill_masks(*f.model, *f.tokenizer, text, options);
      ADD_FAILURE() << "no error for " << text;
    } catch (const DataError& error) {
      EXPECT_THAT(error.what(), HasSubstr(problem));
    }
  };
  fails_with("abc", {}, "there is no <mask>");
  fails_with("", {}, "there is no <mask>");
  fails_with("abcdef<mask>", {.max_length = 8}, "has 9 tokens");
  fails_with("\xFF<mask>", {}, "UTF-8");
  EXPECT_THROW(fill_masks(*f.model, *f.tokenizer, TokenIds{f.tokenizer->special().mask, 77}), DataError);
  const auto plain = letters(SpecialTokenSet::none);
  EXPECT_THROW(fill_masks(*f.model, *plain, "a<mask>"), DataError);
}

TEST(FillMasks, ReadsWeightsThatAreNotNumbersAsDamaged) {
  MaskFixture f;
  {
    const torch::NoGradGuard no_grad;
    f.model->parameters().front().fill_(std::numeric_limits<float>::quiet_NaN());
  }
  EXPECT_THROW(fill_masks(*f.model, *f.tokenizer, "<mask>"), CheckpointError);
}

TEST(FillMasks, LeavesTheModelInTrainingIfItWas) {
  const MaskFixture f;
  f.model->train();
  const auto first = fill_masks(*f.model, *f.tokenizer, "ab<mask>");
  EXPECT_TRUE(f.model->is_training());
  const auto second = fill_masks(*f.model, *f.tokenizer, "ab<mask>");
  EXPECT_EQ(first.masks[0][0].probability, second.masks[0][0].probability) << "dropout was on";
}

}  // namespace
}  // namespace zoo
