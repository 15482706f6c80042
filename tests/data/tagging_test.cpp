// Texts with a label for each word or character: files, alignment with tokens, batches.

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <torch/types.h>

#include "base/error.h"
#include "tests/data/support.h"
#include "tests/support/temp_dir.h"
#include "text/batches/padded_rows.h"
#include "text/batches/tagged_texts.h"
#include "text/batches/token_classification_batches.h"
#include "text/batches/unit_encoder.h"
#include "tokenizers/hub_tokenizer.h"

namespace zoo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::message_of;
using testing::reader_of;
using ::testing::SizeIs;
using testing::TempDir;

class Tagging : public ::testing::Test {
 protected:
  DataConfig config_of(std::string_view content, std::string_view name = "a.tsv") const {
    DataConfig config;
    config.train = {ConfigPath(dir_.write(name, content).string())};
    config.valid = config.train;
    return config;
  }
  static std::vector<TaggedText> read(const DataConfig& config,
                                      const std::vector<std::string>& classes = {}) {
    return read_tagged(config, Split::train, classes);
  }
  std::string problem(std::string_view content, const std::vector<std::string>& classes = {},
                      std::string_view name = "a.tsv") const {
    return message_of<DataError>([&] { read(config_of(content, name), classes); });
  }

  TempDir dir_;
};

TEST_F(Tagging, TablesOfWordsAndOfCharacters) {
  const auto words = read(config_of("label\tsentence\nO  B-LOC\tin Rome\nB-ORG\tEU\n"));
  ASSERT_THAT(words, SizeIs(2));
  EXPECT_EQ(words[0].unit, LabelUnit::word);
  EXPECT_EQ(words[1].unit, LabelUnit::word);
  EXPECT_THAT(units_of(words[0].text, words[0].unit), ElementsAre("in", "Rome"));
  EXPECT_THAT(units_of(words[0].labels, words[0].unit), ElementsAre("O", "B-LOC"));
  EXPECT_EQ(words[1].place, (dir_ / "a.tsv").string() + ":3");

  const auto residues = read(config_of("sentence\tlabel\nMKö\tH-C\nA\tE\n"));
  EXPECT_EQ(residues[0].unit, LabelUnit::character);
  EXPECT_THAT(units_of(residues[0].text, residues[0].unit), ElementsAre("M", "K", "ö"));
  EXPECT_THAT(units_of(residues[0].labels, residues[0].unit), ElementsAre("H", "-", "C"));
  EXPECT_THAT(classes_of(residues), ElementsAre("C", "E", "H"));
}

TEST_F(Tagging, TheUnitOfTablesFollowsTheClassesAndTheConfiguration) {
  const std::string table = "sentence\tlabel\nno\tXY\n";
  EXPECT_EQ(read(config_of(table))[0].unit, LabelUnit::character);
  EXPECT_EQ(read(config_of(table), {"X", "Y"})[0].unit, LabelUnit::character);
  EXPECT_EQ(read(config_of(table), {"X", "XY"})[0].unit, LabelUnit::word);
  auto config = config_of(table);
  config.label_unit = LabelUnit::word;
  EXPECT_EQ(read(config)[0].unit, LabelUnit::word);

  const std::vector<std::string> letters{"X", "Y"}, names{"O", "B-LOC"};
  EXPECT_EQ(unit_of("no", LabelUnit::automatic, letters), LabelUnit::character);
  EXPECT_EQ(unit_of("no no", LabelUnit::automatic, letters), LabelUnit::word);
  EXPECT_EQ(unit_of("no", LabelUnit::automatic, names), LabelUnit::word);
  EXPECT_EQ(unit_of("no", LabelUnit::word, letters), LabelUnit::word);
  EXPECT_EQ(unit_of("no", LabelUnit::character, names), LabelUnit::character);
}

TEST_F(Tagging, SentencesWithAWordALine) {
  const auto rows = read(config_of(
      "-DOCSTART- -X- O O\n\nEU NNP I-NP B-ORG\nrejects VBZ I-VP O\n\n\nRome\tB-LOC\n. -\n", "a.conll"));
  ASSERT_THAT(rows, SizeIs(2));
  EXPECT_EQ(rows[0].text, "EU rejects");
  EXPECT_EQ(rows[0].labels, "B-ORG O");
  EXPECT_EQ(rows[0].unit, LabelUnit::word);
  EXPECT_EQ(rows[1].text, "Rome .");
  EXPECT_EQ(rows[1].labels, "B-LOC -");
  EXPECT_EQ(rows[1].place, (dir_ / "a.conll").string() + ":7");
  EXPECT_THAT(classes_of(rows), ElementsAre("O", "B-LOC", "B-ORG"));
}

