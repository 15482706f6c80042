#include "experiments/own_text.h"

#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "data/images/image_file.h"
#include "data/images/image_set.h"
#include "experiments/load_experiment.h"
#include "io/files.h"
#include "models/families/model_cost.h"
#include "tasks/problem.h"
#include "tasks/task_type.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
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
    labelled += fmt::format("{{\"text\": \"one line of text\", \"label\": {}}}\n", i % 2);
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

TEST_F(OwnTextRecipe, TwoLanguagesGetATranslator) {
  std::string source, target;
  for (int i = 0; i < 60; ++i)
    source += fmt::format("das ist {}\n", i), target += fmt::format("that is {}\n", i);
  const std::vector<std::filesystem::path> files{dir_.write("pairs.de", source),
                                                 dir_.write("pairs.en", target)};
  const auto made = recipe_for(files).experiment;
  EXPECT_EQ(made.task.type, "text_to_text");
  EXPECT_EQ(made.model.architecture, Architecture::encoder_decoder);
  EXPECT_EQ(made.data.source + " " + made.data.target, "de en");
  EXPECT_EQ(recipe_for({files[1], files[0]}).experiment.data.source, "en");
  dir_.write("pairs.en", target + "one more\n");
  EXPECT_THAT(testing::message_of<DataError>([&] { recipe_for(files); }), HasSubstr("60 lines, but"));
  dir_.write("chapters.md", source + target);
  dir_.write("chapters.txt", source + target);
  EXPECT_EQ(recipe_for({dir_ / "chapters.md", dir_ / "chapters.txt"}).experiment.task.type,
            "language_modeling");
}

TEST_F(OwnTextRecipe, OtherFormsAreReadOrSayWhatIsMissing) {
  std::string text, csv = "review,sentiment\n";
  for (int i = 0; i < 60; ++i) {
    text += "a line of a text\n";
    csv += fmt::format("\"good, or {}\",{}\n", i, i % 2 ? "up" : "down");
  }
  dir_.write("folder/a.txt", text);
  dir_.write("folder/b/c.txt", text);
  const auto folder = recipe_for({dir_ / "folder"});
  EXPECT_EQ(folder.experiment.task.type, "language_modeling");
  EXPECT_EQ(folder.experiment.data.train.size(), 2u);
  const auto classifier = recipe_for({dir_.write("reviews.csv", csv)}).experiment;
  EXPECT_EQ(classifier.task.type, "text_classification");
  EXPECT_EQ(classifier.data.label_column, "sentiment");
  const auto json = [&](const std::string& content) {
    const auto file = dir_.write("records.json", content);
    return testing::message_of<DataError>([&] { is_own_text(file); });
  };
  EXPECT_THAT(json("[{\"instruction\": \"a\"}]"), HasSubstr("jq -c '.[]' "));
  EXPECT_THAT(json("{\"images\": [], \"annotations\": []}"), HasSubstr("task: object_detection"));
  dir_.write("spoken/a.wav", "RIFF");
  EXPECT_THAT(testing::message_of<DataError>([&] { recipe_for({dir_ / "spoken"}); }),
              HasSubstr("the columns audio and text"));
}

// The user has no text of the configuration, so messages name no lines of it.
TEST_F(OwnTextRecipe, MessagesNameNoLinesOfIt) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "a line of a text\n";
  const auto file = dir_.write("mine.txt", text);
  const auto message = testing::message_of<ConfigError>([&] { recipe_for({file}, {"model.d_model=127"}); });
  EXPECT_THAT(message, HasSubstr("the configuration that is chosen for"));
  EXPECT_THAT(message, HasSubstr("mine.txt: model.n_heads d_model 127"));
}

/// Recipes for tables of texts and labels.
class OwnTable : public ::testing::Test {
 protected:
  /// A table with `n` rows, whose cells `row` says.
  fs::path table(const std::string& header, int n, const std::function<std::string(int)>& row,
                 const std::string& last = "") {
    auto content = header + "\n";
    for (int i = 0; i < n; ++i) content += row(i) + "\n";
    return dir_.write("table.tsv", content + last);
  }
  fs::path lines(const std::string& column, const std::vector<std::string>& values) {
    std::string content;
    for (int i = 0; i < 60; ++i)
      content += fmt::format("{{\"text\": \"words number {}\", \"{}\": {}}}\n", i, column,
                             values[static_cast<size_t>(i) % values.size()]);
    return dir_.write("lines.jsonl", content);
  }
  /// The task, its problem, and the column of labels.
  static std::string chosen(const fs::path& file) {
    const auto made = recipe_for({file}).experiment;
    return fmt::format("{} {} {}", made.task.type, name_of(problem_of(made)), made.data.label_column);
  }
  static std::string problem(const fs::path& file) {
    const auto message = testing::message_of<DataError>([&] { recipe_for({file}); });
    EXPECT_LE(message.size(), 300U) << message;
    EXPECT_EQ(message.find('\n'), message.npos) << message;
    return message;
  }
  TempDir dir_;
};

