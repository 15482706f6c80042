#include "tokenizers/subwords/bpe.h"

#include <algorithm>
#include <bit>
#include <queue>
#include <tuple>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "tokenizers/subwords/byte_level.h"
#include "tokenizers/subwords/specification.h"
#include "tokenizers/unicode/characters.h"

namespace zoo {

// ---- merges by pairs of ids

void BpeMerges::reserve(size_t n) { slots_.resize(std::bit_ceil(2 * n + 2)); }

size_t BpeMerges::place(uint64_t pair) const {
  const size_t mask = slots_.size() - 1;
  size_t at = (pair * 0x9E3779B97F4A7C15u >> 20) & mask;
  while (slots_[at].pair != pair && slots_[at].pair != free_slot) at = (at + 1) & mask;
  return at;
}

void BpeMerges::set(int32_t left, int32_t right, BpeMerge merge) {
  const uint64_t pair = key(left, right);
  slots_[place(pair)] = {pair, merge};
}

const BpeMerge* BpeMerges::find(int32_t left, int32_t right) const {
  if (left < 0 || right < 0 || slots_.empty()) return nullptr;
  const uint64_t pair = key(left, right);
  const Slot& slot = slots_[place(pair)];
  return slot.pair == pair ? &slot.merge : nullptr;
}

// ---- the model

struct Bpe::Symbol {
  int32_t id;
  int32_t previous, next;  // -1: none
  uint32_t size;           // bytes of the piece
};

namespace {

std::pair<std::string, std::string> merged_pair(const nlohmann::json& merge) {
  if (merge.is_array()) {
    if (merge.size() != 2) throw DataError("tokenizer.json: a merge is not a pair");
    return {merge[0].get<std::string>(), merge[1].get<std::string>()};
  }
  const auto text = merge.get<std::string>();
  const size_t blank = text.find(' ');
  if (blank == text.npos || text.find(' ', blank + 1) != text.npos)
    throw DataError(fmt::format("tokenizer.json: the merge '{}' is not a pair", excerpt(text, 40)));
  return {text.substr(0, blank), text.substr(blank + 1)};
}

}  // namespace

Bpe::Bpe(const nlohmann::json& part)
    : vocabulary_(part.at("vocab")),
      prefix_(short_option(part, "continuing_subword_prefix", "")),
      suffix_(short_option(part, "end_of_word_suffix", "")),
      byte_fallback_(option(part, "byte_fallback", false)),
      fuse_unk_(option(part, "fuse_unk", false)),
      ignore_merges_(option(part, "ignore_merges", false)) {
  if (option(part, "dropout", 0.0) != 0) refuse_part("the option of BPE", "dropout");
  if (const auto unk = option(part, "unk_token", ""); !unk.empty()) {
    unk_ = static_cast<int32_t>(vocabulary_.find(unk));
    if (unk_ < 0)
      throw DataError(fmt::format("tokenizer.json: the unk_token '{}' is no token", excerpt(unk, 40)));
  }
  if (byte_fallback_) {
    for (int byte = 0; byte < 256; ++byte)
      byte_ids_.push_back(static_cast<int32_t>(vocabulary_.find(fmt::format("<0x{:02X}>", byte))));
  }
  bool has_bytes = true;
  std::string character;
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    character.clear();
    append_as_characters({&c, 1}, character);
    has_bytes = has_bytes && vocabulary_.find(character) >= 0;
  }
  keeps_text_ = has_bytes && prefix_.empty() && suffix_.empty();
  read_merges(part.at("merges"));
}

void Bpe::read_merges(const nlohmann::json& merges) {
  if (!merges.is_array()) throw DataError("tokenizer.json: the merges are not a list");
  merges_.reserve(merges.size());
  int32_t rank = 0;
  for (const auto& merge : merges) {
    const auto [left, right] = merged_pair(merge);
    if (!prefix_.empty() && !right.starts_with(prefix_))
      throw DataError(
          fmt::format("tokenizer.json: the merge with '{}' lacks the prefix", excerpt(right, 40)));
    const std::string whole = left + right.substr(prefix_.size());
    const auto ids = std::tuple(vocabulary_.find(left), vocabulary_.find(right), vocabulary_.find(whole));
    const auto [left_id, right_id, id] = ids;
    if (left_id < 0 || right_id < 0 || id < 0) {
      throw DataError(fmt::format("tokenizer.json: the merge of '{}' and '{}' uses what is no token",
                                  excerpt(left, 40), excerpt(right, 40)));
    }
    merges_.set(static_cast<int32_t>(left_id), static_cast<int32_t>(right_id),
                {rank++, static_cast<int32_t>(id)});
  }
}

