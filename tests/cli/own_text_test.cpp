// zoo train TEXT: a model of one's own text, without a configuration.

#include <algorithm>
#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/cli/support.h"
#include "tests/support/small_images.h"

namespace zoo::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// About `bytes` bytes of made-up lines. Some characters come only at the end, which is for validation.
std::string made_up_text(const std::vector<std::string>& lines, size_t bytes) {
  std::string text;
  for (size_t i = 0; text.size() < bytes; ++i)
    text += fmt::format("{} {}\n", lines[i * i % lines.size()], lines[(i * i * i + 1) % lines.size()]);
  return text + "Ω ▁ 𝄞 ﬁ １２ ～\n";
}

const std::vector<std::pair<std::string, std::vector<std::string>>>& languages() {
  static const std::vector<std::pair<std::string, std::vector<std::string>>> all = {
      {"english",
       {"The ship came home at night,", "and nobody heard the bell.", "“Who is there?” she asked;"}},
      {"français",
       {"Où est passé l’été ?", "La mer, le soir, était noire…", "« Garçon », dit-elle, « un café ! »"}},
      {"中文", {"今天天气很好，我们去公园散步。", "“你好！”他说：“请坐。”", "山高水长，明月几时有？"}},
      {"source.py",
       {"def f(x):\n    if x:\n\treturn  x  # twice", "class A:\n        pass\n\n", "f = A()  \n"}},
  };
  return all;
}

class OwnText : public ::testing::Test {
 protected:
  Outcome zoo(const std::string& arguments) const { return run_zoo(dir_, arguments); }
  void expect_error(const std::string& arguments, const std::string& words) const {
    SCOPED_TRACE("zoo " + arguments);
    const auto outcome = zoo(arguments);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(words));
    EXPECT_FALSE(fs::exists(dir_ / "runs"));
  }
  TempDir dir_;
};

constexpr const char* kShort =
    " --device cpu --set training.steps=2 --set training.threads=1 --set model.d_model=16 --set "
    "model.n_layers=1";

TEST_F(OwnText, TrainsAndWritesInEveryLanguage) {
  for (const auto& [name, lines] : languages()) {
    for (const size_t bytes : {3000, 40000}) {
      SCOPED_TRACE(fmt::format("{} {}", name, bytes));
      const auto text = made_up_text(lines, bytes);
      dir_.write(name + ".txt", text);
      const auto trained = zoo(fmt::format("train {}.txt --overwrite{}", name, kShort));
      ASSERT_EQ(trained.code, 0) << trained.err;
      EXPECT_THAT(trained.err, AllOf(HasSubstr("KB of text"), HasSubstr("name: "), HasSubstr("2 steps")));
      // Without a prompt, with nothing on standard input.
      const auto written = zoo(fmt::format("generate runs/{} --device cpu --max-new-tokens 5", name));
      EXPECT_EQ(written.code, 0) << written.err;
      EXPECT_NE(written.out, "");
      // The vocabulary gives every character of every text back.
      const auto encoded = json::parse(
          zoo(fmt::format("tokenizer encode runs/{} --json --text \"$(cat {}.txt)\"", name, name)).out);
      std::string ids;
      for (const auto& id : encoded["results"][0]["ids"]) ids += (ids.empty() ? "" : ",") + id.dump();
      dir_.write("ids", ids);
      const auto decoded =
          json::parse(zoo(fmt::format("tokenizer decode runs/{} --json --ids \"$(cat ids)\"", name)).out);
      EXPECT_EQ(decoded["results"][0]["text"].get<std::string>() + "\n", text);
    }
  }
}

