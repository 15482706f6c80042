// Tokenizers of the Hub against tokenizers and transformers.

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/parity/reference.h"
#include "tests/parity/token_lists.h"
#include "tokenizers/hub_tokenizer.h"
#include "tokenizers/tokenizer_file.h"

namespace zoo::testing {
namespace {

class HubTokenizerParity : public ReferenceTest {
 protected:
  explicit HubTokenizerParity(const std::string& script = "reference_hub_tokenizers.py")
      : ReferenceTest(script, Transformers::of_version_4) {}

  std::filesystem::path folder(const std::string& name) const { return file(name).parent_path() / name; }

  void compare(const std::string& name) const {
    const ReferenceCase reference(file(name));
    const auto files = read_hub_files(folder(name), Follow::nothing);
    const auto special = hub_special_tokens(files);
    const auto tokenizer = make_hub_tokenizer(files, special);
    EXPECT_EQ(TokenIds({special.pad, special.unk, special.bos, special.eos, special.mask, special.cls,
                        special.sep}),
              ids_in(reference.output("special")))
        << name;
    compare_texts(name, reference, *tokenizer);
    if (reference.names("output/framed").empty()) return;
    compare_frames(name, reference, *tokenizer);

    TempDir run;
    tokenizer->save(run.path());
    const auto loaded = load_tokenizer(run.path());
    EXPECT_EQ(loaded->fingerprint(), tokenizer->fingerprint());
    EXPECT_EQ(loaded->special().sep, special.sep);
    compare_frames(name, reference, *loaded);
    EXPECT_EQ(loaded->encode("Über to be"), tokenizer->encode("Über to be"));
  }

 private:
  static void compare_texts(const std::string& name, const ReferenceCase& reference,
                            const Tokenizer& tokenizer) {
    const auto texts = texts_in(reference, "input/texts", "input/text_lengths");
    const auto expected = lists_in(reference, "output/ids", "output/id_lengths");
    ASSERT_GE(texts.size(), 300u);
    int wrong = 0;
    for (size_t i = 0; i < texts.size() && wrong < 5; ++i) {
      const auto ids = tokenizer.encode(texts[i]);
      wrong += ids != expected[i];
      EXPECT_EQ(ids, expected[i]) << name << " text " << i << ": " << ::testing::PrintToString(texts[i]);
    }
    compare_places(name, reference, tokenizer, texts);
    const auto lists = lists_in(reference, "input/lists", "input/list_lengths");
    const auto decoded = texts_in(reference, "output/decoded", "output/decoded_lengths");
    for (size_t i = 0; i < lists.size() && wrong < 10; ++i) {
      const auto text = tokenizer.decode(lists[i]);
      wrong += text != decoded[i];
      EXPECT_EQ(text, decoded[i]) << name << " list " << i << ": " << ::testing::PrintToString(lists[i]);
    }
  }

  static void compare_places(const std::string& name, const ReferenceCase& reference,
                             const Tokenizer& tokenizer, const std::vector<std::string>& texts) {
    if (reference.names("output/places").empty()) return;
    const auto expected = lists_in(reference, "output/places", "output/place_lengths");
    int wrong = 0;
    for (size_t i = 0; i < texts.size() && wrong < 5; ++i) {
      TokenIds places;
      for (const auto& token : tokenizer.encode_with_places(texts[i])) {
        places.push_back(static_cast<int64_t>(token.begin));
        places.push_back(static_cast<int64_t>(token.end));
      }
      wrong += places != expected[i];
      EXPECT_EQ(places, expected[i]) << name << " text " << i << ": " << ::testing::PrintToString(texts[i]);
    }
  }

