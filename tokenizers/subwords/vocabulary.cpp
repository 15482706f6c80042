#include "tokenizers/subwords/vocabulary.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace zoo {

SubwordVocabulary::SubwordVocabulary(const nlohmann::json& vocab) {
  if (!vocab.is_object()) throw DataError("the vocabulary is not an object in JSON");
  ids_.reserve(vocab.size());
  tokens_.reserve(vocab.size());
  for (const auto& [token, value] : vocab.items()) {
    const int64_t id = value.is_number_integer() ? value.get<int64_t>() : -1;
    if (id < 0 || id >= kMostTokenIds)
      throw DataError(fmt::format("the id of the token '{}' is no number from 0 to {}", excerpt(token, 40),
                                  kMostTokenIds - 1));
    if (id >= id_end()) tokens_.resize(static_cast<size_t>(id) + 1);
    auto& place = tokens_[static_cast<size_t>(id)];
    if (place.data()) {
      throw DataError(fmt::format("the tokens '{}' and '{}' have the same id {}", excerpt(place, 40),
                                  excerpt(token, 40), id));
    }
    place = texts_.emplace_back(token);
    ids_.emplace(place, id);
    longest_ = std::max(longest_, token.size());
  }
}

void SubwordVocabulary::append(std::string_view token) {
  if (id_end() >= kMostTokenIds) throw DataError("the vocabulary has too many tokens");
  const std::string_view text = texts_.emplace_back(token);
  ids_[text] = id_end();
  tokens_.push_back(text);
  longest_ = std::max(longest_, token.size());
}

void TokenTrie::grow() {
  auto old = std::exchange(edges_, std::vector<Edge>(std::max<size_t>(64, 4 * edges_.size())));
  for (const Edge& edge : old) {
    if (edge.key != free_edge) edges_[place(edge.key)] = edge;
  }
}

void TokenTrie::add(std::string_view text, int32_t id) {
  if (text.empty()) return;
  uint32_t node = root;
  for (const char byte : text) {
    if (2 * (n_edges_ + 1) > edges_.size()) grow();
    Edge& edge = edges_[place(key(node, byte))];
    if (edge.key == free_edge) {
      edge = {key(node, byte), static_cast<uint32_t>(ids_.size())};
      ids_.push_back(-1);
      ++n_edges_;
    }
    node = edge.to;
  }
  ids_[node] = id;
}

}  // namespace zoo