TEST_F(OwnText, TheConfigurationDoesTheSame) {
  dir_.write("own/my text.v2.txt", made_up_text(languages()[0].second, 3000));
  const auto yaml = zoo("config 'own/my text.v2.txt'");
  ASSERT_EQ(yaml.code, 0) << yaml.err;
  EXPECT_THAT(yaml.out, AllOf(HasSubstr("name: \"my text.v2\"\n"), Not(HasSubstr("extends"))));
  dir_.write("again.yaml", yaml.out);
  const auto by_text = zoo(fmt::format("train 'own/my text.v2.txt'{}", kShort));
  ASSERT_EQ(by_text.code, 0) << by_text.err;
  EXPECT_THAT(by_text.err, HasSubstr(yaml.out));
  ASSERT_EQ(zoo(fmt::format("train again.yaml --out again{}", kShort)).code, 0);
  EXPECT_EQ(lasting_differences(dir_ / "runs/my text.v2", dir_ / "again"), std::vector<std::string>());

  // The run is refused, resumed and replaced as any other.
  const auto refused = zoo("train 'own/my text.v2.txt'");
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(std::ranges::count(refused.err, '\n'), 1) << refused.err;
  const auto resumed = zoo(fmt::format("train 'own/my text.v2.txt' --resume{}", kShort));
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(zoo("inspect 'own/my text.v2.txt'").code, 0);
}

TEST_F(OwnText, MayBeInSeveralFilesAndReadBySeveralProcesses) {
  for (const auto& [name, lines] : languages()) dir_.write(name + ".txt", made_up_text(lines, 2000));
  const auto trained = zoo(fmt::format("train english.txt français.txt 中文.txt --nproc 2{}", kShort));
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_EQ(std::ranges::search(trained.err, std::string_view("\nname: english\n")).empty(), false);
  const auto config = read_file(dir_ / "runs/english/config.yaml");
  for (const auto* const file : {"english.txt", "français.txt", "中文.txt"})
    EXPECT_THAT(config, HasSubstr(file));
}

TEST_F(OwnText, ATableAndPicturesGetAClassifier) {
  std::string table = "id\tReview\tRating\n";
  for (int i = 0; i < 60; ++i)
    table += fmt::format("{}\ta film that is {}\t{}\n", i, i % 2 ? "good" : "bad", i % 2);
  dir_.write("films.tsv", table);
  for (int i = 0; i < 30; ++i) {
    const std::vector<uint8_t> pixels(256, static_cast<uint8_t>(i % 2 ? 200 + i : i));
    dir_.write(fmt::format("shades/{}/{}.png", i % 2 ? "light" : "dark", i),
               encode_png({.shape = {.channels = 1, .height = 16, .width = 16}, .pixels = pixels}));
  }
  for (const auto& [data, task, classes] :
       {std::tuple("films.tsv", "text_classification", "60 texts in 2 classes"),
        std::tuple("shades", "image_classification", "30 pictures in 2 classes"),
        std::tuple("shades/", "image_classification", "30 pictures in 2 classes")}) {
    SCOPED_TRACE(data);
    const auto trained = zoo(fmt::format("train {} --overwrite{}", data, kShort));
    ASSERT_EQ(trained.code, 0) << trained.err;
    EXPECT_THAT(trained.err, AllOf(HasSubstr(classes), HasSubstr(std::string("\ntask: ") + task)));
    const auto yaml = zoo(fmt::format("config {}", data));
    ASSERT_EQ(yaml.code, 0) << yaml.err;
    EXPECT_THAT(trained.err, HasSubstr(yaml.out));
  }
  EXPECT_THAT(zoo("predict runs/films --device cpu --text good").out, HasSubstr("1\t"));
  EXPECT_THAT(zoo("predict runs/shades --device cpu --image shades/dark/0.png").out, HasSubstr("dark\t"));
}