TEST_F(Tagging, ErrorsNameTheLine) {
  const std::string header = "sentence\tlabel\nin Rome\tO B-LOC\n", table = (dir_ / "a.tsv").string();
  EXPECT_EQ(problem(header + "a b c\tO O\n"),
            table + ":3: 3 words, but 2 labels: the numbers must be equal (data.label_unit)");
  EXPECT_EQ(problem("sentence\tlabel\nMKV\tHH\n"),
            table + ":2: 3 characters, but 2 labels: the numbers must be equal (data.label_unit)");
  EXPECT_EQ(problem(header + "a\t \n"), table + ":3: no labels");
  EXPECT_EQ(problem(header + " \tO\n"), table + ":3: no text");
  EXPECT_EQ(problem(header, {"O", "B-PER"}),
            table + ":2: the label 'B-LOC' does not occur in the training data");
  EXPECT_THAT(problem("sentence\tclass\na\tO\n"), HasSubstr("a.tsv:1: no column \"label\""));
  EXPECT_EQ(problem("EU B-ORG\nin\n", {}, "a.txt"),
            (dir_ / "a.txt").string() + ":2: no label after the word 'in'");
  EXPECT_THAT(problem("-DOCSTART- O\n", {}, "a.txt"), HasSubstr("no texts with labels for train"));
  EXPECT_THAT(message_of<DataError>([&] { classes_of(read(config_of("sentence\tlabel\na b\t- -\n"))); }),
              HasSubstr("a.tsv:2: no label is counted"));
}

TEST_F(Tagging, TrainAndValidShareRowsWithoutOverlap) {
  auto config = config_of("sentence\tlabel\na b\tO O\nc d\tO O\ne f\tO O\ng h\tO O\n");
  config.valid.clear();
  config.valid_fraction = 0.25;
  EXPECT_THAT(read_tagged(config, Split::train, {}), SizeIs(3));
  EXPECT_THAT(read_tagged(config, Split::valid, {}), SizeIs(1));
}

std::unique_ptr<Tokenizer> tokenizer_of(TokenizerKind kind, const std::string& text) {
  TokenizerConfig config;
  config.type = kind;
  return make_tokenizer(config, SpecialTokenSet::all, reader_of({text}));
}

/// WordPiece: "to" and "day" begin words, "##day" and "##s" continue them.
std::unique_ptr<Tokenizer> word_pieces() {
  return make_hub_tokenizer({{"vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nto\nday\n##day\n##s\n!\n"}},
                            {.pad = 0, .unk = 1, .mask = 4, .cls = 2, .sep = 3});
}

TEST(UnitEncoder, ABlankThatIsATokenBelongsToNoWord) {
  for (const auto kind : {TokenizerKind::character, TokenizerKind::byte}) {
    const auto tokenizer = tokenizer_of(kind, "ab c");
    UnitEncoder encode(*tokenizer);
    const auto aligned = encode("ab c  a", LabelUnit::word, 100);
    EXPECT_EQ(aligned.ids, tokenizer->encode("ab c a"));
    EXPECT_THAT(aligned.first, ElementsAre(0, 3, 5));
    EXPECT_FALSE(aligned.cut);
    EXPECT_THAT(encode("abc", LabelUnit::character, 100).first, ElementsAre(0, 1, 2));
  }
}

TEST(UnitEncoder, ACharacterOfSeveralTokensBeginsAtItsFirst) {
  const auto tokenizer = tokenizer_of(TokenizerKind::byte, "a");
  const auto aligned = UnitEncoder(*tokenizer)("aöb", LabelUnit::character, 100);
  EXPECT_EQ(aligned.ids, tokenizer->encode("aöb"));
  EXPECT_THAT(aligned.first, ElementsAre(0, 1, 3));
}

TEST(UnitEncoder, WordsInPiecesBeginAtTheirFirstPiece) {
  const auto tokenizer = word_pieces();
  const auto aligned = UnitEncoder(*tokenizer)("today days to!", LabelUnit::word, 100);
  EXPECT_EQ(aligned.ids, tokenizer->encode("today days to!"));
  EXPECT_THAT(aligned.ids, ElementsAre(5, 7, 6, 8, 5, 9));
  EXPECT_THAT(aligned.first, ElementsAre(0, 2, 4));
}

TEST(UnitEncoder, AWordThatTheTokenizerRemovesHasNoToken) {
  const auto tokenizer = word_pieces();
  UnitEncoder encode(*tokenizer);
  for (const char* const removed : {"\u0001", "\u200b", "\ufe0f"}) {
    const auto aligned = encode(std::string("to ") + removed + " day", LabelUnit::word, 100);
    EXPECT_THAT(aligned.ids, ElementsAre(5, 6)) << removed;
    EXPECT_THAT(aligned.first, ElementsAre(0, -1, 1)) << removed;
  }
  const auto full = encode("to day \u200b", LabelUnit::word, 2);
  EXPECT_THAT(full.first, ElementsAre(0, 1, -1));
  EXPECT_FALSE(full.cut);
}

