#include "tokenizers/hub/added_tokens.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "tokenizers/subwords/specification.h"
#include "tokenizers/subwords/vocabulary.h"
#include "tokenizers/unicode/characters.h"

namespace zoo {
namespace {

/// The start of the blanks that `text` ends with.
size_t blanks_at_end(std::string_view text) {
  size_t end = text.size();
  for (size_t before = end; end > 0; end = before) {
    if (!is_white_space(previous_code_point(text, before))) break;
  }
  return end;
}

/// The end of the blanks that `text` begins with.
size_t blanks_at_start(std::string_view text) {
  size_t at = 0;
  for (size_t next = 0; at < text.size(); at = next) {
    if (!is_white_space(next_code_point(text, next))) break;
  }
  return at;
}

/// Whether what is left of the text does not begin where it began, to tokenizers, which then takes no piece
/// of it for the first one.
bool loses_start(std::string_view text, const std::optional<Normalizer>& normalizer) {
  if (!normalizer || text.empty()) return false;
  size_t end = 0;
  next_code_point(text, end);
  AlignedText first(std::string(text.substr(0, end)), Alignment::dropped);
  normalizer->apply(first);
  if (first.size() > 0) return false;
  AlignedText whole{std::string(text), Alignment::kept};
  normalizer->apply(whole);
  return whole.size() == 0 || whole.origin({0, 1}).begin > 0;
}

bool ends_with_word(std::string_view text) {
  size_t end = text.size();
  return end > 0 && is_word_character(previous_code_point(text, end));
}

bool starts_with_word(std::string_view text) {
  size_t at = 0;
  return !text.empty() && is_word_character(next_code_point(text, at));
}

}  // namespace

AddedToken added_token(const nlohmann::json& part) {
  const bool special = option(part, "special", false);
  return {.content = part.at("content").get<std::string>(),
          .single_word = option(part, "single_word", false),
          .lstrip = option(part, "lstrip", false),
          .rstrip = option(part, "rstrip", false),
          .normalized = option(part, "normalized", !special),
          .special = special};
}

// ---- finding

void TokenFinder::add(std::string_view content, int64_t id) {
  if (content.empty()) return;
  begins_token_[static_cast<unsigned char>(content.front())] = true;
  uint32_t node = 0;
  for (const char byte : content) {
    const uint64_t key = uint64_t{node} << 8 | static_cast<unsigned char>(byte);
    const auto [found, is_new] = next_nodes_.emplace(key, static_cast<uint32_t>(ids_.size()));
    if (is_new) ids_.push_back(-1);
    node = found->second;
  }
  ids_[node] = id;
}

std::optional<TokenFinder::Match> TokenFinder::find(std::string_view text, size_t from) const {
  if (next_nodes_.empty()) return std::nullopt;
  for (size_t begin = from; begin < text.size(); ++begin) {
    if (!begins_token_[static_cast<unsigned char>(text[begin])]) continue;
    std::optional<Match> longest;
    uint32_t node = 0;
    for (size_t at = begin; at < text.size(); ++at) {
      const auto found = next_nodes_.find(uint64_t{node} << 8 | static_cast<unsigned char>(text[at]));
      if (found == next_nodes_.end()) break;
      node = found->second;
      if (ids_[node] >= 0) longest = Match{begin, at + 1, ids_[node]};
    }
    if (longest) return longest;
  }
  return std::nullopt;
}

// ---- the tokens

void AddedTokens::add(const AddedToken& token, int64_t id, int64_t model_size) {
  if (token.content.empty() || contains(token)) return;
  if (id < 0) id = find(token.content);
  if (id < 0) id = std::max(id_end(), model_size);
  constexpr size_t most_bytes = size_t{4} << 20;
  n_bytes_ += token.content.size();
  if (id >= kMostTokenIds || n_bytes_ > most_bytes)
    throw DataError("the vocabulary has too many added tokens");
  ids_[token.content] = id;
  tokens_[id] = token;
  reach_over_blanks_ = reach_over_blanks_ || token.content.find(' ') != token.content.npos ||
                       (token.rstrip && ends_with_word(token.content));
  if (token.special) special_.insert(token.content);
}

void AddedTokens::index(const std::optional<Normalizer>& normalizer, SpecialTexts special_texts) {
  special_texts_ = special_texts;
  raw_ = {};
  normalized_ = {};
  for (const auto& [id, token] : tokens_) {
    if (!token.normalized) {
      raw_.add(token.content, id);
      continue;
    }
    AlignedText content(token.content, Alignment::dropped);
    if (normalizer) normalizer->apply(content);
    normalized_.add(content.text(), id);
  }
}

/// Calls use(id, part): id = -1 for text between tokens.
template <class Use>
void AddedTokens::split_by(const TokenFinder& finder, std::span<const int64_t> also, std::string_view text,
                           const Use& use) const {
  size_t done = 0, from = 0;
  while (const auto match = finder.find(text, from)) {
    auto [begin, end, id] = *match;
    from = end;
    if (!finds(id) && std::ranges::find(also, id) == also.end()) continue;
    const AddedToken& token = tokens_.at(id);
    if (token.single_word && (ends_with_word(text.substr(0, begin)) || starts_with_word(text.substr(end))))
      continue;
    // Blanks that the token before took may be this token, or a part of it, too.
    if (token.lstrip) begin = std::max(blanks_at_end(text.substr(0, begin)), done);
    if (begin > end) continue;  // all of it was taken; tokenizers ends the program here
    if (token.rstrip) end += blanks_at_start(text.substr(end));
    if (begin > done) use(int64_t{-1}, text.substr(done, begin - done));
    use(id, text.substr(begin, end - begin));
    done = end;
  }
  if (done < text.size()) use(int64_t{-1}, text.substr(done));
}

std::vector<TextSegment> AddedTokens::split(std::string_view text,
                                            const std::optional<Normalizer>& normalizer, Alignment alignment,
                                            std::span<const int64_t> also) const {
  std::vector<TextSegment> segments;
  split_by(raw_, also, text, [&](int64_t id, std::string_view part) {
    const bool is_first = part.data() == text.data();
    AlignedText changed(std::string(part), alignment, static_cast<size_t>(part.data() - text.data()));
    if (id >= 0) {
      segments.push_back({.id = id, .text = std::move(changed), .is_first = is_first});
      return;
    }
    if (normalizer) normalizer->apply(changed);
    const bool keeps_start = !loses_start(part, normalizer);
    const char* const start = changed.text().data();
    split_by(normalized_, also, changed.text(), [&](int64_t inner, std::string_view piece) {
      const bool is_start = piece.data() == start;
      const auto begin = static_cast<size_t>(piece.data() - start);
      const bool is_all = piece.size() == changed.size();
      segments.push_back({.id = inner,
                          .text = is_all ? changed : changed.part({begin, begin + piece.size()}),
                          .is_first = is_first && keeps_start && is_start});
    });
  });
  return segments;
}

int64_t AddedTokens::find(std::string_view content) const {
  const auto found = ids_.find(content);
  return found == ids_.end() ? -1 : found->second;
}

const AddedToken* AddedTokens::token(int64_t id) const {
  const auto found = tokens_.find(id);
  return found == tokens_.end() ? nullptr : &found->second;
}

bool AddedTokens::finds(int64_t id) const {
  const auto* const known = token(id);
  return known && (special_texts_ == SpecialTexts::tokens || !is_special(known->content));
}

bool AddedTokens::contains(const AddedToken& wanted) const {
  const auto* const known = token(find(wanted.content));
  return known && *known == wanted;
}

}  // namespace zoo
