#include "tokenizers/tokenizer.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "io/files.h"
#include "tests/data/support.h"
#include "tests/support/environment.h"
#include "tests/support/temp_dir.h"
#include "tokenizers/sentencepiece_tokenizer.h"
#include "tokenizers/tokenize.h"

namespace zoo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::message_of;
using testing::random_text;
using testing::reader_of;
using testing::sentences;
using testing::TempDir;

std::unique_ptr<Tokenizer> make(TokenizerKind type, SpecialTokenSet special, std::vector<std::string> texts,
                                int64_t vocab_size = 50) {
  TokenizerConfig config;
  config.type = type;
  config.vocab_size = vocab_size;
  config.byte_fallback = false;  // 256 bytes are too many for these vocabularies
  return make_tokenizer(config, special, reader_of(std::move(texts)));
}

std::string stream(const Tokenizer& tokenizer, const TokenIds& ids) {
  StreamDecoder decoder(tokenizer);
  std::string text;
  for (const int64_t id : ids) text += decoder.push(id);
  return text + decoder.finish();
}

TEST(CharTokenizer, WithoutSpecialTokensTheVocabularyIsTheSortedText) {
  const auto tokenizer = make(TokenizerKind::character, SpecialTokenSet::none, {"böse\nbad", "é"});
  EXPECT_EQ(tokenizer->vocab_size(), 8);  // \n a b d e s é ö
  EXPECT_THAT(tokenizer->encode("\nabé"), ElementsAre(0, 1, 2, 6));
  EXPECT_EQ(tokenizer->special().eos, -1);
  EXPECT_EQ(tokenizer->label(0), "↵");
  EXPECT_THAT(message_of<DataError>([&] { tokenizer->encode("x"); }), HasSubstr("\"x\" (U+0078)"));
}

TEST(CharTokenizer, SpecialTokensComeFirst) {
  const auto tokenizer = make(TokenizerKind::character, SpecialTokenSet::all, {"ba"});
  const SpecialTokens s = tokenizer->special();
  EXPECT_THAT((TokenIds{s.pad, s.unk, s.bos, s.eos, s.mask, s.cls, s.sep}), ElementsAre(0, 1, 2, 3, 4, 5, 6));
  EXPECT_THAT(tokenizer->encode("abc"), ElementsAre(7, 8, 1));
  EXPECT_EQ(tokenizer->decode(TokenIds{2, 7, 4, 8, 1, 3, 0}), "ab⁇");
  EXPECT_EQ(tokenizer->label(3), "<eos>");
  EXPECT_THAT(message_of<DataError>([&] { tokenizer->decode(TokenIds{9}); }), HasSubstr("0 to 8"));
  EXPECT_THROW(tokenizer->decode(TokenIds{-1}), DataError);
}

TEST(CharTokenizer, KnowsTheVocabularyOfTinyShakespeare) {
  const auto file = testing::mirror() / "tinyshakespeare/input.txt";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << file << " is not here; set ZOO_DATA_MIRROR";
  const std::string text = read_file(file);
  const auto tokenizer = make(TokenizerKind::character, SpecialTokenSet::none, {text});
  EXPECT_EQ(tokenizer->vocab_size(), 65);
  // As in nanoGPT's data/shakespeare_char: "\n" = 0, " " = 1, … "z" = 64.
  EXPECT_THAT(tokenizer->encode("First"), ElementsAre(18, 47, 56, 57, 58));
  EXPECT_THAT(tokenizer->encode("\n z"), ElementsAre(0, 1, 64));
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
}

TEST(ByteTokenizer, HasOneIdForEachByte) {
  const auto bare = make(TokenizerKind::byte, SpecialTokenSet::none, {});
  EXPECT_EQ(bare->vocab_size(), 256);
  EXPECT_THAT(bare->encode("aä"), ElementsAre(97, 195, 164));
  const auto all = make(TokenizerKind::byte, SpecialTokenSet::all, {});
  EXPECT_EQ(all->vocab_size(), 263);
  EXPECT_THAT(all->encode(std::string_view("\0\xFF", 2)), ElementsAre(7, 262));
  EXPECT_EQ(all->label(262), "<0xFF>");
  EXPECT_EQ(all->label(7 + 'A'), "A");
}

std::vector<std::array<size_t, 2>> places(const std::vector<PlacedToken>& tokens) {
  std::vector<std::array<size_t, 2>> result;
  for (const auto& token : tokens) result.push_back({token.begin, token.end});
  return result;
}

TEST(Tokenizer, SaysWhereCharactersAndBytesStand) {
  using Places = std::vector<std::array<size_t, 2>>;
  const auto chars = make(TokenizerKind::character, SpecialTokenSet::all, {"ab"});
  EXPECT_EQ(places(chars->encode_with_places("aéb")), (Places{{0, 1}, {1, 2}, {2, 3}}));
  const auto bytes = make(TokenizerKind::byte, SpecialTokenSet::none, {});
  EXPECT_EQ(places(bytes->encode_with_places("aéb")), (Places{{0, 1}, {1, 2}, {1, 2}, {2, 3}}));
  EXPECT_EQ(places(bytes->encode_continuation_with_places("é")), (Places{{0, 1}, {0, 1}}));
}

/// The code points of a text that no token stands for.
std::u32string left_out(std::string_view text, const std::vector<PlacedToken>& tokens) {
  auto rest = decode_utf8(text);
  const auto size = rest.size();
  for (const auto& [id, begin, end] : tokens) {
    EXPECT_LE(begin, end);
    EXPECT_LE(end, size);
    for (size_t i = begin; i < std::min(end, size); ++i) rest[i] = 0;
  }
  std::erase(rest, 0);
  return rest;
}

