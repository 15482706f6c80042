#pragma once
// The dotted key of a field, for visitors that go through groups.

#include <string>
#include <vector>

#include "io/config/describe.h"

namespace zoo {

class KeyPath {
 public:
  /// "training.optimizer.lr"
  std::string of(const FieldInfo& field) const { return prefix_ + std::string(field.key); }
  void enter(const FieldInfo& group) {
    starts_.push_back(prefix_.size());
    prefix_.append(group.key).push_back('.');
  }
  void leave() {
    prefix_.resize(starts_.back());
    starts_.pop_back();
  }

 private:
  std::string prefix_;          // of the open groups
  std::vector<size_t> starts_;  // where the part of each begins
};

}  // namespace zoo
