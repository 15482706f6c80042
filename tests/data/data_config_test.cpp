#include "data/data_config.h"

#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/files.h"
#include "tests/data/support.h"

namespace zoo {
namespace {

DataConfig read(const std::string& yaml) {
  DataConfig config;
  ConfigFile::parse(yaml, "test.yaml").read(config);
  return config;
}

std::vector<std::string> complaints(const DataConfig& config) {
  std::vector<std::string> keys;
  validate(config, [&](std::string_view key, std::string_view) { keys.emplace_back(key); });
  return keys;
}

TEST(DataConfig, IsReadFromYaml) {
  const DataConfig config = read(
      "train: [a.txt, b.txt]\ndocuments: percent\nsequence_length: 64\ntokenizer: {type: char, lowercase: "
      "true}\n");
  EXPECT_THAT(config.train, ::testing::ElementsAre(ConfigPath("a.txt", ""), ConfigPath("b.txt", "")));
  EXPECT_EQ(config.documents, DocumentSplit::percent);
  EXPECT_EQ(config.sequence_length, 64);
  EXPECT_FALSE(config.target_length);
  EXPECT_EQ(config.tokenizer.type, TokenizerKind::character);
  EXPECT_TRUE(config.tokenizer.lowercase);
  EXPECT_TRUE(complaints(config).empty());
}

TEST(DataConfig, WritesWhatItReads) {
  DataConfig config = read("train: [a]\ntarget_length: 9\nmask_random: 0.05\n");
  const std::string dump = dump_config(config);
  EXPECT_EQ(dump_config(read(dump)), dump);
}

TEST(DataConfig, ChangesOfImagesAreRead) {
  const DataConfig config = read(
      "train: [a]\nimages: {size: 64, max_size: 96, augment: {min_scale: 0.5, rand_augment: {magnitude: "
      "5}}}\n");
  EXPECT_EQ(config.images.max_size, 96);
  EXPECT_EQ(config.images.augment.min_scale, 0.5);
  ASSERT_TRUE(config.images.augment.rand_augment);
  EXPECT_EQ(config.images.augment.rand_augment->n, 2);
  EXPECT_EQ(config.images.augment.rand_augment->magnitude, 5);
  EXPECT_FALSE(read("train: [a]\n").images.augment.rand_augment);
  DataConfig copy = config;
  EXPECT_EQ(dump_config(read(dump_config(copy))), dump_config(copy));
}

TEST(DataConfig, ValuesOutOfRangeAreErrors) {
  for (const char* yaml :
       {"valid_fraction: 0", "valid_fraction: 1", "sequence_length: 2", "mask_probability: 0",
        "mask_replace: 1.1", "tokenizer: {vocab_size: 0}", "tokenizer: {character_coverage: 0}",
        "tokenizer: {type: words}", "documents: chapters", "images: {max_size: 0}",
        "images: {augment: {min_scale: 0}}", "images: {augment: {min_scale: 1.5}}",
        "images: {augment: {rand_augment: {n: 0}}}", "images: {augment: {rand_augment: {magnitude: 31}}}"}) {
    EXPECT_THROW(read(yaml), ConfigError) << yaml;
  }
}

TEST(DataConfig, ContradictionsAreFound) {
  EXPECT_THAT(complaints(read("train: [a]\nmask_replace: 0.8\nmask_random: 0.3")),
              ::testing::ElementsAre("mask_random"));
  EXPECT_THAT(complaints(read("train: [a]\nmask_replace: 0.9\nmask_random: 0.1")), ::testing::IsEmpty());
  EXPECT_THAT(complaints(read("train: [a]\ntokenizer: {type: byte, path: x}")),
              ::testing::ElementsAre("tokenizer.path"));
  EXPECT_THAT(complaints(read("train: [a]\nsource: de\ntarget: de")), ::testing::ElementsAre("target"));
  EXPECT_THAT(complaints(read("train: [a]\nimages: {size: 64, max_size: 63}")),
              ::testing::ElementsAre("images.max_size"));
}

TEST(DataConfig, AModelHasItsOwnNormalization) {
  EXPECT_THAT(complaints(read("tokenizer: {path: x, byte_fallback: true}")),
              ::testing::ElementsAre("tokenizer.path"));
  EXPECT_THAT(complaints(read("tokenizer: {path: x, normalization: none}")),
              ::testing::ElementsAre("tokenizer.path"));
}

TEST(DataPath, IsLookedForInThreePlaces) {
  const testing::TempDir dir;
  const auto file = dir.write("corpus/a.txt", "text");
  const auto beside = dir.write("study/b.txt", "text");
  const testing::ScopedEnvironment root("ZOO_DATA", dir.path().string());
  EXPECT_EQ(data_path("corpus/a.txt"), file);
  EXPECT_EQ(data_path(file.string()), file);
  EXPECT_EQ(data_path({"b.txt", dir / "study"}), beside);
  using ::testing::HasSubstr;
  using testing::message_of;
  const auto missing = message_of<DataError>([&] { data_path({"fortunes/c.txt", dir / "study"}); });
  for (const auto& part : {std::string("fortunes/c.txt does not exist"), "(" + (dir / "study").string() + ")",
                           "(" + std::filesystem::current_path().string() + ")",
                           "(" + dir.path().string() + ";", std::string("`scripts/get_data.sh fortunes`")}) {
    EXPECT_THAT(missing, HasSubstr(part));
  }
  EXPECT_THAT(message_of<DataError>([&] { data_path("corpus"); }), HasSubstr("corpus is not a file"));
  const testing::ScopedEnvironment none("ZOO_DATA", "");
  EXPECT_EQ(data_root(), "datasets");
}

TEST(DataPath, MessagesKnowAllCorporaOfTheScript) {
  const auto script = read_file("scripts/get_data.sh");
  const size_t begin = script.find("\nnames=(") + 8;
  std::istringstream names(script.substr(begin, script.find(')', begin) - begin));
  int n = 0;
  for (std::string name; names >> name; ++n) {
    EXPECT_THAT(testing::message_of<DataError>([&] { data_path(name + "/none.txt"); }),
                ::testing::HasSubstr(fmt::format("get it with `scripts/get_data.sh {}`", name)));
  }
  EXPECT_GE(n, 20);
}

TEST(DataPath, FilesAndPrefixesArePinned) {
  const testing::TempDir dir;
  const auto text = dir.write("a.txt", "text"), source = dir.write("pairs.fr", "text");
  DataConfig config;
  config.source = "fr";
  config.train = {{"a.txt", dir.path()}, {"pairs", dir.path()}, {"none", dir.path()}};
  config.tokenizer.path = {"a.txt", dir.path()};
  pin_files(config);
  EXPECT_EQ(config.train[0].text, text.string());
  EXPECT_EQ(config.train[1].text, (dir / "pairs").string());
  EXPECT_EQ(config.train[2].text, "none");
  EXPECT_EQ(config.tokenizer.path.text, text.string());
}

}  // namespace
}  // namespace zoo