TEST(Tokenizer, SaysWhereThePiecesOfItsOwnVocabularyStand) {
  for (const auto normalization : {TextNormalization::nfkc, TextNormalization::none}) {
    for (const bool lowercase : {false, true}) {
      for (const bool bytes : {false, true}) {
        TokenizerConfig config;
        config.type = TokenizerKind::sentencepiece;
        config.vocab_size = bytes ? 400 : 120;
        config.normalization = normalization;
        config.lowercase = lowercase;
        config.byte_fallback = bytes;
        const auto tokenizer = make_tokenizer(config, SpecialTokenSet::all, reader_of(sentences(300)));
        for (const std::string text :
             {"The cat, the CAT.", "a\nb  c\n\n d", "", " ", "Ünïcode ▁ İstanbul ﬁn 한국", "😀x"}) {
          const auto whole = tokenizer->encode_with_places(text);
          const auto later = tokenizer->encode_continuation_with_places(text);
          TokenIds ids, later_ids;
          for (const auto& token : whole) ids.push_back(token.id);
          for (const auto& token : later) later_ids.push_back(token.id);
          EXPECT_EQ(ids, tokenizer->encode(text)) << text;
          EXPECT_EQ(later_ids, tokenizer->encode_continuation(text)) << text;
          for (const auto& tokens : {whole, later}) {
            for (const char32_t c : left_out(text, tokens))
              EXPECT_TRUE(normalization == TextNormalization::nfkc && (c == ' ' || c == '\n')) << text;
          }
        }
      }
    }
  }
}

TEST(Tokenizer, RoundTripsTextOfManyScripts) {
  for (const auto special : {SpecialTokenSet::none, SpecialTokenSet::all}) {
    const auto chars = make(TokenizerKind::character, special, {random_text(0, 5000)});
    const auto bytes = make(TokenizerKind::byte, special, {});
    for (uint64_t seed = 1; seed <= 200; ++seed) {
      const std::string text = random_text(seed, static_cast<int64_t>(seed % 40));
      for (const Tokenizer* tokenizer : {chars.get(), bytes.get()}) {
        const TokenIds ids = tokenizer->encode(text);
        ASSERT_EQ(tokenizer->decode(ids), text);
        ASSERT_EQ(stream(*tokenizer, ids), text);
        for (const int64_t id : ids) ASSERT_FALSE(tokenizer->label(id).empty());
      }
    }
  }
}

TEST(Tokenizer, ByteTokensRoundTripAnyBytes) {
  const auto tokenizer = make(TokenizerKind::byte, SpecialTokenSet::all, {});
  CounterRandom random({3});
  for (int i = 0; i < 500; ++i) {
    std::string bytes;
    for (int64_t n = random.below(12); n > 0; --n) {
      // Mostly bytes of multi-byte characters, so that complete, broken and cut-off characters all occur.
      bytes += static_cast<char>(random.below(4) == 0 ? random.below(128) : 0x80 + random.below(128));
    }
    const TokenIds ids = tokenizer->encode(bytes);
    ASSERT_EQ(tokenizer->decode(ids), bytes);
    ASSERT_EQ(stream(*tokenizer, ids), bytes);
  }
}

TEST(Tokenizer, LowercaseFoldsEveryScript) {
  for (const auto type : {TokenizerKind::character, TokenizerKind::byte, TokenizerKind::sentencepiece}) {
    TokenizerConfig config;
    config.type = type;
    config.lowercase = true;
    config.vocab_size = 20;  // the letters and the special tokens
    config.byte_fallback = false;
    const auto tokenizer =
        make_tokenizer(config, SpecialTokenSet::all, reader_of({"ÄRGER ΩΜΕΓΑ Жук ärger ωμεγα жук"}));
    EXPECT_EQ(tokenizer->decode(tokenizer->encode("ÄrGeR ΩμΕγΑ ЖУК")), "ärger ωμεγα жук") << name_of(type);
  }
}

TEST(Tokenizer, InvalidUtf8IsAnErrorWithTheByte) {
  const std::string broken = "abc\xC3(";
  for (const auto type : {TokenizerKind::character, TokenizerKind::sentencepiece}) {
    const auto tokenizer = make(type, SpecialTokenSet::all, sentences(200));
    EXPECT_THAT(message_of<DataError>([&] { tokenizer->encode(broken); }), HasSubstr("byte 3"));
    EXPECT_THAT(message_of<DataError>([&] { make(type, SpecialTokenSet::all, {"fine", broken}); }),
                HasSubstr("byte 3"));
  }
  for (const auto type : {TokenizerKind::character, TokenizerKind::sentencepiece}) {
    EXPECT_THAT(message_of<DataError>([&] { make(type, SpecialTokenSet::all, {}); }), HasSubstr("empty"));
    EXPECT_THAT(message_of<DataError>([&] { make(type, SpecialTokenSet::all, {""}); }), HasSubstr("empty"));
  }
}

class SentencePiece : public ::testing::TestWithParam<SentencePieceModel> {
 protected:
  static std::unique_ptr<Tokenizer> train(std::vector<std::string> texts, int64_t vocab_size = 50,
                                          SpecialTokenSet special = SpecialTokenSet::all) {
    TokenizerConfig config;
    config.model = GetParam();
    config.vocab_size = vocab_size;
    config.byte_fallback = false;
    return make_tokenizer(config, special, reader_of(std::move(texts)));
  }

  testing::TempDir dir_;
  testing::ScopedEnvironment cache_{"ZOO_CACHE", (dir_ / "cache").string()};
};

