// What is said before long preparations.

#include "tasks/preparation.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/training.h"

namespace zoo::testing {
namespace {

/// The bytes from which notes are made for the texts of a TinyWorld.
constexpr LongPreparation kShort{.learnt = 1, .read = 1};

TEST(Preparation, CountsTheBytesOfAllFiles) {
  const TinyWorld world;
  world.dir().write("data/a.txt", std::string(1000, 'a'));
  world.dir().write("data/b.txt", std::string(234, 'b'));
  world.dir().write("data/p.de", std::string(10, 'd'));
  world.dir().write("data/p.en", std::string(11, 'e'));
  const auto texts =
      world.experiment("language_modeling", {"data.train=[a.txt, b.txt]", "data.valid=b.txt"}).data;
  EXPECT_EQ(bytes_of(texts, Split::train), 1234);
  EXPECT_EQ(bytes_of(texts, Split::valid), 234);
  EXPECT_EQ(bytes_of(world.experiment("text_to_text", {"data.train=p"}).data, Split::train), 21)
      << "both sides";
  EXPECT_EQ(bytes_of(world.experiment("language_modeling", {"data.train=none.txt"}).data, Split::train), 0);
  EXPECT_EQ(bytes_of(texts, Split::test), 0) << "there are no files for it";
  EXPECT_EQ(reading_note(texts, Split::test), std::nullopt);
}

TEST(Preparation, SaysWhatIsReadFromTheLimitOn) {
  const TinyWorld world;
  world.dir().write("data/a.txt", std::string(1000, 'a'));
  world.dir().write("data/b.txt", std::string(234, 'b'));
  const auto data =
      world.experiment("language_modeling", {"data.train=[a.txt, b.txt]", "data.valid=b.txt"}).data;
  EXPECT_EQ(reading_note(data, Split::train), std::nullopt);
  EXPECT_EQ(reading_note(data, Split::train, {.read = 1234}), "reading a.txt and 1 more (1.2 kB)");
  EXPECT_EQ(reading_note(data, Split::train, {.read = 1235}), std::nullopt);
  EXPECT_EQ(reading_note(data, Split::valid, {.read = 234}), "reading b.txt (234 bytes)");
}

TEST(Preparation, SaysWhatIsLearntUnlessNothingIs) {
  const TinyWorld world;
  world.dir().write("data/a.txt", std::string(1000, 'a'));
  const auto note = [&](const std::string& tokenizer) {
    return learning_note(
        world.experiment("language_modeling", {"data.train=a.txt", "data.tokenizer={" + tokenizer + "}"}),
        kShort);
  };
  for (const char* type : {"bpe", "wordpiece", "sentencepiece"}) {
    EXPECT_EQ(note("type: " + std::string(type) + ", vocab_size: 300"),
              "learning a vocabulary of 300 tokens from a.txt (1.0 kB)");
  }
  EXPECT_EQ(note("type: char"), std::nullopt);
  EXPECT_EQ(note("type: byte"), std::nullopt);
  EXPECT_EQ(note("type: sentencepiece, path: a.model"), std::nullopt) << "it is there already";
  auto experiment = world.experiment("language_modeling", {"data.train=a.txt", "data.tokenizer={type: bpe}"});
  EXPECT_NE(learning_note(experiment, kShort), std::nullopt);
  EXPECT_EQ(learning_note(experiment), std::nullopt) << "this is quick";
  experiment.init_from = "run";
  EXPECT_EQ(learning_note(experiment, kShort), std::nullopt) << "the run has a vocabulary";
}

}  // namespace
}  // namespace zoo::testing
