#pragma once

#include <optional>
#include <string_view>

namespace zoo {

/// The key (dotted) that other programs call `name`: "training.optimizer.lr" for learning_rate. For messages.
std::optional<std::string_view> key_called(std::string_view name);

}  // namespace zoo