TEST_P(SentencePiece, SpecialTokensComeFirst) {
  const auto tokenizer = train(sentences(300));
  const SpecialTokens s = tokenizer->special();
  EXPECT_THAT((TokenIds{s.pad, s.unk, s.bos, s.eos, s.mask, s.cls, s.sep}), ElementsAre(0, 1, 2, 3, 4, 5, 6));
  EXPECT_EQ(tokenizer->vocab_size(), 50);
  EXPECT_EQ(tokenizer->label(4), "<mask>");
  EXPECT_EQ(tokenizer->decode(TokenIds{2, 3, 0, 4, 5, 6}), "");
  // Text that looks like a special token is only text.
  for (const int64_t id : tokenizer->encode("<mask> <eos>")) EXPECT_TRUE(id == 1 || id > 6);

  const auto bare = train(sentences(300), 50, SpecialTokenSet::none);
  EXPECT_EQ(bare->special().unk, 0);
  EXPECT_EQ(bare->special().eos, -1);
  EXPECT_EQ(bare->special().mask, -1);
}

TEST_P(SentencePiece, RoundTripsAndStreams) {
  const auto tokenizer = train(sentences(300));
  for (const std::string& text : sentences(50)) {
    const TokenIds ids = tokenizer->encode(text);
    EXPECT_LT(ids.size(), text.size());
    EXPECT_EQ(tokenizer->decode(ids), text);
    EXPECT_EQ(stream(*tokenizer, ids), text);
  }
  // Any ids, also sequences that no text gives.
  CounterRandom random({5});
  for (int i = 0; i < 500; ++i) {
    TokenIds ids;
    for (int64_t n = random.below(12); n > 0; --n) ids.push_back(random.below(tokenizer->vocab_size()));
    ASSERT_EQ(stream(*tokenizer, ids), tokenizer->decode(ids));
  }
}

TEST_P(SentencePiece, KeepsLineBreaks) {
  std::vector<std::string> verses;
  for (const std::string& text : sentences(300)) verses.push_back(text + "\n" + text);
  const auto tokenizer = train(verses);
  const std::string text = "der Hund\n\nsieht das Kind .\n";
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
  EXPECT_EQ(stream(*tokenizer, tokenizer->encode(text)), text);
  EXPECT_EQ(tokenizer->label(7), "↵");
}

TEST_P(SentencePiece, IsDeterministic) {
  const auto first = train(sentences(300))->fingerprint();
  EXPECT_NE(train(sentences(300), 49)->fingerprint(), first);
  const testing::ScopedEnvironment no_memory("ZOO_CACHE", (dir_ / "another").string());
  EXPECT_EQ(train(sentences(300))->fingerprint(), first);
}

TEST_P(SentencePiece, IsKeptBetweenRuns) {
  const auto first = train(sentences(300))->fingerprint();
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(dir_ / "cache")) files.push_back(entry.path());
  ASSERT_EQ(files.size(), 1u);
  // The cached file is used: another vocabulary under this name is returned.
  const auto other = train(sentences(300), 49)->fingerprint();
  std::filesystem::path newer;
  for (const auto& entry : std::filesystem::directory_iterator(dir_ / "cache")) {
    if (entry.path() != files[0]) newer = entry.path();
  }
  std::filesystem::copy_file(newer, files[0], std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(train(sentences(300))->fingerprint(), other);
  // A damaged file is replaced.
  std::filesystem::resize_file(files[0], 100);
  EXPECT_EQ(train(sentences(300))->fingerprint(), first);
}

TEST_P(SentencePiece, ABitThatChangedInWhatIsKeptIsNoticed) {
  const auto first = train(sentences(300))->fingerprint();
  const auto file = std::filesystem::directory_iterator(dir_ / "cache")->path();
  std::fstream content(file, std::ios::in | std::ios::out | std::ios::binary);
  content.seekp(static_cast<std::streamoff>(std::filesystem::file_size(file) / 2));
  content.put('~');
  content.close();
  EXPECT_EQ(train(sentences(300))->fingerprint(), first);
}

TEST_P(SentencePiece, ShortLinesWillDo) {
  std::vector<std::string> sums;
  for (int i = 0; i < 200; ++i) sums.push_back(std::to_string(i % 40) + "+" + std::to_string(i % 7));
  const auto tokenizer = train(sums, 24);
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("12+3")), "12+3");
}

TEST_P(SentencePiece, LongLinesAreNotLeftOut) {
  std::string line;
  for (const std::string& text : sentences(300)) line += text + " ";
  ASSERT_GT(line.size(), 5000);  // more than SentencePiece takes by default
  const auto tokenizer = train({line});
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("der Hund sieht Geld .")), "der Hund sieht Geld .");
}

TEST_P(SentencePiece, ATooLargeVocabularyShrinksToTheLargest) {
  const auto tokenizer = train(sentences(300), 5000);
  const int64_t largest = tokenizer->vocab_size();
  EXPECT_LT(largest, 5000);
  TokenizerConfig config;
  config.vocab_size = 5000;
  EXPECT_THAT(vocabulary_note(config, *tokenizer).value_or(""),
              HasSubstr(fmt::format("too few pieces for a vocabulary of 5000: it has {} tokens", largest)));
  EXPECT_EQ(train(sentences(300), largest)->vocab_size(), largest);
  EXPECT_EQ(train(sentences(300), largest + 1)->vocab_size(), largest) << "no larger one is possible";
  config.vocab_size = largest;
  EXPECT_FALSE(vocabulary_note(config, *tokenizer));
  EXPECT_EQ(train(sentences(300), 5000)->fingerprint(), tokenizer->fingerprint()) << "from the cache";
}

