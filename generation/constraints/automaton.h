#pragma once
// A finite automaton that reads bytes.

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "generation/constraints/expression.h"

namespace zoo {

/// The texts of an Expression in UTF-8. The nondeterministic automaton (Thompson 1968) is built at once; the
/// states of the deterministic one are made when they are reached. States from which no text can end are left
/// out, so a state that is not kDead can always go on to a text of the expression.
class Automaton {
 public:
  using State = int32_t;
  static constexpr State kDead = -1;
  /// The most states of the nondeterministic automaton, and the most of them that are looked at for one
  /// deterministic state.
  static constexpr size_t kMostStates = 200'000, kMostTogether = 20'000;
  /// The most entries, of four bytes, that the deterministic states may have.
  static constexpr size_t kMostEntries = size_t{8} << 20;

  /// Only texts of characters in `alphabet` count. Throws DataError if the automaton has too many states, or
  /// if too many repetitions lead to few of them.
  Automaton(const Expression& expression, const CodePoints& alphabet);

  /// kDead if there is no text in the language. Like next(), throws DataError if the deterministic states
  /// become too many.
  State start();
  State next(State state, uint8_t byte);
  bool accepts(State state) const { return states_[static_cast<size_t>(state)].accepts; }
  /// The entries of the deterministic states that are made so far.
  size_t n_entries() const { return n_entries_; }
  /// The work so far, as WorkLimit counts it.
  int64_t n_steps() const { return n_steps_; }
  /// Forgets the deterministic states.
  void forget();

 private:
  struct Edge {
    ByteRange bytes;
    int32_t to;
  };
  struct Node {
    std::vector<Edge> edges;
    std::vector<int32_t> same;  // nodes that are reached without a byte
  };
  struct Deterministic {
    std::vector<int32_t> nodes;  // those with edges, and the last one
    std::vector<State> next;     // by class of bytes
    bool accepts;
  };
  static constexpr State kUnknown = -2;
  static constexpr int32_t kEnd = 0;  // the node at which a text is complete

  using ByteRanges = std::vector<std::vector<ByteRange>>;

  int32_t add_node();
  int32_t add(const Expression& expression, int32_t to);
  const ByteRanges& bytes_of(const Expression& characters);
  int32_t add_characters(const ByteRanges& lists, int32_t to);
  int32_t add_repetition(const Expression& expression, int32_t to);
  void drop_dead_ends();
  void find_byte_classes();
  State state_of(std::vector<int32_t> nodes);

  CodePoints alphabet_;
  std::map<const Expression*, ByteRanges> bytes_;  // while nodes are added: of parts that are repeated
  std::vector<Node> nodes_;
  int32_t first_ = 0;
  bool is_empty_ = false;
  std::array<uint8_t, 256> class_of_{};  // bytes of a class lead to the same nodes everywhere
  size_t n_classes_ = 0;
  std::vector<Deterministic> states_;
  size_t n_entries_ = 0;
  int64_t n_steps_ = 0;
  std::vector<uint64_t> seen_;  // by node, the number of the deterministic state for which it was looked at
  uint64_t n_made_ = 0;
  std::map<std::vector<int32_t>, State> known_;
};

}  // namespace zoo
