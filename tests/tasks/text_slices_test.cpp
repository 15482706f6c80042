// The bytes of texts by what they are, and the losses of tokens that are spread over them.

#include "tasks/text/text_slices.h"

#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include "checkpoints/initial_weights.h"
#include "tasks/examples.h"
#include "tasks/task.h"
#include "tasks/text/stream_examples.h"
#include "tests/support/text_models.h"
#include "tests/support/training.h"
#include "tokenizers/token_store.h"

namespace zoo::testing {
namespace {

/// The names of the slices of a byte.
std::vector<std::string_view> names(const ByteSlices& slices) {
  std::vector<std::string_view> result;
  for (const uint8_t slice : slices)
    if (slice != kNoSlice) result.push_back(kTextSlices[slice].name);
  return result;
}

using ::testing::ElementsAre;

TEST(TextSlices, SayWhatABytesIs) {
  const std::string text = "The cat, the dog: 4 caté 猫猫 пёс_";
  WordCounts counts;
  counts.add(text);
  for (int i = 0; i < 98; ++i) counts.add("the");
  EXPECT_EQ(counts.of("the"), 100);
  TextSlicer slicer(counts);
  const auto slices = slicer.next(text);
  ASSERT_EQ(slices.size(), text.size());
  const auto at = [&](std::string_view word, size_t byte = 0) {
    return names(slices[text.find(word) + byte]);
  };
  EXPECT_THAT(at("The"), ElementsAre("words that occur 100 times or more", "new words", "Latin letters",
                                     "words of 1 to 3 characters"));
  EXPECT_THAT(at("the"),
              ElementsAre("words that occur 100 times or more", "words seen in the 1,000 bytes before",
                          "Latin letters", "words of 1 to 3 characters"));
  EXPECT_THAT(at(" cat"), ElementsAre("white space"));
  EXPECT_THAT(at(","), ElementsAre("punctuation and symbols"));
  EXPECT_THAT(at("4"),
              ElementsAre("words that occur once", "new words", "digits", "words of 1 to 3 characters"));
  // Both bytes of é, and those of a word that is not "cat".
  for (const size_t byte : {0U, 3U, 4U})
    EXPECT_THAT(at("caté", byte), ElementsAre("words that occur once", "new words", "Latin letters",
                                              "words of 4 to 6 characters"));
  EXPECT_THAT(at("猫"), ElementsAre("words that occur 2 to 9 times", "new words", "letters of other scripts",
                                    "words of 1 to 3 characters"));
  EXPECT_THAT(at("猫", 3)[1], "words seen in the 1,000 bytes before") << "each is a word";
  EXPECT_THAT(at("пёс")[2], "letters of other scripts");
  EXPECT_THAT(at("_"), ElementsAre("punctuation and symbols"));
}

TEST(TextSlices, RememberWordsOfEarlierPartsForAThousandBytes) {
  WordCounts counts;
  TextSlicer slicer(counts);
  slicer.next("word");
  const auto novelty = [&](const std::string& part) { return kTextSlices[slicer.next(part).back()[1]].name; };
  EXPECT_EQ(novelty(std::string(996, ' ') + "word"), "words seen in the 1,000 bytes before");
  EXPECT_EQ(novelty(std::string(1000, ' ') + "word"), "words seen in the 1,000 bytes before");
  EXPECT_EQ(novelty(std::string(1001, ' ') + "word"), "new words");
}

TEST(TextSlices, HaveTheQuartersOfAWindow) {
  const auto quarter = [](int64_t n_read, int64_t length) {
    return kTextSlices[slice_of_position(n_read, length)].name;
  };
  EXPECT_EQ(quarter(1, 8), "first quarter of the window");
  EXPECT_EQ(quarter(2, 8), "first quarter of the window");
  EXPECT_EQ(quarter(3, 8), "second quarter of the window");
  EXPECT_EQ(quarter(6, 8), "third quarter of the window");
  EXPECT_EQ(quarter(7, 8), "last quarter of the window");
  EXPECT_EQ(quarter(8, 8), "last quarter of the window");
  EXPECT_EQ(quarter(1, 1), "first quarter of the window");
}

/// The sum of a slice over examples.
SliceSum sum_of(const std::vector<ExampleScore>& examples, std::string_view name) {
  SliceSum sum;
  for (const auto& example : examples) {
    for (size_t i = 0; i < kTextSlices.size(); ++i) {
      if (kTextSlices[i].name != name) continue;
      sum.nats += example.slices.at(i).nats;
      sum.bytes += example.slices.at(i).bytes;
    }
  }
  return sum;
}

TEST(TextSlices, GetTheLossesOfTokensByTheirBytes) {
  // Tokens of one letter: losses 0, 1, 2 … of "ab cab", the first one not predicted; windows of 3 tokens.
  TokenizerConfig config;
  config.type = TokenizerKind::character;
  const auto tokenizer =
      make_tokenizer(config, SpecialTokenSet::none, [](const auto& sink) { sink("ab c"); });
  const std::string text = "ab cab";
  const auto stream = TokenStore::from_rows({tokenizer->encode(text)});
  const auto examples = examples_of_stream(stream, {text}, StreamTexts::examples, *tokenizer, {1, 2, 3, 4, 5},
                                           {.prefix = 1, .length = 3});
  ASSERT_EQ(examples.size(), 1U);
  EXPECT_DOUBLE_EQ(examples[0].loss, 15);
  const auto expect = [&](std::string_view name, double nats, double bytes) {
    EXPECT_NEAR(sum_of(examples, name).nats, nats, 1e-9) << name;
    EXPECT_NEAR(sum_of(examples, name).bytes, bytes, 1e-9) << name;
  };
  expect("white space", 2, 1);
  expect("Latin letters", 13, 5);
  expect("words that occur once", 13, 5);  // ab and cab
  expect("new words", 13, 5);
  expect("digits", 0, 0);
  // After 1, 2, 3, and again 1 and 2 tokens.
  expect("first quarter of the window", 1 + 4, 2);
  expect("second quarter of the window", 2 + 5, 2);
  expect("third quarter of the window", 3, 1);
  expect("last quarter of the window", 0, 0);
}

TEST(TextSlices, OfAKindAddUpToTheWhole) {
  const TinyWorld world;
  for (const char* const tokenizer :
       {"{type: char}", "{type: bpe, vocab_size: 270}", "{type: sentencepiece, vocab_size: 290}"}) {
    SCOPED_TRACE(tokenizer);
    const auto experiment =
        world.experiment("language_modeling", {fmt::format("data.tokenizer={}", tokenizer)});
    const auto task = task_of_new_run(experiment);
    torch::manual_seed(1);
    const auto model = initialized_model(experiment, *task);
    std::vector<ExampleScore> examples;
    task->evaluate(*model, Split::valid, {.examples = &examples});
    SliceSum of_characters, of_positions;
    double loss = 0, bytes = 0;
    for (const auto& example : examples) {
      loss += example.loss;
      bytes += static_cast<double>(example.bytes);
      for (size_t i = 0; i < kTextSlices.size(); ++i) {
        auto* const sum = kTextSlices[i].kind == SliceKind::characters ? &of_characters
                          : kTextSlices[i].kind == SliceKind::position ? &of_positions
                                                                       : nullptr;
        if (!sum) continue;
        sum->nats += example.slices.at(i).nats;
        sum->bytes += example.slices.at(i).bytes;
      }
    }
    EXPECT_NEAR(of_characters.bytes, bytes, 1e-6);
    EXPECT_NEAR(of_positions.nats, of_characters.nats, 1e-6 * loss);
    // Learned vocabularies have an end token, which has no bytes.
    EXPECT_LE(of_characters.nats, loss * (1 + 1e-9));
    EXPECT_GT(of_characters.nats, 0.9 * loss);
  }
}

}  // namespace
}  // namespace zoo::testing