TEST_P(SentencePiece, WithoutNormalizationNothingIsLost) {
  TokenizerConfig config;
  config.model = GetParam();
  config.vocab_size = 400;
  std::string lines = "  two  blanks \n\n\ttab\r\n １２，ﬁ ▁▁ 􏿽 \n";
  for (const auto& sentence : sentences(200)) lines += "    " + sentence + "\n";
  for (const auto special : {SpecialTokenSet::none, SpecialTokenSet::all}) {
    const auto tokenizer = make_tokenizer(config, special, reader_of({lines}));
    const TempDir run;
    tokenizer->save(run.path());
    const auto loaded = load_tokenizer(run.path());
    EXPECT_EQ(loaded->fingerprint(), tokenizer->fingerprint());
    std::vector<std::string> texts = {lines, "", " ", "\n", "\n\n  x", "new: 😀 \u2028 ▁ ▁", "a\nb\n"};
    for (uint64_t seed = 0; seed < 50; ++seed) texts.push_back(random_text(seed, 40));
    for (const auto& text : texts) {
      for (const auto* const used : {tokenizer.get(), loaded.get()}) {
        const auto ids = used->encode(text);
        EXPECT_TRUE(used->decode(ids) == text) << excerpt(text) << ": " << excerpt(used->decode(ids));
        EXPECT_TRUE(stream(*used, ids) == text) << excerpt(text);
        EXPECT_EQ(std::ranges::count(ids, used->special().unk), 0);
      }
    }
    // Indentation is one piece.
    EXPECT_LT(tokenizer->encode("    der").size(), 4U);
  }
}

// A word is the same token wherever it stands, and the blank before it belongs to it.
TEST_P(SentencePiece, AWordIsOneTokenWhereverALineBegins) {
  std::vector<std::string> verses;
  for (const std::string& text : sentences(300)) verses.push_back(text + "\n" + text);
  for (const auto& texts : {sentences(300), verses}) {
    TokenizerConfig config;
    config.model = GetParam();
    config.vocab_size = 400;
    const auto tokenizer = make_tokenizer(config, SpecialTokenSet::all, reader_of(texts));
    const std::string mark = "▁";
    int64_t piece = 0;  // the first one that begins a word
    while (!tokenizer->label(piece).starts_with(mark) || tokenizer->label(piece) == mark) ++piece;
    const auto text = tokenizer->label(piece).substr(mark.size());
    ASSERT_EQ(tokenizer->encode(text), TokenIds{piece});
    const int64_t word = piece, line_break = tokenizer->encode("\n")[0];
    EXPECT_EQ(tokenizer->label(word), "▁" + text);
    EXPECT_EQ(tokenizer->label(line_break), "↵");
    const auto lines = fmt::format("{0} {0}\n{0}\n\n{0}", text);
    EXPECT_THAT(tokenizer->encode(lines),
                ElementsAre(word, word, line_break, word, line_break, line_break, word));
    EXPECT_EQ(tokenizer->encode_continuation(" " + lines), tokenizer->encode(lines));
    EXPECT_NE(tokenizer->encode_continuation(text), TokenIds{word}) << "it continues a word";
    EXPECT_EQ(tokenizer->decode(tokenizer->encode_continuation(" " + text)), text);
  }
}

// Tokenizers of runs from before lines were marked.
TEST_P(SentencePiece, OlderRunsHaveNoMarksOfLines) {
  const TempDir run;
  train(sentences(300))->save(run.path());
  auto json = nlohmann::json::parse(read_file(run / "tokenizer.json"));
  EXPECT_EQ(json.at("marks_lines"), true);
  json.erase("marks_lines");
  run.write("tokenizer.json", json.dump());
  const auto older = load_tokenizer(run.path());
  const auto ids = older->encode("der Hund");
  EXPECT_NE(older->label(ids[0]).substr(0, 3), "▁");
  EXPECT_EQ(older->decode(ids), "der Hund");
  EXPECT_EQ(older->encode_continuation("der Hund"), ids);
}

TEST_P(SentencePiece, NfkcChangesTexts) {
  TokenizerConfig config;
  config.model = GetParam();
  config.vocab_size = 330;
  config.normalization = TextNormalization::nfkc;
  const auto tokenizer = make_tokenizer(config, SpecialTokenSet::all, reader_of(sentences(300)));
  EXPECT_FALSE(tokenizer->keeps_text());
  EXPECT_TRUE(train(sentences(300))->keeps_text());
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("ｄｅｒ   Hund ")), "der Hund");
}

TEST_P(SentencePiece, LinesWithoutEndCanBeLearnt) {
  // For each of these lines SentencePiece's trainers end the process.
  std::string line;
  CounterRandom random({3});
  while (line.size() < 500000)
    line += encode_utf8(std::u32string(1, U'一' + static_cast<char32_t>(random.below(90))));
  const auto tokenizer = train({line}, 200);
  EXPECT_EQ(tokenizer->vocab_size(), 200);
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(line)), line);
}

TEST_P(SentencePiece, TooSmallAVocabularySaysHowSmallItMayBe) {
  const std::string message = message_of<DataError>([&] { train(sentences(300), 20); });
  ASSERT_THAT(message, HasSubstr("data.tokenizer.vocab_size (--vocab-size) 20 is too small"));
  const int64_t smallest = std::stoll(message.substr(message.find(" alone need ") + 12));
  EXPECT_EQ(train(sentences(300), smallest + 1)->vocab_size(), smallest + 1);
}

