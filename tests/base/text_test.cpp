#include "base/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace zoo {
namespace {

TEST(Utf8, DecodesAndEncodesTheBoundaries) {
  const std::u32string points = {U'a',   0x7F,   0x80,    0x7FF,    0x800, 0xD7FF,
                                 0xE000, 0xFFFF, 0x10000, 0x10FFFF, 0};
  const std::string bytes(
      "a\x7F\xC2\x80\xDF\xBF\xE0\xA0\x80\xED\x9F\xBF\xEE\x80\x80\xEF\xBF\xBF\xF0\x90\x80\x80\xF4\x8F\xBF\xBF"
      "\0",
      27);
  EXPECT_EQ(encode_utf8(points), bytes);
  EXPECT_EQ(decode_utf8(bytes), points);
  EXPECT_EQ(find_invalid_utf8(bytes), std::nullopt);
  EXPECT_EQ(find_invalid_utf8(""), std::nullopt);
}

TEST(Utf8, AByteOrderMarkIsLeftOutAtTheStartOnly) {
  EXPECT_EQ(without_byte_order_mark("\uFEFFa\uFEFFb"), "a\uFEFFb");
  EXPECT_EQ(without_byte_order_mark("\uFEFF"), "");
  EXPECT_EQ(without_byte_order_mark("\xEF\xBB"), "\xEF\xBB");
  EXPECT_EQ(without_byte_order_mark(""), "");
}

TEST(Utf8, FindsEveryKindOfDamage) {
  for (const std::string bad : {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xC2", "\xC2 ", "\xE0\x9F\xBF",
                                "\xE2\x82", "\xE2\x82 ", "\xED\xA0\x80", "\xED\xBF\xBF", "\xF0\x8F\xBF\xBF",
                                "\xF0\x9F\x98", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xFE"}) {
    EXPECT_EQ(find_invalid_utf8(bad), 0u) << excerpt(bad);
    EXPECT_EQ(find_invalid_utf8("ä" + bad + "b"), 2u) << excerpt(bad);
    EXPECT_THROW(decode_utf8(bad), DataError);
  }
  EXPECT_THROW(encode_utf8(U"\x110000"), DataError);
  EXPECT_THROW(encode_utf8(std::u32string(1, 0xD800)), DataError);
}

TEST(Utf8, RoundTripsEveryCodePoint) {
  std::u32string all;
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c < 0xD800 || c > 0xDFFF) all.push_back(c);
  }
  EXPECT_EQ(decode_utf8(encode_utf8(all)), all);
}

TEST(EditDistance, CountsEditsAndSwaps) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("abc", ""), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("modle", "model"), 1u);
  EXPECT_EQ(edit_distance("ca", "abc"), 3u);  // optimal string alignment: no edit within a swapped pair
}

TEST(Nearest, FindsSlips) {
  const std::vector<std::string> keys = {"n_layers",     "n_heads", "norm", "norm_placement",
                                         "warmup_steps", "d_ff",    "lr"};
  EXPECT_EQ(nearest("n_layer", keys), "n_layers");
  EXPECT_EQ(nearest("layers", keys), "n_layers");
  EXPECT_EQ(nearest("N-Heads", keys), "n_heads");
  EXPECT_EQ(nearest("nrom", keys), "norm");
  EXPECT_EQ(nearest("warmup", keys), "warmup_steps");
  EXPECT_EQ(nearest("placement", keys), "norm_placement");
  EXPECT_EQ(nearest("xyzzy", keys), std::nullopt);
  EXPECT_EQ(nearest("x", keys), std::nullopt);
  EXPECT_EQ(nearest("", keys), std::nullopt);
  EXPECT_EQ(nearest("n_layers", {}), std::nullopt);
  EXPECT_EQ(nearest(std::string(1000000, 'n'), keys), std::nullopt);
}

TEST(Excerpt, IsOneShortLineOfUtf8) {
  EXPECT_EQ(excerpt("plain ä"), "plain ä");
  EXPECT_EQ(excerpt("a\nb\tc\x01\xff\x7f"), "a\\nb\\tc\\x01\\xff\\x7f");
  EXPECT_EQ(excerpt("\xC2\x85\xE2\x80\xA8"), "\\u0085\\u2028");
  EXPECT_EQ(excerpt("äöü", 3), "äö…");
  EXPECT_EQ(excerpt("", 3), "");
}

TEST(Printable, KeepsLinesAndTabsButNoOtherControlCharacters) {
  EXPECT_EQ(printable("a\n\tä\n"), "a\n\tä\n");
  EXPECT_EQ(printable("\x1b[2J\r\b\x7f\xff\xC2\x9B!"), "\\x1b[2J\\x0d\\x08\\x7f\\xff\\u009b!");
  EXPECT_EQ(printable(""), "");
  EXPECT_EQ(printable(std::string(100'000, 'x')), std::string(100'000, 'x')) << "nothing is cut";
}

TEST(Utf8, TellsABegunCharacterFromABrokenOne) {
  EXPECT_EQ(incomplete_utf8("abc"), 0U);
  EXPECT_EQ(incomplete_utf8("ab\xE2"), 1U);
  EXPECT_EQ(incomplete_utf8("ab\xE2\x82"), 2U);
  EXPECT_EQ(incomplete_utf8("ab\xE2\x82\xAC"), 0U);
  EXPECT_EQ(incomplete_utf8("ab\xF0\x9F\x98"), 3U);
  EXPECT_EQ(incomplete_utf8("ab\x82\x82"), 0U);
  EXPECT_EQ(incomplete_utf8("ab\xFF"), 0U);
}

TEST(Text, LettersOfAsciiBecomeSmall) {
  EXPECT_EQ(ascii_lower("R.TSV [\\]^_` @ÄÉ"), "r.tsv [\\]^_` @ÄÉ");
  EXPECT_EQ(ascii_lower(""), "");
}

}  // namespace
}  // namespace zoo