// A text that is learnt on top of a run has its model, its vocabulary and its task.
TEST_F(OwnText, MayBeLearntOnTopOfARun) {
  dir_.write("first.txt", made_up_text(languages()[0].second, 3000));
  dir_.write("other.txt", made_up_text(languages()[1].second, 3000));
  ASSERT_EQ(zoo(fmt::format("train first.txt{}", kShort)).code, 0);
  const std::string quick = " --device cpu --set training.steps=2 --set training.threads=1";
  const auto tuned = zoo("train other.txt --set init_from=runs/first" + quick);
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  EXPECT_THAT(tuned.err, AllOf(HasSubstr("zoo config other.txt --set init_from=runs/first > other.yaml"),
                               HasSubstr("starts from"), Not(HasSubstr("; new: "))));
  EXPECT_EQ(read_file(dir_ / "runs/first/tokenizer.json"), read_file(dir_ / "runs/other/tokenizer.json"));
  const auto yaml = zoo("config other.txt --set init_from=runs/first");
  EXPECT_THAT(tuned.err, HasSubstr(yaml.out));
  EXPECT_THAT(yaml.out, Not(HasSubstr("model:")));
  dir_.write("other.yaml", yaml.out);
  ASSERT_EQ(zoo("train other.yaml --out again" + quick).code, 0);
  EXPECT_EQ(lasting_differences(dir_ / "runs/other", dir_ / "again"), std::vector<std::string>());
  const auto refused = zoo("train other.txt --overwrite --set init_from=runs/nowhere");
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, StartsWith("zoo: init_from: runs/nowhere: no such run"));
}

TEST_F(OwnText, BadTextsAreOneLine) {
  const auto text = made_up_text(languages()[0].second, 2000);
  dir_.write("empty.txt", "");
  dir_.write("blank.txt", "\n \n");
  dir_.write("short.txt", "Too short to learn anything from.\n");
  dir_.write("nul.txt", text + std::string("\0", 1) + text);
  dir_.write("latin-1.txt", text + "\xE9t\xE9\n");
  dir_.write("image.png", "\x89PNG\r\n\x1A\n" + text);
  dir_.write("table.tsv", "words\tkind\nto be\tplay\n");
  dir_.write("commas.tsv", "text,label\nto be,play\n");
  fs::create_directory(dir_ / "folder");
  dir_.write("good.txt", text);
  dir_.write("tiny.yaml", "model: {n_layers: 1}\n");
  for (const auto* const command : {"train", "config", "inspect", "bench"}) {
    expect_error(fmt::format("{} empty.txt", command), "empty.txt: the file is empty");
    expect_error(fmt::format("{} nul.txt", command), "nul.txt: a byte 0 at ");
  }
  expect_error("train blank.txt", "blank.txt: the file is empty");
  expect_error("train short.txt",
               "short.txt: 34 characters are too short a text to learn from: give at least 500");
  expect_error("train latin-1.txt", "latin-1.txt:");
  expect_error("train image.png", "image.png:1: not UTF-8 at byte 0");
  expect_error("train table.tsv", "table.tsv:1: no column is called text or label; there are: words, kind");
  expect_error("train commas.tsv",
               "commas.tsv:1: columns are separated by tabs in a .tsv: call the file .csv");
  expect_error("train good.txt table.tsv", "table.tsv: a table is not one text: give it alone");
  expect_error("train folder", "folder");
  expect_error("train nowhere.txt", "nowhere.txt");
  expect_error("train good.txt nowhere.txt", "nowhere.txt does not exist");
  expect_error("train good.txt tiny.yaml", "tiny.yaml is no text");
  expect_error("train good.txt --set model.n_layer=2", "unknown key 'model.n_layer'");
  expect_error("config good.txt --set model.n_layers=2", "--set");
}

TEST_F(OwnText, IsToldFromAConfiguration) {
  const auto text = made_up_text(languages()[0].second, 2000);
  dir_.write("text", text);
  const std::string keys =
      "data: {train: text, tokenizer: {type: byte}}\nmodel:\n  d_model: 16\n  n_layers: 1\n  n_heads: 2\n"
      "training: {steps: 2}\n";
  dir_.write("settings", "# a configuration\n" + keys);
  dir_.write("letter.txt", "name: a letter\nDear Sir:\n" + text);
  dir_.write("text.yaml", text);
  EXPECT_EQ(zoo("train settings --device cpu").code, 0);
  EXPECT_THAT(read_file(dir_ / "runs/settings/config.yaml"), HasSubstr("n_layers: 1\n"));
  EXPECT_EQ(zoo(fmt::format("train letter.txt{}", kShort)).code, 0);
  EXPECT_EQ(zoo("train text.yaml").code, 2);
}

}  // namespace
}  // namespace zoo::testing