INSTANTIATE_TEST_SUITE_P(Models, SentencePiece,
                         ::testing::Values(SentencePieceModel::unigram, SentencePieceModel::bpe),
                         [](const auto& param) { return std::string(name_of(param.param)); });

TEST(Tokenizer, SavedAndLoadedIsTheSame) {
  for (const auto type : {TokenizerKind::character, TokenizerKind::byte, TokenizerKind::sentencepiece}) {
    for (const auto special : {SpecialTokenSet::none, SpecialTokenSet::all}) {
      const TempDir run;
      const auto saved = make(type, special, sentences(300));
      saved->save(run.path());
      const auto loaded = load_tokenizer(run.path());
      EXPECT_EQ(loaded->vocab_size(), saved->vocab_size());
      EXPECT_EQ(loaded->fingerprint(), saved->fingerprint());
      EXPECT_EQ(loaded->special().eos, saved->special().eos);
      EXPECT_EQ(loaded->special().sep, saved->special().sep);
      EXPECT_EQ(loaded->encode("die Katze liebt ihre Bücher ."),
                saved->encode("die Katze liebt ihre Bücher ."));
    }
  }
}

TEST(Tokenizer, AnExistingSentencePieceModelCanBeUsed) {
  const TempDir dir;
  const auto trained = make(TokenizerKind::sentencepiece, SpecialTokenSet::all, sentences(300));
  trained->save(dir.path());
  TokenizerConfig config;
  config.path = (dir / "tokenizer.model").string();
  const auto tokenizer = make_tokenizer(config, SpecialTokenSet::all, reader_of({}));
  EXPECT_EQ(tokenizer->special().mask, 4);
  EXPECT_EQ(tokenizer->encode("der Hund"), trained->encode("der Hund"));
  EXPECT_EQ(tokenizer->fingerprint(), trained->fingerprint());
  // Beside a file of another program, a model is used as the library SentencePiece uses it.
  dir.write("tokenizer.json", R"({"version": "1.0", "model": {}})");
  const auto foreign = make_tokenizer(config, SpecialTokenSet::all, reader_of({}));
  EXPECT_FALSE(foreign->keeps_text());
  EXPECT_NE(foreign->encode("der Hund"), trained->encode("der Hund"));
  config.path = dir.write("no.model", "no model").string();
  EXPECT_THAT(message_of<DataError>([&] { make_tokenizer(config, SpecialTokenSet::all, reader_of({})); }),
              HasSubstr("no.model: not a SentencePiece model"));
}

TEST(Tokenizer, DamagedFilesAreErrorsOfOneLine) {
  const TempDir run;
  EXPECT_THAT(message_of<CheckpointError>([&] { load_tokenizer(run.path()); }),
              HasSubstr(run.path().string()));
  const std::string special =
      R"("special":{"pad":null,"unk":null,"bos":null,"eos":null,"mask":null,"cls":null,"sep":null})";
  const std::vector<std::string> contents = {
      "",
      "[1",
      "\xFF\xFE{}",
      "[]",
      "{}",
      R"({"type":"wordpiece","lowercase":false})",
      R"({"type":7,"lowercase":false})",
      R"({"type":"char","lowercase":"no",)" + special + R"(,"symbols":["a"]})",
      R"({"type":"char","lowercase":false,)" + special + R"(,"symbols":[]})",
      R"({"type":"char","lowercase":false,)" + special + R"(,"symbols":["ab"]})",
      R"({"type":"char","lowercase":false,)" + special + R"(,"symbols":["a","a"]})",
      R"({"type":"char","lowercase":false,)" + special + R"(,"symbols":[1]})",
      R"({"type":"char","lowercase":false,"special":{"pad":0,"unk":0,"bos":null,"eos":null,"mask":null,"cls":null,"sep":null},"symbols":["a"]})",
      R"({"type":"char","lowercase":false,"special":{"pad":9223372036854775807,"unk":null,"bos":null,"eos":null,"mask":null,"cls":null,"sep":null},"symbols":["a"]})",
      R"({"type":"char","lowercase":false,"special":{"pad":-5,"unk":null,"bos":null,"eos":null,"mask":null,"cls":null,"sep":null},"symbols":["a"]})",
      R"({"type":"char","lowercase":false,"special":{"pad":1.5,"unk":null,"bos":null,"eos":null,"mask":null,"cls":null,"sep":null},"symbols":["a"]})",
      R"({"type":"byte","lowercase":false,"special":{"pad":3,"unk":null,"bos":null,"eos":null,"mask":null,"cls":null,"sep":null}})",
      R"({"type":"sentencepiece","lowercase":false,)" + special + R"(,"model_sha256":"00"})",
  };
  for (const std::string& content : contents) {
    run.write("tokenizer.json", content);
    EXPECT_THAT(message_of<CheckpointError>([&] { load_tokenizer(run.path()); }),
                HasSubstr(run.path().string()))
        << content;
  }
}

TEST(Tokenizer, ADamagedModelFileIsAnError) {
  const TempDir run;
  make(TokenizerKind::sentencepiece, SpecialTokenSet::all, sentences(300))->save(run.path());
  const std::string model = read_file(run / "tokenizer.model");
  for (const std::string& content : {model.substr(0, model.size() / 2), std::string(), model + "x"}) {
    run.write("tokenizer.model", content);
    EXPECT_THAT(message_of<CheckpointError>([&] { load_tokenizer(run.path()); }),
                HasSubstr("tokenizer.model"));
  }
  std::filesystem::remove(run / "tokenizer.model");
  EXPECT_THAT(message_of<CheckpointError>([&] { load_tokenizer(run.path()); }), HasSubstr("tokenizer.model"));
  EXPECT_THAT(message_of<DataError>([] { SentencePieceTokenizer("\x0a\xff\xff\xff\xff\x0f", {}); }),
              HasSubstr("not a SentencePiece model"));
}

