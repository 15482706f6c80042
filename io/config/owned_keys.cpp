#include "io/config/owned_keys.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "io/config/key_path.h"

namespace zoo {
namespace {

class OwnerCheck final : public SilentVisitor {
 public:
  OwnerCheck(const ConfigFile& file, std::function<bool(const std::string& key)> changes)
      : file_(file), changes_(std::move(changes)) {}

 protected:
  bool wants(const FieldInfo& field) override {
    const auto key = path_.of(field);
    if (!selected_.own(field) && file_.sets_itself(key) && changes_(key))
      file_.fail(key, fmt::format("is for {}: leave it out", fmt::join(field.owners, ", ")));
    return true;
  }
  void select(const FieldInfo&, const TypeList& types, Selection& value) override {
    selected_.note(types, value);
  }
  bool begin_optional(const FieldInfo&, bool) override { return true; }
  bool begin_auto(const FieldInfo&, bool) override { return false; }
  bool begin_group(const FieldInfo& field) override {
    path_.enter(field);
    return true;
  }
  void end_group() override { path_.leave(); }

 private:
  const ConfigFile& file_;
  std::function<bool(const std::string& key)> changes_;
  SelectedTypes selected_;
  KeyPath path_;
};

}  // namespace

void SelectedTypes::note(const TypeList& types, const Selection& selection) {
  names_.insert(selection.type);
  has_added_ = has_added_ || std::ranges::any_of(types.infos(), [&](const TypeInfo* info) {
                 return info->name == selection.type && info->is_added;
               });
}

bool SelectedTypes::own(const FieldInfo& field) const {
  return field.owners.empty() || has_added_ ||
         std::ranges::any_of(field.owners, [&](std::string_view owner) { return names_.contains(owner); });
}

std::unique_ptr<ConfigVisitor> detail::make_owner_check(const ConfigFile& file,
                                                        std::function<bool(const std::string& key)> changes) {
  return std::make_unique<OwnerCheck>(file, std::move(changes));
}

}  // namespace zoo
