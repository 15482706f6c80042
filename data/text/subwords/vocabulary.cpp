#include "data/text/subwords/vocabulary.h"

#include <algorithm>

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

}  // namespace zoo