/// Each kind, trained on `texts`. SentencePiece has far fewer pieces than the texts have characters.
std::vector<std::unique_ptr<Tokenizer>> every_kind(const std::vector<std::string>& texts) {
  std::vector<std::unique_ptr<Tokenizer>> result;
  for (const auto type : {TokenizerKind::character, TokenizerKind::byte, TokenizerKind::sentencepiece}) {
    for (const auto model : {SentencePieceModel::unigram, SentencePieceModel::bpe}) {
      TokenizerConfig config;
      config.type = type;
      config.model = model;
      config.vocab_size = 1000;
      config.character_coverage = 0.99;
      if (type == TokenizerKind::sentencepiece || model == SentencePieceModel::unigram)
        result.push_back(make_tokenizer(config, SpecialTokenSet::all, reader_of(texts)));
    }
  }
  return result;
}

TEST(Tokenizer, EveryKindGivesBackEveryText) {
  const testing::ScopedEnvironment no_cache("ZOO_CACHE", "");
  std::vector<std::string> texts;
  for (uint64_t seed = 0; seed < 10'000; ++seed) texts.push_back(random_text(seed, 30));
  for (const auto& tokenizer : every_kind(texts)) {
    EXPECT_TRUE(tokenizer->keeps_text());
    for (const auto& text : texts) ASSERT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
  }
}

// WikiText has 54,625 times "<unk>", and web pages have tags.
TEST(Tokenizer, NamesOfSpecialTokensInATextAreText) {
  const testing::ScopedEnvironment no_cache("ZOO_CACHE", "");
  const std::string text = "the <unk> of <pad> and <eos>, <bos><cls><sep> <mask> [MASK]";
  auto kinds = every_kind({text});
  for (const auto type : {TokenizerKind::bpe, TokenizerKind::wordpiece}) {
    TokenizerConfig config;
    config.type = type;
    config.vocab_size = 400;
    kinds.push_back(make_tokenizer(config, SpecialTokenSet::all, reader_of({text})));
  }
  for (const auto& tokenizer : kinds) {
    const auto ids = tokenizer->encode(text);
    const auto& special = tokenizer->special();
    for (const int64_t id :
         {special.unk, special.pad, special.eos, special.bos, special.cls, special.sep, special.mask})
      EXPECT_THAT(ids, ::testing::Not(::testing::Contains(id)));
    if (tokenizer->keeps_text()) {
      EXPECT_EQ(tokenizer->decode(ids), text);
    }
    // A mask that is written in a prompt is the token all the same.
    EXPECT_THAT(tokenizer->encode_masked("the <mask>"), ::testing::Contains(special.mask));
    TempDir run;
    tokenizer->save(run.path());
    EXPECT_EQ(load_tokenizer(run.path())->encode(text), ids);
  }
}

TEST(Tokenizer, EveryKindGivesBackSourceCode) {
  const testing::ScopedEnvironment no_cache("ZOO_CACHE", "");
  std::vector<std::string> sources;
  std::error_code missing;
  for (const auto& directory : std::filesystem::directory_iterator("/usr/lib", missing)) {
    if (!directory.path().filename().string().starts_with("python3.")) continue;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
      if (entry.path().extension() != ".py" || !entry.is_regular_file()) continue;
      auto text = read_file(entry.path(), Follow::links);
      if (!find_invalid_utf8(text)) sources.push_back(std::move(text));
    }
  }
  if (sources.size() < 100) GTEST_SKIP() << "Python's standard library is not in /usr/lib";
  std::ranges::sort(sources);
  std::vector<std::string> sample;
  for (size_t i = 0; i < sources.size(); i += 10) sample.push_back(sources[i]);
  auto kinds = every_kind(sample);
  kinds[0] = make(TokenizerKind::character, SpecialTokenSet::all, sources);
  for (const auto& tokenizer : kinds) {
    for (const auto& text : sources) ASSERT_TRUE(tokenizer->decode(tokenizer->encode(text)) == text);
  }
}

TEST(EncodeMasked, PutsTheMaskWhereTheTextSaysSo) {
  const auto chars = make(TokenizerKind::character, SpecialTokenSet::all, {"ab "});
  EXPECT_THAT(chars->encode_masked("a<mask> b<mask>"), ElementsAre(8, 4, 7, 9, 4));
  EXPECT_EQ(chars->encode_masked("ab"), chars->encode("ab"));

  const auto pieces = make(TokenizerKind::sentencepiece, SpecialTokenSet::all, sentences(300));
  TokenIds expected = pieces->encode("der Hund");
  expected.push_back(4);
  const TokenIds end = pieces->encode("Geld .");
  expected.insert(expected.end(), end.begin(), end.end());
  EXPECT_EQ(pieces->encode_masked("der Hund <mask> Geld ."), expected);  // no stray blank before the mask

  const auto bare = make(TokenizerKind::character, SpecialTokenSet::none, {"ab <mask>"});
  EXPECT_THROW(bare->encode_masked("a<mask>"), DataError);
}

/// The text of `ids` with <mask> in place of token `hidden`, made from the labels of the tokens.
std::string text_with_mask(const Tokenizer& tokenizer, const TokenIds& ids, size_t hidden) {
  std::string text;
  for (size_t i = 0; i < ids.size(); ++i) {
    std::string label = tokenizer.label(ids[i]);
    const bool begins_word = label.starts_with("▁");
    if (begins_word) label.erase(0, std::string_view("▁").size());
    if (label == "↵") label = "\n";
    if (begins_word && !text.empty() && !text.ends_with('\n')) text += ' ';
    text += i == hidden ? "<mask>" : label;
  }
  return text;
}

