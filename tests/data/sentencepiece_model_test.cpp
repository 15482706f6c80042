// Models of SentencePiece from strangers.

#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/support.h"
#include "tests/support/sentencepiece_models.h"
#include "tokenizers/sentencepiece/model_check.h"
#include "tokenizers/sentencepiece_tokenizer.h"

namespace zoo::testing {
namespace {

using namespace std::string_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string refusal(const std::string& model) {
  return message_of<DataError>([&] { SentencePieceTokenizer(model, {}).encode("a cab \xE2\x80\x8B!"); });
}

std::string refusal_of_charsmap(const std::string& map) { return refusal(with_charsmap(map)); }

TEST(SentencePieceModel, MadeByHandIsUsed) {
  const SentencePieceTokenizer plain(few_pieces(), {});
  EXPECT_EQ(plain.decode(plain.encode("abc")), "abc");
  const SentencePieceTokenizer with_rule(with_charsmap(charsmap(nested_rules(1), "c\0"s)), {});
  EXPECT_EQ(with_rule.decode(with_rule.encode("aba")), "cbc");
}

TEST(SentencePieceModel, WithoutTrainerSpecHasTheUsualSpecialPieces) {
  const auto special = SentencePieceTokenizer(few_pieces(), {}).special();
  EXPECT_EQ(special.unk, 0);
  EXPECT_EQ(special.bos, 1);
  EXPECT_EQ(special.eos, 2);
  EXPECT_EQ(special.pad, -1);
}

// The library reads wherever the trie points, and writes as many matches as it finds into an array of 32.
TEST(SentencePieceModel, ACharsmapStaysWithinItself) {
  const auto damaged = [](const std::string& reason) {
    return AllOf(StartsWith("not a SentencePiece model: its precompiled_charsmap is damaged: "),
                 HasSubstr(reason));
  };
  EXPECT_THAT(refusal_of_charsmap("\x04\0\0\0\xff\xff\xff\xff\0"s), damaged("points outside itself"));
  EXPECT_THAT(refusal_of_charsmap("\x04"), damaged("no trie"));
  EXPECT_THAT(refusal_of_charsmap("\0\0\0\0abc\0"s), damaged("does not fit"));
  EXPECT_THAT(refusal_of_charsmap("\x05\0\0\0abcdefg\0"s), damaged("does not fit"));
  EXPECT_THAT(refusal_of_charsmap("\x08\0\0\0abcdefg\0"s),
              damaged("does not fit"));  // nothing after the trie
  EXPECT_THAT(refusal_of_charsmap(charsmap(nested_rules(1), "c")), damaged("does not end"));
  EXPECT_THAT(refusal_of_charsmap(charsmap(nested_rules(1), "\xff\0"s)), damaged("not UTF-8"));
  EXPECT_THAT(refusal_of_charsmap(charsmap(nested_rules(1, 2), "c\0"s)), damaged("points outside"));
  EXPECT_THAT(refusal_of_charsmap(charsmap(nested_rules(1, 1), "cc\0"s)), damaged("points outside"));
  EXPECT_THAT(refusal_of_charsmap(charsmap(nested_rules(1), std::string(257, 'c') + "\0"s)),
              damaged("256 bytes"));
  auto units = nested_rules(1);
  units[256 ^ 'a'] = unit('a', (256 ^ 'a') ^ 256, true);  // "a" leads to where "a" began
  EXPECT_THAT(refusal_of_charsmap(charsmap(units, "c\0"s)), damaged("circle"));
  units[256 ^ 'a'] = unit('a', 1 << 20, true);
  EXPECT_THAT(refusal_of_charsmap(charsmap(units, "c\0"s)), damaged("points outside itself"));
  EXPECT_EQ(refusal_of_charsmap(charsmap(nested_rules(32), "c\0"s)), "no error");
  EXPECT_THAT(refusal_of_charsmap(charsmap(nested_rules(33), "c\0"s)), damaged("begin alike"));
  // A denormalizer_spec has such a map, too.
  EXPECT_THAT(refusal(few_pieces() + bytes_field(5, bytes_field(2, "\x04\0\0\0\xff\xff\xff\xff\0"s))),
              damaged("points outside itself"));
}

TEST(SentencePieceModel, PiecesAreChecked) {
  const auto with = [](const std::string& more) { return refusal(few_pieces() + more); };
  EXPECT_THAT(with(piece("")), HasSubstr("a piece has no text"));
  EXPECT_THAT(with(piece("a\0b"s)), HasSubstr("is not a text"));
  EXPECT_THAT(with(piece("\0"s, 4)), HasSubstr("is not a text"));
  EXPECT_THAT(with(piece("\xC3")), HasSubstr("is not a text"));
  EXPECT_THAT(with(piece("a")), HasSubstr("\"a\" is a piece twice"));
  EXPECT_THAT(with(piece("x", 1, std::numeric_limits<float>::quiet_NaN())), HasSubstr("is not a number"));
  EXPECT_THAT(with(piece("<other>", 2)), HasSubstr("2 pieces stand for unknown text"));
  EXPECT_THAT(with(piece("<0x41>", 6)), HasSubstr("cannot stand for a byte"));
  EXPECT_THAT(with(piece("x", 7)), HasSubstr("is no value of field 3"));
  EXPECT_THAT(with(bytes_field(2, number_field(35, 1))), HasSubstr("not every byte has a piece"));
  EXPECT_THAT(with(bytes_field(2, number_field(3, 9))), HasSubstr("is no value of field 3"));
  EXPECT_THAT(with(bytes_field(2, "") + bytes_field(2, "")), HasSubstr("field 2 occurs twice"));
  EXPECT_THAT(refusal(piece("a")), HasSubstr("0 pieces stand for unknown text"));
  EXPECT_THAT(refusal(piece("<unk>", 2)), HasSubstr("no pieces of text"));
  EXPECT_THAT(refusal(""), HasSubstr("no pieces"));
  EXPECT_THAT(refusal(few_pieces() + "\x0A"), HasSubstr("cut off"));
  EXPECT_THAT(refusal(few_pieces() + "\x0B"), HasSubstr("not in the format"));
}

TEST(SentencePieceModel, AllBytesMayHavePieces) {
  std::string model = few_pieces() + bytes_field(2, number_field(35, 1));
  for (int byte = 0; byte < 256; ++byte) model += piece(fmt::format("<0x{:02X}>", byte), 6);
  const SentencePieceTokenizer tokenizer(model, {});
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("aé日")), "aé日");
}

