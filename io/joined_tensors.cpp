#include "io/joined_tensors.h"

#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace zoo {

JoinedTensors::JoinedTensors(std::string place, std::vector<std::shared_ptr<const TensorSource>> sources)
    : place_(std::move(place)), sources_(std::move(sources)) {
  for (size_t i = 0; i < sources_.size(); ++i) {
    for (const auto& name : sources_[i]->names()) {
      if (const auto [at, is_new] = places_.emplace(name, i); !is_new) {
        throw CheckpointError(fmt::format("{}: the tensor '{}' is also in {}", sources_[i]->place(),
                                          excerpt(name), sources_[at->second]->place()));
      }
    }
  }
}

std::vector<std::string> JoinedTensors::names() const {
  std::vector<std::string> result;
  for (const auto& [name, source] : places_) result.push_back(name);
  return result;
}

const TensorSource& JoinedTensors::source_of(const std::string& name) const {
  const auto found = places_.find(name);
  if (found == places_.end())
    throw CheckpointError(fmt::format("{}: there is no tensor '{}'", place_, excerpt(name)));
  return *sources_[found->second];
}

}  // namespace zoo