TEST(EncodeMasked, HidesEachTokenAsTrainingDoes) {
  std::vector<std::string> texts;
  for (const auto& sentence : sentences(300)) {
    // "der Hund sieht den Ball ." with normal punctuation and line breaks.
    const auto words = sentence.substr(0, sentence.size() - 2);
    texts.push_back(words + ".\n\"" + words + "\", sagt er (oft)!");
  }
  const auto tokenizer = make(TokenizerKind::sentencepiece, SpecialTokenSet::all, texts, 70);
  int64_t before_stop = 0, within_word = 0, before_word = 0;
  for (const auto& text : {texts[0], texts[1], texts[2], texts[3]}) {
    const TokenIds ids = tokenizer->encode(text);
    for (size_t i = 0; i < ids.size(); ++i) {
      if (i > 0 && tokenizer->label(ids[i - 1]) == "▁") continue;  // the mask would hide this blank, too
      TokenIds expected = ids;
      expected[i] = tokenizer->special().mask;
      const auto masked = text_with_mask(*tokenizer, ids, i);
      EXPECT_EQ(tokenizer->encode_masked(masked), expected) << masked;
      const auto next = i + 1 < ids.size() ? tokenizer->label(ids[i + 1]) : "";
      before_stop += next == ".";
      within_word += !next.empty() && std::islower(static_cast<unsigned char>(next[0]));
      before_word += next.starts_with("▁");
    }
  }
  EXPECT_GT(before_stop, 0);
  EXPECT_GT(within_word, 0);
  EXPECT_GT(before_word, 0);
}

TEST(EncodeMasked, BeginsAWordBehindABlankOnly) {
  TokenizerConfig config;
  config.vocab_size = 60;
  config.lowercase = true;
  config.normalization = TextNormalization::nfkc;
  config.byte_fallback = false;
  for (const auto model : {SentencePieceModel::unigram, SentencePieceModel::bpe}) {
    config.model = model;
    const auto pieces = make_tokenizer(config, SpecialTokenSet::all, reader_of(sentences(300)));
    const auto labels = [&](std::string_view text) {
      std::vector<std::string> result;
      for (const int64_t id : pieces->encode_masked(text)) result.push_back(pieces->label(id));
      return result;
    };
    EXPECT_THAT(labels("<mask>."), ElementsAre("<mask>", "."));
    EXPECT_THAT(labels("<mask>N"), ElementsAre("<mask>", "n"));
    const TokenIds stop = pieces->encode(".");  // a word of its own
    EXPECT_NE(pieces->label(stop[0]), ".");
    TokenIds expected = {pieces->special().mask};
    expected.insert(expected.end(), stop.begin(), stop.end());
    EXPECT_EQ(pieces->encode_masked("<mask> ."), expected);
    expected.insert(expected.begin(), 2, pieces->special().mask);
    EXPECT_EQ(pieces->encode_masked("  <mask> \t <mask><mask>\u00A0. "), expected);
    // Characters that are not in the vocabulary.
    EXPECT_THAT(labels("<mask>☃☃."), ElementsAre("<mask>", "<unk>", "."));
    EXPECT_THAT(labels("<mask> ☃."), ElementsAre("<mask>", "▁", "<unk>", "."));
    EXPECT_THROW(pieces->encode_masked("<mask>\xff"), DataError);
  }
}

TEST(EncodeMasked, OneBlankBelongsToTheMask) {
  const auto pieces = make(TokenizerKind::sentencepiece, SpecialTokenSet::all, sentences(300));
  const auto labels = [&](std::string_view text) {
    std::string result;
    for (const int64_t id : pieces->encode_masked(text)) result += pieces->label(id);
    return result;
  };
  EXPECT_EQ(labels("<mask>der"), "<mask>der");
  EXPECT_EQ(labels("der <mask> der"), "▁der<mask>▁der");
  EXPECT_EQ(labels("der  <mask>"), "▁der▁<mask>");
  EXPECT_EQ(labels("der<mask>"), "▁der<mask>");
}

TEST(StreamDecoder, HoldsBackWhatIsNotWholeYet) {
  const auto tokenizer = make(TokenizerKind::byte, SpecialTokenSet::all, {});
  StreamDecoder decoder(*tokenizer);
  const TokenIds ids = tokenizer->encode("a€");
  EXPECT_EQ(decoder.push(ids[0]), "a");
  EXPECT_EQ(decoder.push(ids[1]), "");
  EXPECT_EQ(decoder.push(ids[2]), "");
  EXPECT_EQ(decoder.push(ids[3]), "€");
  EXPECT_EQ(decoder.push(3), "");
  EXPECT_EQ(decoder.push(ids[1]), "");
  EXPECT_EQ(decoder.finish(), "\xE2");
}

TEST(StreamDecoder, NeedsNoMoreThanTheNewestIds) {
  const auto tokenizer = make(TokenizerKind::sentencepiece, SpecialTokenSet::all, sentences(300));
  std::string text = "der Hund";
  for (int i = 0; i < 2000; ++i) text += " sieht das Kind .";
  const TokenIds ids = tokenizer->encode(text);
  EXPECT_EQ(stream(*tokenizer, ids), text);  // would take minutes if each step decoded everything
}

// ---- bpe, wordpiece