// The library collects the user-defined pieces that match at one place in an array of 64.
TEST(SentencePieceModel, FewUserDefinedPiecesBeginAlike) {
  std::string model = few_pieces();
  for (size_t length = 2; length < 66; ++length) model += piece(std::string(length, 'c'), 4);
  EXPECT_EQ(refusal(model), "no error");
  EXPECT_THAT(refusal(model + piece(std::string(66, 'c'), 4)), HasSubstr("begin alike"));
}

// The samples in a model would be encoded when it is loaded, and reported on stderr.
TEST(SentencePieceModel, TestDataOfAModelAreLeftOut) {
  const auto sample = bytes_field(1, bytes_field(1, "abc") + bytes_field(2, "not so"));
  EXPECT_EQ(checked_sentencepiece_model(few_pieces() + bytes_field(4, sample) + bytes_field(300, "more")),
            few_pieces());
}

// The library's trainer ends the process for such texts.
TEST(SentencePieceModel, TextsWithoutVisibleCharactersMakeNoVocabulary) {
  const ScopedEnvironment no_cache("ZOO_CACHE", "");
  TokenizerConfig config;
  config.vocab_size = 20;
  config.byte_fallback = false;
  config.normalization = TextNormalization::nfkc;  // without it, the mark of a blank is a character
  for (const auto model : {SentencePieceModel::unigram, SentencePieceModel::bpe}) {
    config.model = model;
    for (const std::string& text : {"\xE2\x80\x8B\xE2\x80\x8B"s, "\xEF\xBB\xBF"s, "\x01\x02\n\x03"s,
                                    "\xC2\xA0"s, "\xE2\x80\x8D"s, "\xE2\x96\x81"s}) {
      EXPECT_THAT(
          message_of<DataError>([&] { make_tokenizer(config, SpecialTokenSet::all, reader_of({text})); }),
          HasSubstr("no visible characters"))
          << text;
    }
  }
}

TEST(SentencePieceModel, WhatTheTrainerSaysIsOneLine) {
  const ScopedEnvironment no_cache("ZOO_CACHE", "");
  TokenizerConfig config;
  config.vocab_size = 20;
  config.byte_fallback = false;
  for (const auto model : {SentencePieceModel::unigram, SentencePieceModel::bpe}) {
    config.model = model;
    // Characters that normalisation removes or that cannot be pieces, beside few others.
    for (const std::string& text :
         {"\x01\xE2\x96\x85\xE2\x81\x87"s, "a"s, "\xE2\x96\x85"s, "\xF4\x8F\xBF\xBD"s}) {
      const auto message =
          message_of<DataError>([&] { make_tokenizer(config, SpecialTokenSet::all, reader_of({text})); });
      EXPECT_FALSE(message.empty()) << text;
    }
  }
}

}  // namespace
}  // namespace zoo::testing
