// Trained vocabularies against those that tokenizers learns, and tokenizers as the reader of what is written.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "io/files.h"
#include "tests/parity/reference.h"
#include "tests/parity/token_lists.h"
#include "tokenizers/hub_tokenizer.h"

namespace zoo::testing {
namespace {

using Json = nlohmann::json;

class SubwordTrainingParity : public ReferenceTest {
 protected:
  SubwordTrainingParity() : ReferenceTest("reference_subword_training.py") {}
};

std::unique_ptr<Tokenizer> trained(TokenizerKind kind, int64_t vocab_size, bool lowercase,
                                   SpecialTokenSet special, const std::vector<std::string>& texts) {
  TokenizerConfig config;
  config.type = kind;
  config.vocab_size = vocab_size;
  config.lowercase = lowercase;
  return make_tokenizer(config, special, [&](const auto& sink) {
    for (const auto& text : texts) sink(text);
  });
}

Json model_of(const Tokenizer& tokenizer, const std::filesystem::path& dir) {
  make_directory(dir);
  export_files(tokenizer, dir, {});
  return Json::parse(read_file(dir / "tokenizer.json", Follow::nothing)).at("model");
}

TEST_F(SubwordTrainingParity, BytePairs) {
  const TempDir dir;
  for (const auto& [name, size, lower, special] :
       {std::tuple("bpe", 1500, false, SpecialTokenSet::all),
        std::tuple("bpe-lower", 400, true, SpecialTokenSet::none),
        std::tuple("bpe-all", 100'000, false, SpecialTokenSet::all)}) {
    const ReferenceCase reference(file(name));
    const auto texts = texts_in(reference, "input/texts", "input/text_lengths");
    const auto tokenizer = trained(TokenizerKind::bpe, size, lower, special, texts);
    const auto model = model_of(*tokenizer, dir / name);
    std::vector<std::string> tokens(model.at("vocab").size()), merges;
    for (const auto& [token, id] : model.at("vocab").items()) tokens.at(id.get<size_t>()) = token;
    for (const auto& merge : model.at("merges"))
      merges.push_back(merge[0].get<std::string>() + " " + merge[1].get<std::string>());
    EXPECT_EQ(merges, texts_in(reference, "output/merges", "output/merge_lengths")) << name;
    EXPECT_EQ(tokens, texts_in(reference, "output/tokens", "output/token_lengths")) << name;
    const auto ids = lists_in(reference, "output/ids", "output/id_lengths");
    for (size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(tokenizer->encode(texts[i]), ids[i]) << name;
  }
}

/// The same merges in the same order. tokenizers numbers the characters differently in each of its runs.
TEST_F(SubwordTrainingParity, WordPieces) {
  const TempDir dir;
  const ReferenceCase reference(file("wordpiece"));
  const auto texts = texts_in(reference, "input/texts", "input/text_lengths");
  const auto tokenizer = trained(TokenizerKind::wordpiece, 52, true, SpecialTokenSet::all, texts);
  const auto model = model_of(*tokenizer, dir / "wordpiece");
  std::vector<std::string> tokens(model.at("vocab").size());
  for (const auto& [token, id] : model.at("vocab").items()) tokens.at(id.get<size_t>()) = token;
  auto theirs = texts_in(reference, "output/tokens", "output/token_lengths");
  const auto is_merged = [](const std::string& token) {
    return token.size() > (token.starts_with("##") ? 3U : 1U);
  };
  const auto merged_of = [&](const std::vector<std::string>& all) {
    std::vector<std::string> merged;
    std::ranges::copy_if(all, std::back_inserter(merged), is_merged);
    return merged;
  };
  EXPECT_EQ(merged_of(tokens), merged_of(theirs));
  std::ranges::sort(tokens);
  std::ranges::sort(theirs);
  EXPECT_EQ(tokens, theirs);
}

TEST_F(SubwordTrainingParity, TokenizersReadsWhatIsWritten) {
  const TempDir dir;
  const auto texts = texts_in(ReferenceCase(file("bpe")), "input/texts", "input/text_lengths");
  const std::vector<std::string> some(texts.begin(),
                                      texts.begin() + std::min<ptrdiff_t>(std::ssize(texts), 60));
  write_file_atomically(dir / "texts.json", Json(some).dump());
  const auto bpe = trained(TokenizerKind::bpe, 900, false, SpecialTokenSet::all, texts),
             pieces = trained(TokenizerKind::wordpiece, 900, true, SpecialTokenSet::all, texts);
  model_of(*bpe, dir / "bpe");
  model_of(*pieces, dir / "wordpiece");
  const auto script = std::filesystem::absolute(__FILE__).parent_path() / "check_tokenizers.py";
  const auto command = "'" + reference_python() + "' '" + script.string() + "' '" + (dir / "bpe").string() +
                       "' '" + (dir / "wordpiece").string() + "' <'" + (dir / "texts.json").string() +
                       "' >'" + (dir / "out.json").string() + "' 2>/dev/null";
  ASSERT_EQ(std::system(command.c_str()), 0);
  const auto read = Json::parse(read_file(dir / "out.json", Follow::nothing));
  for (const auto& [folder, tokenizer] :
       {std::pair(dir / "bpe", bpe.get()), std::pair(dir / "wordpiece", pieces.get())}) {
    const auto& theirs = read.at(folder.string());
    EXPECT_EQ(theirs.at("pad"), 0);
    for (size_t i = 0; i < some.size(); ++i) {
      const auto ids = tokenizer->encode(some[i]);
      EXPECT_EQ(theirs.at("ids")[i].get<TokenIds>(), ids) << some[i];
      EXPECT_EQ(theirs.at("auto_ids")[i].get<TokenIds>(), ids) << some[i];
      EXPECT_EQ(theirs.at("decoded")[i].get<std::string>(), tokenizer->decode(ids)) << some[i];
    }
  }
}

}  // namespace
}  // namespace zoo::testing