  static void compare_frames(const std::string& name, const ReferenceCase& reference,
                             const Tokenizer& tokenizer) {
    const auto frame = tokenizer.frame();
    ASSERT_TRUE(frame) << name;
    TokenIds one = frame->before, two = frame->before;
    const auto append = [](TokenIds& to, const TokenIds& more) {
      to.insert(to.end(), more.begin(), more.end());
    };
    const auto a = ids_in(reference.output("a")), b = ids_in(reference.output("b"));
    append(one, a);
    append(one, frame->after);
    EXPECT_EQ(one, ids_in(reference.output("framed"))) << name;
    append(two, a);
    append(two, frame->between);
    TokenIds segments(two.size(), 0);
    append(two, b);
    append(two, frame->after);
    segments.resize(two.size(), frame->second_segment);
    EXPECT_EQ(two, ids_in(reference.output("pair"))) << name;
    auto expected_segments = ids_in(reference.output("segments"));
    // Here the token between counts as one of the second text: no model reads that.
    if (name.starts_with("llama") || name == "gemma") {
      const auto begin = expected_segments.begin() + std::ssize(frame->before) + std::ssize(a);
      std::fill(begin, begin + std::ssize(frame->between), 0);
    }
    EXPECT_EQ(segments, expected_segments) << name;
  }
};

TEST_F(HubTokenizerParity, Gpt2) {
  for (const auto* name : {"gpt2", "gpt2-files"}) compare(name);
}

TEST_F(HubTokenizerParity, Roberta) {
  for (const auto* name : {"roberta", "roberta-blank", "roberta-files"}) compare(name);
}

TEST_F(HubTokenizerParity, ByteLevelWithOtherPatterns) {
  for (const auto* name : {"llama3", "o200k", "qwen2", "smollm", "deepseek"}) compare(name);
}

TEST_F(HubTokenizerParity, ByteFallback) {
  for (const auto* name : {"llama2", "llama2-first", "gemma"}) compare(name);
}

TEST_F(HubTokenizerParity, PrefixesAndSuffixes) {
  for (const auto* name : {"clip", "clip-files", "prefixed", "prefixed-suffixed"}) compare(name);
}

TEST_F(HubTokenizerParity, Unigram) {
  for (const auto* name : {"unigram", "unigram-bytes", "unigram-ties"}) compare(name);
}

TEST_F(HubTokenizerParity, WordLevel) {
  for (const auto* name : {"words", "letters"}) compare(name);
}

TEST_F(HubTokenizerParity, Tiktoken) {
  for (const auto* name : {"tiktoken", "tiktoken-gpt2"}) compare(name);
}

TEST_F(HubTokenizerParity, CharactersOfSpeech) {
  for (const auto* name : {"speech", "speech-own"}) compare(name);
}

TEST_F(HubTokenizerParity, Esm) { compare("esm"); }

TEST_F(HubTokenizerParity, Bert) {
  for (const auto* name : {"bert", "bert-cased", "bert-accents", "bert-files", "bert-cased-files"})
    compare(name);
}

TEST_F(HubTokenizerParity, ClassesOfModels) {
  for (const auto* name :
       {"bert-model", "bert-model-cased", "distilbert-model", "roberta-model", "roberta-model-files",
        "longformer-model-files", "bart-model-files", "named-model-files", "qwen2-model-files"})
    compare(name);
}

TEST_F(HubTokenizerParity, AddedTokens) {
  for (const auto* name : {"added", "added-split", "added-named", "added-listed"}) compare(name);
}

TEST_F(HubTokenizerParity, PartsTogether) {
  for (int i = 0; i < 24; ++i) compare("pipeline-" + std::to_string(i));
}

class HubSentencePieceParity : public HubTokenizerParity {
 protected:
  HubSentencePieceParity() : HubTokenizerParity("reference_hub_sentencepiece.py") {}
};

TEST_F(HubSentencePieceParity, T5) {
  for (const auto* name : {"t5", "t5-20", "t5-plain"}) compare(name);
}

TEST_F(HubSentencePieceParity, Siglip) { compare("siglip"); }
TEST_F(HubSentencePieceParity, Pegasus) {
  for (const auto* name : {"pegasus", "pegasus-9", "pegasus-plain"}) compare(name);
}

TEST_F(HubSentencePieceParity, Llama) { compare("llama"); }

TEST_F(HubSentencePieceParity, Marian) { compare("marian"); }

/// Much text, for tokenizers of the usual shapes.
class TokenizersAtScale : public ReferenceTest {
 protected:
  /// The ids of texts in parts are those of whole texts.
  static void compare_parts(const std::string& name, const Tokenizer& tokenizer,
                            const std::vector<std::string>& texts, const std::vector<TokenIds>& expected);
  TokenizersAtScale() : ReferenceTest("reference_tokenizers_at_scale.py") {}