TEST(TrainedSubwords, BytePairsGiveEveryTextBack) {
  const auto tokenizer = make(TokenizerKind::bpe, SpecialTokenSet::all, sentences(300), 400);
  EXPECT_GT(tokenizer->vocab_size(), 7 + 256);
  EXPECT_LE(tokenizer->vocab_size(), 400);
  EXPECT_TRUE(tokenizer->keeps_text());
  const std::string text = random_text(3, 400) + " \n\n東\x01";
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
  EXPECT_EQ(stream(*tokenizer, tokenizer->encode(text)), text);
  EXPECT_LT(tokenizer->encode(sentences(300).front()).size(), sentences(300).front().size());
}

TEST(TrainedSubwords, TheTaskFramesTextsAsWithOtherVocabulariesOfOurOwn) {
  for (const auto kind : {TokenizerKind::bpe, TokenizerKind::wordpiece}) {
    const auto tokenizer = make(kind, SpecialTokenSet::all, sentences(300), 400);
    EXPECT_EQ(tokenizer->frame(), std::nullopt);
    EXPECT_EQ(tokenizer->special().eos, 3);
    EXPECT_THAT(tokenizer->never_generated(), ::testing::Contains(tokenizer->special().pad));
    EXPECT_EQ(tokenizer->label(2), "<bos>");
  }
  EXPECT_EQ(make(TokenizerKind::wordpiece, SpecialTokenSet::none, sentences(300), 400)->special().unk, 0);
}

TEST(TrainedSubwords, TheSameTextsGiveTheSameVocabulary) {
  for (const auto kind : {TokenizerKind::bpe, TokenizerKind::wordpiece}) {
    auto texts = sentences(300);
    const auto first = make(kind, SpecialTokenSet::all, texts, 400)->fingerprint();
    std::ranges::reverse(texts);  // their order does not matter
    EXPECT_EQ(make(kind, SpecialTokenSet::all, texts, 400)->fingerprint(), first);
    texts.front() += " zzz zzz zzz zzz";
    EXPECT_NE(make(kind, SpecialTokenSet::all, texts, 400)->fingerprint(), first);
  }
}

TEST(TrainedSubwords, ARunKeepsThem) {
  for (const auto kind : {TokenizerKind::bpe, TokenizerKind::wordpiece}) {
    const TempDir run;
    const auto tokenizer = make(kind, SpecialTokenSet::all, sentences(300), 400);
    tokenizer->save(run.path());
    const auto loaded = load_tokenizer(run.path());
    EXPECT_EQ(loaded->fingerprint(), tokenizer->fingerprint());
    EXPECT_EQ(loaded->frame(), std::nullopt);
    EXPECT_EQ(loaded->special().mask, tokenizer->special().mask);
  }
}

// WordPiece has words for what it has seen: the pieces of a word are the word.
TEST(TrainedSubwords, WordPiecesMakeUpTheWords) {
  const auto tokenizer = make(TokenizerKind::wordpiece, SpecialTokenSet::all, sentences(300), 300);
  for (const auto& text : sentences(300)) {
    const auto ids = tokenizer->encode(text);
    EXPECT_THAT(ids, ::testing::Not(::testing::Contains(tokenizer->special().unk)));
    std::string letters;
    for (const int64_t id : ids) {
      const auto label = tokenizer->label(id);
      letters += label.starts_with("##") ? label.substr(2) : label;
    }
    std::string expected = text;
    std::erase_if(expected, [](char c) { return c == ' ' || c == '\n'; });
    EXPECT_EQ(letters, expected);
  }
  EXPECT_EQ(tokenizer->encode("東").size(), 1u);
  EXPECT_EQ(tokenizer->encode("東").front(), tokenizer->special().unk);
}

TEST(TrainedSubwords, SayWhatIsWrong) {
  EXPECT_THAT(message_of<DataError>([] { make(TokenizerKind::bpe, SpecialTokenSet::all, {"abc"}, 200); }),
              HasSubstr("200 is too small: the characters of the text need 263"));
  EXPECT_THAT(
      message_of<DataError>([] { make(TokenizerKind::wordpiece, SpecialTokenSet::all, {"abc"}, 11); }),
      HasSubstr("11 is too small: the characters of the text need 12"));
  EXPECT_THAT(message_of<DataError>([] { make(TokenizerKind::bpe, SpecialTokenSet::all, {""}, 300); }),
              HasSubstr("the training text is empty"));
  EXPECT_THAT(message_of<DataError>([] { make(TokenizerKind::bpe, SpecialTokenSet::all, {"\xFF"}, 300); }),
              HasSubstr("UTF-8"));
}

// Long texts are encoded in parts, by several threads.
TEST(TrainedSubwords, APartOfATextIsEncodedAsWithinTheText) {
  std::string text;
  while (text.size() < 3'000'000)
    text += text.size() % 7 == 0 ? "don't stop, é東 now. " : "to be or  not\n\nto be ";
  for (const auto kind : {TokenizerKind::bpe, TokenizerKind::wordpiece}) {
    const auto tokenizer = make(kind, SpecialTokenSet::all, {text.substr(0, 5000)}, 400);
    ASSERT_LT(tokenizer->part_end(text, 0, 1000), 1100u);
    std::vector<TokenIds> rows;
    const std::vector<std::string> texts = {"to be", text, ""};
    encode_in_order(zoo::reader_of({&texts}), *tokenizer,
                    [&](TokenIds ids) { rows.push_back(std::move(ids)); });
    ASSERT_EQ(rows.size(), 3u);
    EXPECT_EQ(rows[0], tokenizer->encode("to be"));
    EXPECT_TRUE(rows[1] == tokenizer->encode(text));
    EXPECT_TRUE(rows[2].empty());
  }
}

}  // namespace
}  // namespace zoo
