#pragma once
// Tokens by text and by id.

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <nlohmann/json.hpp>

namespace zoo {

/// Ids are smaller than this: a file cannot ask for a table of any size.
constexpr int64_t kMostTokenIds = int64_t{1} << 22;

class SubwordVocabulary {
 public:
  SubwordVocabulary() = default;
  /// From an object {token: id}. Throws DataError for an id that is out of range or that two tokens have.
  explicit SubwordVocabulary(const nlohmann::json& vocab);
  /// Adds a token with the next id. Of equal tokens, find() gives the last one. Throws DataError if there are
  /// too many.
  void append(std::string_view token);
  SubwordVocabulary(SubwordVocabulary&&) = default;
  SubwordVocabulary& operator=(SubwordVocabulary&&) = default;

  /// The id of a token; -1 if there is none.
  int64_t find(std::string_view token) const {
    const auto found = ids_.find(token);
    return found == ids_.end() ? -1 : found->second;
  }
  /// The token with this id; null data if there is none. (Ids may have gaps.)
  std::string_view token(int64_t id) const {
    return id >= 0 && id < id_end() ? tokens_[static_cast<size_t>(id)] : std::string_view();
  }
  /// One more than the largest id.
  int64_t id_end() const { return std::ssize(tokens_); }
  /// Number of tokens.
  int64_t size() const { return std::ssize(ids_); }
  /// Bytes of the longest token.
  size_t longest() const { return longest_; }

 private:
  std::deque<std::string> texts_;  // what the views point to
  std::vector<std::string_view> tokens_;
  std::unordered_map<std::string_view, int64_t> ids_;
  size_t longest_ = 0;
};

/// Finds the texts that begin at a place: a tree of bytes, whose edges are in one table.
class TokenTrie {
 public:
  static constexpr uint32_t root = 0;
  static constexpr uint32_t none = ~uint32_t{0};

  /// id ≥ 0. An equal text gets the new id. Empty texts are left out.
  void add(std::string_view text, int32_t id);
  /// The node after one more byte; none if no text goes on so.
  uint32_t next(uint32_t node, char byte) const {
    if (edges_.empty()) return none;
    const Edge& edge = edges_[place(key(node, byte))];
    return edge.to;
  }
  /// The id of the text that ends at this node; -1 if none does.
  int32_t id(uint32_t node) const { return ids_[node]; }
  bool empty() const { return n_edges_ == 0; }

 private:
  struct Edge {
    uint64_t key = free_edge;
    uint32_t to = none;
  };
  static constexpr uint64_t free_edge = ~uint64_t{0};
  static uint64_t key(uint32_t node, char byte) {
    return uint64_t{node} << 8 | static_cast<unsigned char>(byte);
  }
  size_t place(uint64_t key) const {
    const size_t mask = edges_.size() - 1;
    size_t at = (key * 0x9E3779B97F4A7C15u >> 24) & mask;
    while (edges_[at].key != key && edges_[at].key != free_edge) at = (at + 1) & mask;
    return at;
  }
  void grow();

  std::vector<Edge> edges_;  // open addressing
  std::vector<int32_t> ids_ = {-1};
  size_t n_edges_ = 0;
};

}  // namespace zoo
