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

}  // namespace zoo