/// The characters of a piece. One that is no token becomes its bytes or unk, or is left out.
std::vector<Bpe::Symbol> Bpe::symbols_of(std::string_view piece) const {
  std::vector<Symbol> symbols;
  symbols.reserve(piece.size());
  const auto add = [&](int32_t id, size_t size) {
    symbols.push_back({id, 0, 0, static_cast<uint32_t>(size)});
  };
  bool owes_unk = false;
  size_t unk_size = 0;
  std::string marked;
  for (size_t at = 0; at < piece.size();) {
    const size_t begin = at;
    next_code_point(piece, at);
    const size_t size = at - begin;
    auto character = piece.substr(begin, size);
    const bool has_prefix = begin > 0 && !prefix_.empty();
    const bool has_suffix = at == piece.size() && !suffix_.empty();
    if (has_prefix || has_suffix) {
      marked.assign(has_prefix ? prefix_ : "").append(character).append(has_suffix ? suffix_ : "");
      character = marked;
    }
    if (const auto id = vocabulary_.find(character); id >= 0) {
      if (owes_unk) add(unk_, unk_size);
      owes_unk = false;
      add(static_cast<int32_t>(id), size);
      continue;
    }
    const auto byte_id = [&](char byte) { return byte_ids_[static_cast<unsigned char>(byte)]; };
    if (byte_fallback_ && std::ranges::all_of(character, [&](char byte) { return byte_id(byte) >= 0; })) {
      // An unk that is due comes after these bytes: so it is in tokenizers.
      for (const char byte : character) add(byte_id(byte), 1);
    } else if (unk_ >= 0) {
      if (owes_unk && !fuse_unk_) add(unk_, unk_size);
      unk_size = owes_unk && fuse_unk_ ? unk_size + size : size;
      owes_unk = true;
    }
  }
  if (owes_unk) add(unk_, unk_size);
  for (size_t i = 0; i < symbols.size(); ++i) {
    symbols[i].previous = static_cast<int32_t>(i) - 1;
    symbols[i].next = i + 1 < symbols.size() ? static_cast<int32_t>(i) + 1 : -1;
  }
  return symbols;
}

/// Looks through all neighbours for each merge: fastest for words.
void Bpe::merge_short(std::vector<Symbol>& symbols) const {
  for (;;) {
    const BpeMerge* best = nullptr;
    size_t where = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const BpeMerge* const merge = merges_.find(symbols[i].id, symbols[i + 1].id);
      if (!merge || (best && best->rank <= merge->rank)) continue;
      best = merge;
      where = i;
    }
    if (!best) return;
    symbols[where].id = best->id;
    symbols[where].size += symbols[where + 1].size;
    symbols.erase(symbols.begin() + static_cast<ptrdiff_t>(where) + 1);
  }
}

/// The same with a queue of merges: n log n for pieces of any length.
void Bpe::merge_long(std::vector<Symbol>& symbols) const {
  struct Candidate {
    int32_t rank, where, id;
    bool operator>(const Candidate& other) const {
      return std::tie(rank, where) > std::tie(other.rank, other.where);
    }
  };
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates;
  const auto at = [&](int32_t i) -> Symbol& { return symbols[static_cast<size_t>(i)]; };
  const auto merge_at = [&](int32_t i) -> const BpeMerge* {
    return i < 0 || at(i).next < 0 ? nullptr : merges_.find(at(i).id, at(at(i).next).id);
  };
  const auto consider = [&](int32_t i) {
    if (const auto* merge = merge_at(i)) candidates.push({merge->rank, i, merge->id});
  };
  for (int32_t i = 0; i < std::ssize(symbols); ++i) consider(i);
  while (!candidates.empty()) {
    const Candidate next = candidates.top();
    candidates.pop();
    const auto* const merge = merge_at(next.where);
    // A symbol that was merged into another one has the id -1, which no merge has.
    if (!merge || merge->rank != next.rank) continue;
    Symbol& left = at(next.where);
    Symbol& right = at(left.next);
    left.id = next.id;
    left.size += right.size;
    left.next = right.next;
    if (right.next >= 0) at(right.next).previous = next.where;
    right = {-1, -1, -1, 0};
    consider(left.previous);
    consider(next.where);
  }
  std::erase_if(symbols, [](const Symbol& symbol) { return symbol.id < 0; });
}

void Bpe::append_tokens(std::string_view piece, std::vector<SubwordToken>& tokens) const {
  if (ignore_merges_) {
    if (const auto id = vocabulary_.find(piece); id >= 0) return tokens.push_back({id, 0, piece.size()});
  }
  constexpr size_t shortest_long = 48;
  auto symbols = symbols_of(piece);
  symbols.size() < shortest_long ? merge_short(symbols) : merge_long(symbols);
  size_t begin = 0;
  for (const auto& symbol : symbols) {
    tokens.push_back({symbol.id, begin, begin + symbol.size});
    begin += symbol.size;
  }
}

}  // namespace zoo