TEST_F(OwnTable, NumbersAmongWhichSomethingElseStandsAreRefusedWithTheirLine) {
  const auto number = [](int i) { return fmt::format("text {}\t{:.2f}", i, i / 7.0); };
  EXPECT_EQ(chosen(table("text\tscore", 60, number)), "text_classification regression score");
  EXPECT_EQ(chosen(table("text\tscore", 60, number, "x\t+4\n")), "text_classification regression score");
  for (const std::string header : {"text\tscore", "text\tlabel"}) {
    for (const std::string cell : {"NA", "nan", "1,5", ""})
      EXPECT_THAT(problem(table(header, 60, number, "x\t" + cell + "\n")),
                  HasSubstr("table.tsv:62: '" + cell + "' is not a number"));
    EXPECT_THAT(problem(table(header, 60, number, "x\t-1e30\n")),
                HasSubstr("table.tsv:62: -1e30 is too large"));
  }
  EXPECT_THAT(
      problem(table("text\tscore", 60, [](int i) { return fmt::format("a\t{}1e30", i % 2 ? "-" : ""); })),
      HasSubstr("table.tsv:2: 1e30 is too large"));
}

TEST_F(OwnTable, ALabelForEachWordIsToldFromClasses) {
  const auto tagged = [](int i) { return i % 2 ? "Ada met Bob\tB-PER O B-PER" : "the engine ran\tO O O"; };
  for (const std::string column : {"labels", "label", "tags"})
    EXPECT_EQ(chosen(table("text\t" + column, 60, tagged)), "token_classification single_label " + column);
  for (const std::string column : {"labels", "label"})
    EXPECT_THAT(problem(table("text\t" + column, 60, tagged, "a b c\tO O\n")),
                HasSubstr("table.tsv:62: 3 words, but 2 labels"));
  const auto classes = [](int i) { return i % 2 ? "good film\tvery good" : "bad film\tnot good"; };
  EXPECT_EQ(chosen(table("text\tlabel", 60, classes)), "text_classification single_label label");
}

TEST_F(OwnTable, SeveralLabelsNeedASeparator) {
  for (const std::string column : {"labels", "tags", "genres", "topics", "categories"}) {
    const auto header = "text\t" + column;
    EXPECT_EQ(
        chosen(table(header, 60, [](int i) { return fmt::format("text {}\t{}", i, i % 2 ? "a" : "b"); })),
        "text_classification single_label " + column);
    EXPECT_EQ(
        chosen(table(header, 60, [](int i) { return fmt::format("text {}\t{}", i, i % 2 ? "a|b" : "b"); })),
        "text_classification multi_label " + column);
    EXPECT_EQ(
        chosen(table(header, 60, [](int i) { return fmt::format("text {}\t{}", i, i % 2 ? "" : "b"); })),
        "text_classification multi_label " + column);
  }
}

TEST_F(OwnTable, MarksInPlaceOfNamesAreRefused) {
  for (const auto& marks : std::vector<std::vector<std::string>>{{"[1, 0, 1]", "[0, 0, 0]", "[0, 1, 0]"},
                                                                 {"[1.0, 0.0]", "[0.0, 1.0]"},
                                                                 {"[true, false]", "[false, false]"},
                                                                 {R"(["1", "0"])", R"(["0", "1"])"}})
    EXPECT_THAT(problem(lines("labels", marks)),
                AllOf(HasSubstr("lines.jsonl:1: "), HasSubstr("marks labels by their places")));
  EXPECT_THAT(problem(lines("labels", {"[3]", "[1, 2]", "[1, 0, 1, 0]"})),
              HasSubstr("lines.jsonl:3: [1,0,1,0] marks"));
  EXPECT_EQ(chosen(lines("labels", {"[1, 2]", "[]", "[0, 1]"})), "text_classification multi_label labels");
  EXPECT_THAT(problem(lines("labels", {R"("['a', 'b']")"})),
              HasSubstr("lines.jsonl:1: '['a', 'b']' is in brackets"));
}

TEST_F(OwnTable, WithoutTextsOrClassesIsRefused) {
  const auto row = [](int i) { return fmt::format("{}\t{}", i, i % 2 ? "a" : "b"); };
  for (const std::string header : {"id\tlabel", "Index\tlabel", "\tlabel", "path\ttext"})
    EXPECT_THAT(problem(table(header, 60, row)),
                HasSubstr("table.tsv:1: no two columns are called as texts"));
  EXPECT_THAT(problem(table("text\tlabel", 60, [](int i) { return fmt::format("t {}\tx", i); })),
              HasSubstr("table.tsv: all rows are of one class"));
  EXPECT_THAT(problem(table("text\tlabel", 60, [](int i) { return fmt::format("t {}\tc{}", i, i); })),
              HasSubstr("60 rows in 60 classes (column label): there must be two or more of each class"));
  EXPECT_THAT(problem(table("text\tlabel", 3, row)), HasSubstr("3 rows in 2 classes"));
  EXPECT_THAT(problem(dir_.write("old.tsv", "text\tlabel\ra\tb\rc\td\r")),
              HasSubstr("old.tsv:1: its lines end with CR"));
  EXPECT_THAT(problem(dir_.write("both.jsonl", "{\"translation\": {\"de\": \"a\", \"en\": \"b\"}}\n")),
              HasSubstr("both.jsonl:1: translations are trained on with task: text_to_text"));
}

