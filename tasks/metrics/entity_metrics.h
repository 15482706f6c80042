#pragma once
// Precision, recall and F1 of entities: spans of words that labels such as B-PER and I-PER mark.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace zoo {

/// Words `begin` … `end` (excluded) of a text, which are an entity of a type.
struct Entity {
  std::string_view type;
  int64_t begin = 0, end = 0;

  bool operator==(const Entity&) const = default;
};

/// The entities that labels mark in the schemes IOB1, IOB2 (BIO) and IOBES (BIOES), as seqeval (Nakayama
/// 2018) and CoNLL's conlleval find them by default: I-PER begins an entity if no PER comes before it. A
/// label without a type, such as B, has the type "_".
std::vector<Entity> entities_of(const std::vector<std::string_view>& labels);

/// Whether classes mark entities: one of them begins with B- or I-.
bool mark_entities(const std::vector<std::string>& classes);

/// Counts over all texts (micro average). An entity is found if its span and its type are right.
struct EntityCounts {
  int64_t found = 0, predicted = 0, actual = 0;

  /// Adds a text; both lists have a label for each word.
  void add(const std::vector<std::string_view>& predicted_labels,
           const std::vector<std::string_view>& actual_labels);
  double precision() const;
  double recall() const;
  double f1() const;
};

}  // namespace zoo
