#pragma once
// Byte-pair encoding (Sennrich et al. 2016, https://arxiv.org/abs/1508.07909): a piece begins as characters,
// and the pair of neighbours that comes first in the list of merges becomes one token, again and again.

#include <optional>
#include <string>

#include "tokenizers/subwords/subword_model.h"

namespace zoo {

/// The merge of two tokens that stand next to each other.
struct BpeMerge {
  int32_t rank = 0, id = 0;  // the smallest rank comes first; id: of the token that they become
};

/// From pairs of ids to merges: open addressing, because this look-up takes most of the time.
class BpeMerges {
 public:
  void reserve(size_t n);
  /// A pair that is there already gets the new merge.
  void set(int32_t left, int32_t right, BpeMerge merge);
  const BpeMerge* find(int32_t left, int32_t right) const;

 private:
  struct Slot {
    uint64_t pair = free_slot;
    BpeMerge merge;
  };
  static constexpr uint64_t free_slot = ~uint64_t{0};
  static uint64_t key(int32_t left, int32_t right) {
    return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
  }
  size_t place(uint64_t pair) const;

  std::vector<Slot> slots_;
};

class Bpe final : public SubwordModel {
 public:
  explicit Bpe(const nlohmann::json& part);

  void append_tokens(std::string_view piece, std::vector<SubwordToken>& tokens) const override;
  const SubwordVocabulary& vocabulary() const override { return vocabulary_; }
  bool keeps_text() const override { return keeps_text_; }

 private:
  struct Symbol;
  void read_merges(const nlohmann::json& merges);
  std::vector<Symbol> symbols_of(std::string_view piece) const;
  void merge_short(std::vector<Symbol>& symbols) const;
  void merge_long(std::vector<Symbol>& symbols) const;

  SubwordVocabulary vocabulary_;
  BpeMerges merges_;
  std::vector<int32_t> byte_ids_;  // of <0x00> … <0xFF>, with byte_fallback only
  std::string prefix_, suffix_;    // of characters that do not begin, or that end, a piece
  int32_t unk_ = -1;
  bool byte_fallback_, fuse_unk_, ignore_merges_, keeps_text_ = false;
};

}  // namespace zoo
