#include "layers/weights/cost.h"

#include <utility>

namespace zoo {

void CostAccount::add(CostEntry entry) {
  flops_ += entry.flops;
  if (is_detailed()) entries_.push_back(std::move(entry));
}

std::string CostAccount::path(std::string_view parent, std::string_view name) const {
  return text("{}{}{}", parent, parent.empty() ? "" : ".", name);
}

std::string CostAccount::path(std::string_view parent, std::string_view name, int64_t index) const {
  return text("{}.{}.{}", parent, name, index);
}

}  // namespace zoo