/// Recipes for pictures.
class OwnPictures : public OwnTable {
 protected:
  void write(const std::string& directory, int n) {
    for (int i = 0; i < n; ++i) {
      const std::vector<uint8_t> pixels(256, static_cast<uint8_t>(i % 2 ? 200 : 3));
      dir_.write(fmt::format("{}/{}/{}.png", directory, i % 2 ? "light" : "dark", i),
                 encode_png(Image{.shape = {.channels = 1, .height = 16, .width = 16}, .pixels = pixels}));
    }
  }
};

TEST_F(OwnPictures, AListMayCallItsColumnsAsUsual) {
  write("pictures", 20);
  for (const std::string header : {"image\tlabel", "Image\tLabel", "file_name\tlabel", "FILENAME\tclass",
                                   "image_path\tlabel", "path\tlabel", "path\tkind"}) {
    for (const char separator : {'/', '\\'}) {
      const auto list = table(header, 20, [&](int i) {
        return fmt::format("pictures{}{}{}{}.png\t{}", separator, i % 2 ? "light" : "dark", separator, i,
                           i % 3);
      });
      const auto experiment = recipe_for({list}).experiment;
      EXPECT_EQ(experiment.task.type, "image_classification") << header;
      EXPECT_EQ(labelled_images(experiment.data).take(Split::train).size(), 18) << header;
    }
  }
  EXPECT_EQ(
      chosen(table("path\ttext\tlabel", 20, [](int i) { return fmt::format("a\tb {}\t{}", i, i % 2); })),
      "text_classification single_label label");
  const auto missing =
      problem(table("image\tlabel", 90, [](int i) { return fmt::format("nowhere-{}.png\t{}", i, i % 2); }));
  EXPECT_THAT(missing, HasSubstr("images cannot be read: "));
}

TEST_F(OwnPictures, PartsOfAFolderAreUsedAsSuch) {
  for (const std::string part : {"train", "val", "test"}) write("parts/" + part, 20);
  const auto experiment = recipe_for({dir_ / "parts"}).experiment;
  const auto images = labelled_images(experiment.data).take(Split::train);
  EXPECT_EQ(images.size(), 20);
  EXPECT_EQ(labelled_images(experiment.data).take(Split::valid).size(), 20);
  EXPECT_EQ(labelled_images(experiment.data).take(Split::test).size(), 20);
  EXPECT_THAT(images.labels(), ::testing::Contains("dark"));
  EXPECT_THAT(experiment.data.valid.at(0).text, ::testing::EndsWith("parts/val"));
  DataConfig whole;
  whole.train = {ConfigPath((dir_ / "parts").string())};
  EXPECT_THAT(testing::message_of<DataError>([&] { labelled_images(whole).take(Split::train); }),
              HasSubstr("name them as data.train, data.valid and data.test"));
  write("parts/dev", 4);
  EXPECT_THAT(problem(dir_ / "parts"), HasSubstr("dev and val are the same part"));
  write("other/Train", 20);
  EXPECT_EQ(labelled_images(recipe_for({dir_ / "other"}).experiment.data).take(Split::train).size(), 18);
  write("other/more", 20);
  EXPECT_THAT(problem(dir_ / "other"), HasSubstr("'more' stands beside the part train"));
  write("vehicles", 4);
  for (int i = 0; i < 6; ++i)
    dir_.write(fmt::format("vehicles/train/{}.png", i), read_file(dir_ / "vehicles/dark/0.png"));
  EXPECT_EQ(labelled_images(recipe_for({dir_ / "vehicles"}).experiment.data).take(Split::train).size(), 9);
}

TEST_F(OwnPictures, FewAreRefused) {
  write("two", 4);
  EXPECT_THAT(problem(dir_ / "two"), HasSubstr("4 pictures are too few"));
  write("one", 2);
  EXPECT_THAT(problem(dir_ / "one"),
              HasSubstr("2 pictures in 2 classes: there must be two or more of each class"));
  // Of each class some picture is for training.
  for (int i = 0; i < 40; ++i)
    for (int copy = 0; copy < 2; ++copy)
      dir_.write(fmt::format("many/{}/{}.png", i, copy),
                 encode_png(Image{.shape = {.channels = 1, .height = 1, .width = 1}, .pixels = {0}}));
  const auto data = recipe_for({dir_ / "many"}).experiment.data;
  const auto train = labelled_images(data).take(Split::train).labels(),
             valid = labelled_images(data).take(Split::valid).labels();
  EXPECT_EQ(std::set(train.begin(), train.end()).size(), 40U);
  EXPECT_EQ(train.size() + valid.size(), 80U);
}

}  // namespace
}  // namespace zoo