TEST(UnitEncoder, LongTextsAreCutAndTheirLastWordsHaveNoPlace) {
  const auto tokenizer = tokenizer_of(TokenizerKind::byte, "a");
  UnitEncoder encode(*tokenizer);
  for (int64_t most = 1; most <= 9; ++most) {
    const auto aligned = encode("ab c def", LabelUnit::word, most);
    EXPECT_EQ(std::ssize(aligned.ids), std::min<int64_t>(most, 8));
    EXPECT_EQ(aligned.cut, most < 8);
    EXPECT_THAT(aligned.first, SizeIs(most <= 3 ? 1 : most <= 5 ? 2 : 3));
  }
}

TEST(UnitEncoder, WordsAreEncodedAsInTheirText) {
  const std::string text = "the wind and the rain and the bird that sings under the tree by the sea";
  TokenizerConfig config;
  config.vocab_size = 40;
  config.byte_fallback = false;
  for (const auto model : {SentencePieceModel::unigram, SentencePieceModel::bpe}) {
    config.model = model;
    const auto tokenizer = make_tokenizer(config, SpecialTokenSet::all, reader_of({text}));
    const auto aligned = UnitEncoder(*tokenizer)(text, LabelUnit::word, 1000);
    EXPECT_EQ(aligned.ids, tokenizer->encode(text));
    for (const int64_t first : aligned.first)
      EXPECT_THAT(tokenizer->label(aligned.ids[static_cast<size_t>(first)]), ::testing::StartsWith("▁"));
  }
}

TEST(TokenClassificationBatches, PutEachClassAtItsToken) {
  const TokensWithClasses a{.ids = {11, 12, 13}, .positions = {0, 2}, .classes = {1, 0}};
  const TokensWithClasses b{.ids = {21}, .positions = {0}, .classes = {2}};
  const auto batch =
      token_classification_batch({&a, &b}, {.before = {2}, .between = {}, .after = {3}}, /*pad=*/9);
  EXPECT_THAT(int64_values(batch.input.ids), ElementsAre(2, 11, 12, 13, 3, 2, 21, 3, 9, 9));
  EXPECT_THAT(batch.input.row_lengths(), ElementsAre(5, 3));
  EXPECT_THAT(int64_values(batch.positions), ElementsAre(1, 3, 6));
  EXPECT_THAT(int64_values(batch.targets), ElementsAre(1, 0, 2));
  EXPECT_EQ(batch.tokens, 8);
  // A part of the batch has the positions of its own rows.
  const auto last = take_rows(batch, 1, 1);
  EXPECT_THAT(int64_values(last.targets), ElementsAre(2));
  EXPECT_THAT(message_of<DataError>([] { token_classification_batches({}, {}, 0, {}); }),
              HasSubstr("no labels that are counted"));
}

TEST(TokenClassificationBatches, HideOtherTokensInEachEpoch) {
  constexpr int64_t mask = 5;
  std::vector<TokensWithClasses> rows;
  for (int row = 0; row < 8; ++row) {
    TokensWithClasses tokens;
    for (int64_t i = 0; i < 100; ++i) {
      tokens.ids.push_back(10 + i);
      tokens.positions.push_back(i);
      tokens.classes.push_back(i % 3);
    }
    rows.push_back(tokens);
  }
  const auto source = [&](BatchOptions::Order order, double probability) {
    BatchOptions options;
    options.batch_size = 8;
    options.order = order;
    return token_classification_batches(rows, {}, 0, options, {.probability = probability, .mask = mask});
  };
  const auto shuffled = source(BatchOptions::Order::shuffled, 0.25);
  const auto first = shuffled->batch(0, 0), again = shuffled->batch(0, 0), second = shuffled->batch(1, 0);
  EXPECT_TRUE(first.input.ids.equal(again.input.ids));
  EXPECT_FALSE(first.input.ids.equal(second.input.ids));
  const auto is_hidden = first.input.ids == mask;
  EXPECT_NEAR(is_hidden.to(torch::kDouble).mean().item<double>(), 0.25, 0.05);
  const auto whole = source(BatchOptions::Order::shuffled, 0)->batch(0, 0);
  EXPECT_TRUE(first.input.ids.masked_fill(is_hidden, 0).equal(whole.input.ids.masked_fill(is_hidden, 0)));
  EXPECT_TRUE(first.targets.equal(whole.targets));
  EXPECT_FALSE(
      (source(BatchOptions::Order::sequential, 0.25)->batch(0, 0).input.ids == mask).any().item<bool>());
  EXPECT_THAT(
      message_of<DataError>([&] { token_classification_batches(rows, {}, 0, {}, {.probability = 0.1}); }),
      HasSubstr("<mask>"));
}

}  // namespace
}  // namespace zoo
