#pragma once
// Helpers for the tests of data/.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "tests/support/environment.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"
#include "text/corpus.h"
#include "tokenizers/tokenizer.h"

namespace zoo::testing {

inline TextReader reader_of(std::vector<std::string> texts) {
  return [texts = std::move(texts)](const auto& sink) {
    for (const std::string& text : texts) sink(text);
  };
}

/// Text of many scripts with 1-, 2-, 3- and 4-byte characters, the same for the same `seed`.
inline std::string random_text(uint64_t seed, int64_t n_characters) {
  constexpr std::u32string_view alphabet =
      U"abcdefgh XYZ .,\n\t0129äöüßéñçøİ αβγΩ жщЫ אבג 中文字日本語 한국 ไทย 😀🦊🏳 ‘’“”…–€";
  CounterRandom random({seed});
  std::u32string text;
  for (int64_t i = 0; i < n_characters; ++i) {
    text += alphabet[static_cast<size_t>(random.below(static_cast<int64_t>(alphabet.size())))];
  }
  return encode_utf8(text);
}

/// Sentences over a small vocabulary, enough to train a SentencePiece model on.
inline std::vector<std::string> sentences(int64_t n) {
  const std::vector<std::string> subjects = {"der Hund",    "die Katze", "ein Vogel",
                                             "mein Freund", "das Kind",  "eine Frau"};
  const std::vector<std::string> verbs = {"sieht", "liebt", "findet", "verliert", "kauft", "vergisst"};
  const std::vector<std::string> objects = {"den Ball", "das große Haus", "ihre Bücher",
                                            "nichts",   "einen Apfel",    "Geld"};
  CounterRandom random({17});
  const auto pick = [&](const auto& words) {
    return words[static_cast<size_t>(random.below(static_cast<int64_t>(words.size())))];
  };
  std::vector<std::string> result;
  for (int64_t i = 0; i < n; ++i)
    result.push_back(pick(subjects) + " " + pick(verbs) + " " + pick(objects) + " .");
  return result;
}

/// The directory of the benchmark corpora, which may not exist.
inline std::filesystem::path mirror() {
  if (const char* path = std::getenv("ZOO_DATA_MIRROR")) return path;
  return "../shared/data";
}

}  // namespace zoo::testing
