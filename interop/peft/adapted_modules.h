#pragma once
// Which modules of a base have adapters, as adapter_config.json of PEFT says it.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "interop/families/foreign_config.h"
#include "tokenizers/unicode/pattern.h"

namespace zoo {

/// peft.tuners.tuners_utils.check_target_module_exists (0.21), for modules by the base's names, such as
/// "model.layers.0.self_attn.q_proj".
class AdaptedModules {
 public:
  /// All modules.
  AdaptedModules() = default;
  /// Reads target_modules, exclude_modules, modules_to_save, layers_to_transform and layers_pattern. Throws
  /// CheckpointError.
  explicit AdaptedModules(ForeignConfig& from);

  bool contains(const std::string& module) const;

 private:
  /// Names of modules and their ends, or an expression for the whole name.
  struct Choice {
    std::vector<std::string> ends;
    std::shared_ptr<const Pattern> expression = nullptr;
    bool contains(const std::string& module) const;
  };
  static std::optional<Choice> read(ForeignConfig& from, std::string_view key);
  bool has_layer_of(std::string_view module) const;

  std::optional<Choice> target_, excluded_;
  std::vector<std::string> saved_;            // whole modules
  std::vector<int64_t> layers_;               // none: all
  std::vector<std::string> names_of_layers_;  // what stands before the number; none: any
};

}  // namespace zoo