  void compare(const std::string& name) const {
    const ReferenceCase reference(file(name));
    const auto tokenizer =
        make_hub_tokenizer(read_hub_files(file(name).parent_path() / name, Follow::nothing), {});
    const auto texts = texts_in(reference, "input/texts", "input/text_lengths");
    const auto expected = lists_in(reference, "output/ids", "output/id_lengths");
    ASSERT_GE(texts.size(), 7000u);
    int wrong = 0;
    for (size_t i = 0; i < texts.size() && wrong < 3; ++i) {
      const auto ids = tokenizer->encode(texts[i]);
      if (ids == expected[i]) continue;
      ++wrong;
      const auto at = std::ranges::mismatch(ids, expected[i]).in1 - ids.begin();
      ADD_FAILURE() << name << " text " << i << " differs at token " << at << ": "
                    << ::testing::PrintToString(texts[i].substr(0, 300));
    }
    compare_parts(name, *tokenizer, texts, expected);
    const auto lists = lists_in(reference, "input/lists", "input/list_lengths");
    const auto decoded = texts_in(reference, "output/decoded", "output/decoded_lengths");
    for (size_t i = 0; i < lists.size() && wrong < 5; ++i) {
      wrong += tokenizer->decode(lists[i]) != decoded[i];
      EXPECT_EQ(tokenizer->decode(lists[i]), decoded[i]) << name << " list " << i;
    }
  }
};

void TokenizersAtScale::compare_parts(const std::string& name, const Tokenizer& tokenizer,
                                      const std::vector<std::string>& texts,
                                      const std::vector<TokenIds>& expected) {
  int64_t n_parts = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::string_view text = texts[i];
    TokenIds ids;
    for (size_t begin = 0; begin < text.size(); ++n_parts) {
      const size_t end = tokenizer.part_end(text, begin, 1 + (i + begin) % 90);
      const auto part = tokenizer.encode(text.substr(begin, end - begin));
      ids.insert(ids.end(), part.begin(), part.end());
      begin = end;
    }
    ASSERT_EQ(ids == expected[i], true) << name << " text " << i << ": " << text.substr(0, 300);
  }
  if (name == "llama2" || name == "cuts-digits" || name.starts_with("public-"))
    return;  // not known to be cut
  EXPECT_GT(n_parts, 3 * std::ssize(texts)) << name;
}

TEST_F(TokenizersAtScale, BytePairs) {
  for (const auto* name : {"gpt2", "llama3", "llama2"}) compare(name);
}

TEST_F(TokenizersAtScale, WordPieceAndUnigram) {
  for (const auto* name : {"bert", "unigram"}) compare(name);
}

TEST_F(TokenizersAtScale, Pieces) {
  for (const auto* name : {"cuts-gpt2", "cuts-llama3", "cuts-bert", "cuts-words", "cuts-digits"})
    compare(name);
}

// Real vocabularies, from packages: see reference_tokenizers_at_scale.py.
TEST_F(TokenizersAtScale, PublicVocabularies) {
  int n = 0;
  for (const auto& entry : std::filesystem::directory_iterator(file("gpt2").parent_path())) {
    const auto name = entry.path().filename().string();
    if (!entry.is_directory() || !name.starts_with("public-")) continue;
    compare(name);
    ++n;
  }
  if (n == 0) GTEST_SKIP() << "no $ZOO_VOCABULARIES: see tests/parity/reference_tokenizers_at_scale.py";
}

}  // namespace
}  // namespace zoo::testing
