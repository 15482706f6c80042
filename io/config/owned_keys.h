#pragma once
// Keys that belong to some tasks or model families only (ConfigVisitor::only_for).

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "io/config/config_file.h"
#include "io/config/registry.h"

namespace zoo {

/// The types that a configuration selects.
class SelectedTypes {
 public:
  void note(const TypeList& types, const Selection& selection);
  /// Whether a key belongs to one of them. A type that a program has added may use every key.
  bool own(const FieldInfo& field) const;

 private:
  std::set<std::string, std::less<>> names_;
  bool has_added_ = false;
};

namespace detail {
std::unique_ptr<ConfigVisitor> make_owner_check(const ConfigFile& file,
                                                std::function<bool(const std::string& key)> changes);
}

/// Complains about keys that a file that a person has written, or `--set`, gives although the types that the
/// configuration selects do not use them. Files that it extends may have such keys, and so may complete
/// configurations of runs that are older than this check. A key that has its default changes nothing, so it
/// may be there, too; `changes` says whether a key (dotted) has another value. Throws ConfigError.
template <class Config>
void check_owned_keys(const ConfigFile& file, Config config,
                      std::function<bool(const std::string& key)> changes) {
  describe(*detail::make_owner_check(file, std::move(changes)), config);
}

}  // namespace zoo
