#include "tokenizers/subwords/unigram.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "tokenizers/subwords/specification.h"
#include "tokenizers/unicode/characters.h"

namespace zoo {

/// The best way to cut the text that ends at one place: its last token.
struct Unigram::Cut {
  double score = 0;
  uint32_t begin = none;
  int32_t id = 0;
  static constexpr uint32_t none = ~uint32_t{0};
};

Unigram::Unigram(const nlohmann::json& part) : byte_fallback_(option(part, "byte_fallback", false)) {
  constexpr double unk_penalty = 10;
  double least = std::numeric_limits<double>::infinity();
  const auto& vocab = part.at("vocab");
  if (!vocab.is_array()) throw DataError("tokenizer.json: the vocabulary of Unigram is not a list");
  for (const auto& entry : vocab) {
    const auto token = entry.at(0).get<std::string>();
    vocabulary_.append(token);
    scores_.push_back(entry.at(1).get<double>());
    least = std::min(least, scores_.back());
    trie_.add(token, static_cast<int32_t>(scores_.size()) - 1);
  }
  unk_score_ = least - unk_penalty;
  unk_ = option(part, "unk_id", int64_t{-1});
  if (unk_ >= vocabulary_.id_end() || unk_ < -1)
    throw DataError(fmt::format("tokenizer.json: the unk_id {} is no token", unk_));
  if (!byte_fallback_) return;
  for (int byte = 0; byte < 256; ++byte)
    byte_ids_.push_back(vocabulary_.find(fmt::format("<0x{:02X}>", byte)));
}

std::vector<Unigram::Cut> Unigram::best_cuts(std::string_view piece) const {
  std::vector<Cut> cuts(piece.size() + 1);
  const auto consider = [&](size_t begin, size_t end, int32_t id, double score) {
    Cut& cut = cuts[end];
    if (cut.begin == Cut::none || score > cut.score) cut = {score, static_cast<uint32_t>(begin), id};
  };
  for (size_t begin = 0; begin < piece.size();) {
    const double score = cuts[begin].score;
    size_t next = begin;
    next_code_point(piece, next);
    bool has_character = false;
    uint32_t node = TokenTrie::root;
    for (size_t end = begin; end < piece.size();) {
      node = trie_.next(node, piece[end++]);
      if (node == TokenTrie::none) break;
      const int32_t id = trie_.id(node);
      if (id < 0) continue;
      consider(begin, end, id, score + scores_[static_cast<size_t>(id)]);
      has_character = has_character || end == next;
    }
    if (!has_character) {
      if (unk_ < 0) {
        throw DataError(fmt::format("Unigram: '{}' is no token, and there is no unk_id",
                                    excerpt(piece.substr(begin, next - begin), 8)));
      }
      consider(begin, next, static_cast<int32_t>(unk_), score + unk_score_);
    }
    begin = next;
  }
  return cuts;
}

/// Text that became unk: it may be a token that the best way cannot use.
void Unigram::append_unknown(std::string_view piece, size_t begin, size_t end,
                             std::vector<SubwordToken>& tokens) const {
  const auto text = piece.substr(begin, end - begin);
  if (const int64_t id = vocabulary_.find(text); id >= 0) return tokens.push_back({id, begin, end});
  const auto byte_id = [&](char byte) { return byte_ids_[static_cast<unsigned char>(byte)]; };
  if (byte_fallback_ && std::ranges::all_of(text, [&](char byte) { return byte_id(byte) >= 0; })) {
    for (const char byte : text) tokens.push_back({byte_id(byte), begin, end});
    return;
  }
  tokens.push_back({unk_, begin, end});
}

void Unigram::append_tokens(std::string_view piece, std::vector<SubwordToken>& tokens) const {
  if (piece.size() >= Cut::none) throw DataError("Unigram: a piece of 4 GiB");
  const auto cuts = best_cuts(piece);
  // From the end to the beginning, then the other way round.
  std::vector<size_t> ends;
  for (size_t end = piece.size(); end > 0; end = cuts[end].begin) ends.push_back(end);
  size_t unk_begin = 0, begin = 0;
  bool in_unk = false;
  for (auto end = ends.rbegin(); end != ends.rend(); begin = *end++) {
    if (cuts[*end].id == unk_) {
      if (!in_unk) unk_begin = begin;
      in_unk = true;
      continue;
    }
    if (in_unk) append_unknown(piece, unk_begin, begin, tokens);
    in_unk = false;
    tokens.push_back({cuts[*end].id, begin, *end});
  }
  if (in_unk) append_unknown(piece, unk_begin, piece.size(), tokens);
}

}  // namespace zoo
