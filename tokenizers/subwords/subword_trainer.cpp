#include "tokenizers/subwords/subword_trainer.h"

#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "io/json_document.h"
#include "tokenizers/subwords/bpe_trainer.h"
#include "tokenizers/subwords/byte_level.h"
#include "tokenizers/subwords/normalizer.h"
#include "tokenizers/subwords/pre_tokenizer.h"
#include "tokenizers/unicode/characters.h"

namespace zoo {
namespace {

using SpecJson = nlohmann::json;
constexpr std::string_view word_piece_prefix = "##";

/// A tokenizer.json without its vocabulary.
SpecJson document_for(const SubwordTraining& training) {
  SpecJson document = {{"version", "1.0"},
                       {"truncation", nullptr},
                       {"padding", nullptr},
                       {"normalizer", nullptr},
                       {"post_processor", nullptr}};
  if (training.kind == SubwordKind::byte_bpe) {
    const SpecJson bytes = {
        {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
    document["pre_tokenizer"] = document["decoder"] = bytes;
    if (training.lowercase) document["normalizer"] = {{"type", "Lowercase"}};
    return document;
  }
  document["normalizer"] = {{"type", "BertNormalizer"},
                            {"clean_text", true},
                            {"handle_chinese_chars", true},
                            {"strip_accents", nullptr},
                            {"lowercase", training.lowercase}};
  document["pre_tokenizer"] = {{"type", "BertPreTokenizer"}};
  document["decoder"] = {{"type", "WordPiece"}, {"prefix", word_piece_prefix}, {"cleanup", true}};
  return document;
}

PieceCounts count_pieces(const SpecJson& document,
                         const std::function<void(const std::function<void(std::string_view)>&)>& texts) {
  const auto normalizer = make_normalizer(document["normalizer"]);
  const auto pre_tokenizer = make_pre_tokenizer(document["pre_tokenizer"]);
  PieceCounts counts;
  texts([&](std::string_view text) {
    AlignedText changed(std::string(text), Alignment::dropped);
    if (normalizer) normalizer->apply(changed);
    CutText pieces(std::move(changed));
    pre_tokenizer->cut(pieces, PieceContext::first);
    for (size_t i = 0; i < pieces.size(); ++i) {
      const auto piece = pieces.piece(i);
      const auto found = counts.find(piece);
      found == counts.end() ? void(counts.emplace(piece, 1)) : void(++found->second);
    }
  });
  if (counts.empty()) throw DataError("the training text is empty");
  return counts;
}

std::vector<std::string> byte_alphabet() {
  std::vector<std::string> characters;
  for (int byte = 0; byte < 256; ++byte)
    characters.push_back(as_characters(std::string(1, static_cast<char>(byte))));
  return characters;
}

/// The vocabulary before any merge: more cannot be left out.
int64_t smallest_vocabulary(const PieceCounts& counts, const BpeTraining& training) {
  std::set<std::string> tokens(training.special.begin(), training.special.end());
  tokens.insert(training.alphabet.begin(), training.alphabet.end());
  for (const auto& [piece, count] : counts) {
    for (size_t at = 0; at < piece.size();) {
      const size_t begin = at;
      next_code_point(piece, at);
      const auto character = piece.substr(begin, at - begin);
      tokens.insert(character);
      if (begin > 0) tokens.insert(training.prefix + character);
    }
  }
  return std::ssize(tokens);
}

SpecJson model_of(const SubwordTraining& training, const LearntBpe& learnt) {
  SpecJson vocab = SpecJson::object();
  int64_t id = 0;
  for (const auto& token : learnt.tokens) vocab[token] = id++;
  SpecJson model;
  if (training.kind == SubwordKind::word_piece) {
    model = {{"type", "WordPiece"},
             {"continuing_subword_prefix", word_piece_prefix},
             {"max_input_chars_per_word", 100}};
    for (const auto& [role, token] : training.special) {
      if (role == "unk_token") model["unk_token"] = token;
    }
    if (!model.contains("unk_token")) throw DataError("wordpiece needs a token for unknown words");
  } else {
    model = {{"type", "BPE"},
             {"dropout", nullptr},
             {"unk_token", nullptr},
             {"continuing_subword_prefix", nullptr},
             {"end_of_word_suffix", nullptr},
             {"fuse_unk", false},
             {"byte_fallback", false},
             {"ignore_merges", false},
             {"merges", SpecJson::array()}};
    for (const auto& [left, right] : learnt.merges) model["merges"].push_back({left, right});
  }
  model["vocab"] = std::move(vocab);
  return model;
}

}  // namespace

std::map<std::string, std::string> train_subwords(
    const SubwordTraining& training,
    const std::function<void(const std::function<void(std::string_view)>& sink)>& texts) {
  auto document = document_for(training);
  const auto counts = count_pieces(document, texts);
  BpeTraining bpe{
      .vocab_size = static_cast<size_t>(training.vocab_size), .special = {}, .alphabet = {}, .prefix = {}};
  for (const auto& [role, token] : training.special) bpe.special.push_back(token);
  if (training.kind == SubwordKind::byte_bpe) {
    bpe.alphabet = byte_alphabet();
  } else {
    bpe.prefix = word_piece_prefix;
  }
  if (const int64_t least = smallest_vocabulary(counts, bpe); training.vocab_size < least) {
    throw DataError(fmt::format(
        "data.tokenizer.vocab_size (--vocab-size) {} is too small: the characters of the text need {}",
        training.vocab_size, least));
  }
  document["model"] = model_of(training, learn_bpe(counts, bpe));
  document["added_tokens"] = SpecJson::array();
  SpecJson config = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                     {"clean_up_tokenization_spaces", false},
                     // In texts they are text like any other.
                     {"split_special_tokens", true},
                     {"model_max_length", 1'000'000'000},
                     {"frame_by_task", true}};
  int64_t id = 0;
  const bool is_bytes = training.kind == SubwordKind::byte_bpe;
  for (const auto& [role, token] : training.special) {
    document["added_tokens"].push_back({{"id", id++},
                                        {"content", token},
                                        {"single_word", false},
                                        // A mask hides a token with the blank before it.
                                        {"lstrip", is_bytes && role == "mask_token"},
                                        {"rstrip", false},
                                        {"normalized", false},
                                        {"special", true}});
    if (role.empty()) {
      config["additional_special_tokens"].push_back(token);
    } else {
      config[role] = token;
    }
  }
  return {{"tokenizer.json", json_text(document, 1) + "\n"},
          {"tokenizer_config.json", json_text(config, 1) + "\n"}};
}

}  // namespace zoo
