#include "experiments/own_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "experiments/load_experiment.h"
#include "models/families/model_cost.h"
#include "tasks/task_type.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace zoo {
namespace {

using ::testing::HasSubstr;
using testing::TempDir;

class OwnTextRecipe : public ::testing::Test {
 protected:
  TextRecipe recipe(const std::string& line, size_t bytes, const std::vector<std::string>& overrides = {}) {
    std::string text;
    while (text.size() < bytes) text += line;
    return recipe_for({dir_.write("text.txt", text)}, overrides);
  }
  static double flops(const Experiment& experiment) {
    const auto purpose = task_type(experiment).purpose(experiment, experiment.data.tokenizer.vocab_size);
    return 3 * model_cost(experiment.model, *purpose, experiment.data.sequence_length).flops_per_token *
           static_cast<double>(experiment.training.steps * experiment.training.sequences() *
                               experiment.data.sequence_length);
  }
  TempDir dir_;
};

TEST_F(OwnTextRecipe, GrowsWithTheText) {
  double before = 0;
  for (const size_t bytes : {600, 5'000, 50'000, 500'000, 5'000'000}) {
    SCOPED_TRACE(bytes);
    const auto& chosen = recipe("It was the best of times, it was the worst of times.\n", bytes).experiment;
    EXPECT_EQ(chosen.name, "text");
    EXPECT_GE(flops(chosen), before);
    before = flops(chosen);
    EXPECT_LT(before, 4 * 60 * 1.2e11) << "four minutes on two cores";
    EXPECT_GE(chosen.training.steps, 60);
    EXPECT_LE(chosen.training.evaluate_every, chosen.training.steps / 10);
    // Nothing is lost, whatever the text has.
    const auto& tokenizer = chosen.data.tokenizer;
    EXPECT_TRUE(tokenizer.type == TokenizerKind::byte ||
                (tokenizer.byte_fallback.value_or(true) && !tokenizer.normalization));
  }
}

// The end of the text, which is for validation, is not trained on. The number of steps has two digits.
TEST_F(OwnTextRecipe, CountsTheTextThatIsTrainedOn) {
  for (const size_t bytes : {7'000, 10'000, 15'000}) {
    const auto made = recipe("one line of text\n", bytes);
    const auto& data = made.experiment.data;
    const auto& training = made.experiment.training;
    ASSERT_EQ(data.tokenizer.type, TokenizerKind::byte);
    const double tokens = (1 - data.valid_fraction) * static_cast<double>(made.bytes);
    EXPECT_DOUBLE_EQ(made.tokens, tokens);
    const double steps = 25 * tokens / static_cast<double>(training.sequences() * data.sequence_length);
    EXPECT_NEAR(static_cast<double>(training.steps), steps, 5) << "25 times, of " << made.bytes;
  }
}

TEST_F(OwnTextRecipe, AVocabularyHasRoomForEveryCharacter) {
  std::string line;
  for (char32_t c = U'一'; c < U'一' + 3000; ++c) line += encode_utf8(std::u32string(1, c));
  EXPECT_GT(recipe(line + "\n", 50'000).experiment.data.tokenizer.vocab_size, 3256);
}

TEST_F(OwnTextRecipe, IsItsYaml) {
  for (const size_t bytes : {5'000, 50'000, 2'000'000}) {
    const auto made = recipe("one line of text\n", bytes, {"training.steps=7"});
    EXPECT_EQ(made.experiment.training.steps, 7);
    EXPECT_EQ(dump_config(made.experiment),
              dump_config(parse_experiment(made.yaml, "x.yaml", {"training.steps=7"})));
    EXPECT_THAT(summary_of(made), HasSubstr("7 steps of"));
  }
}

TEST_F(OwnTextRecipe, NamesOfFilesAreNamesOfRuns) {
  const std::string text(2000, 'x');
  for (const auto& [file, name] : std::vector<std::pair<std::string, std::string>>{{"a: b #c.txt", "a: b #c"},
                                                                                   {"README", "README"},
                                                                                   {".hidden.txt", "hidden"},
                                                                                   {"null.txt", "null"}}) {
    const auto made = recipe_for({dir_.write(file, text)});
    EXPECT_EQ(made.experiment.name, name);
    EXPECT_EQ(made.experiment.data.train.at(0).text, (dir_ / file).string());
  }
}

TEST_F(OwnTextRecipe, ReadsTablesOfTextsAndConversations) {
  std::string rows, labelled, chats;
  for (int i = 0; i < 60; ++i) {
    rows += "{\"id\": 1, \"content\": \"one line of text\"}\n";
    labelled += "{\"text\": \"one line of text\", \"label\": 1}\n";
    chats += "{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}]}\n";
  }
  const auto texts = recipe_for({dir_.write("texts.jsonl", rows)}).experiment;
  EXPECT_EQ(texts.task.type, "language_modeling");
  EXPECT_EQ(texts.data.documents, DocumentSplit::line);
  EXPECT_EQ(texts.data.text_column, std::vector<std::string>{"content"});
  EXPECT_EQ(recipe_for({dir_.write("labelled.jsonl", labelled)}).experiment.task.type, "text_classification");
  const auto problem = [](const std::vector<std::filesystem::path>& files) {
    return testing::message_of<DataError>([&] { recipe_for(files); });
  };
  const auto chat = dir_.write("chats.jsonl", chats);
  EXPECT_THAT(problem({chat}), HasSubstr("--set init_from=DIRECTORY"));
  EXPECT_THAT(problem({dir_ / "texts.jsonl", chat}), HasSubstr("chats.jsonl: the files are not of one form"));
  EXPECT_THAT(problem({dir_ / "texts.jsonl", dir_ / "labelled.jsonl"}), HasSubstr("a table is not one text"));
}

}  // namespace
}  // namespace zoo
