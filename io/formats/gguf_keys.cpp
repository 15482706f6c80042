#include "io/formats/gguf_keys.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace zoo {

void GgufKeys::fail(std::string_view key, std::string_view problem) const {
  throw CheckpointError(fmt::format("{}: {}: {}", place_, key, problem));
}

const nlohmann::json& GgufKeys::value(const std::string& key) const {
  accounted_.insert(key);
  const auto found = keys_.find(key);
  if (found == keys_.end()) fail(key, "missing");
  return *found;
}

std::vector<std::string> GgufKeys::names(std::string_view prefix) const {
  std::vector<std::string> names;
  for (const auto& [name, value] : keys_.items()) {
    if (name.starts_with(prefix)) names.push_back(name);
  }
  return names;
}

int64_t GgufKeys::integer(const std::string& key) const {
  const auto& found = value(key);
  constexpr uint64_t most = uint64_t{1} << 62;
  if (!found.is_number_integer() || (found.is_number_unsigned() && found.get<uint64_t>() > most))
    fail(key, "not a whole number");
  return found.get<int64_t>();
}

double GgufKeys::number(const std::string& key) const {
  const auto& found = value(key);
  if (!found.is_number()) fail(key, "not a number");
  return found.get<double>();
}

std::string GgufKeys::text(const std::string& key) const {
  const auto& found = value(key);
  if (!found.is_string()) fail(key, "not a text");
  return checked_text(key, found.get_ref<const std::string&>());
}

const std::string& GgufKeys::checked_text(const std::string& key, const std::string& text) const {
  if (find_invalid_utf8(text)) fail(key, fmt::format("'{}' is not UTF-8", excerpt(text)));
  return text;
}

template <class Element, class Fits, class Take>
std::vector<Element> GgufKeys::list(const std::string& key, std::string_view problem, const Fits& fits,
                                    const Take& take) const {
  const auto& found = value(key);
  if (!found.is_array()) fail(key, "not a list");
  std::vector<Element> result;
  result.reserve(found.size());
  for (const auto& one : found) {
    if (!fits(one)) fail(key, problem);
    result.push_back(take(one));
  }
  return result;
}

std::vector<std::string> GgufKeys::texts(const std::string& key) const {
  return list<std::string>(
      key, "not a list of texts", [](const auto& one) { return one.is_string(); },
      [&](const auto& one) { return checked_text(key, one.template get_ref<const std::string&>()); });
}

std::vector<int64_t> GgufKeys::integers(const std::string& key) const {
  return list<int64_t>(
      key, "not a list of whole numbers", [](const auto& one) { return one.is_number_integer(); },
      [](const auto& one) { return one.template get<int64_t>(); });
}

std::vector<double> GgufKeys::numbers(const std::string& key) const {
  return list<double>(
      key, "not a list of numbers", [](const auto& one) { return one.is_number(); },
      [](const auto& one) { return one.template get<double>(); });
}

std::string GgufKeys::bytes(const std::string& key) const {
  std::string result;
  for (const int64_t value : integers(key)) {
    if (value < -128 || value > 255) fail(key, "not a list of bytes");
    result += static_cast<char>(value);
  }
  return result;
}

int64_t GgufKeys::integer(const std::string& key, int64_t otherwise) const {
  return has(key) ? integer(key) : otherwise;
}
double GgufKeys::number(const std::string& key, double otherwise) const {
  return has(key) ? number(key) : otherwise;
}
std::string GgufKeys::text(const std::string& key, const std::string& otherwise) const {
  return has(key) ? text(key) : otherwise;
}
bool GgufKeys::flag(const std::string& key, bool otherwise) const {
  if (!has(key)) return otherwise;
  const auto& found = value(key);
  if (!found.is_boolean()) fail(key, "not true or false");
  return found.get<bool>();
}

void GgufKeys::finish(const std::string& prefix) const {
  // How a program stored the model, or what it does besides computing it.
  constexpr auto harmless = std::to_array<std::string_view>({"tensor_data_layout", "pooling_type"});
  // 0: llama.cpp does without them.
  constexpr auto absent = std::to_array<std::string_view>(
      {"expert_count", "expert_used_count", "attention.clamp_kqv", "attention.max_alibi_bias",
       "attention.sliding_window", "nextn_predict_layers", "expert_group_count"});
  for (const auto& key : names(prefix)) {
    const auto name = std::string_view(key).substr(prefix.size());
    // What has positions to turn looks at their keys itself.
    if (name.starts_with("rope.") || accounted_.contains(key) ||
        std::ranges::find(harmless, name) != harmless.end())
      continue;
    if (std::ranges::find(absent, name) == absent.end()) fail(key, "this key of the model is not known");
    if (number(key) != 0) fail(key, "the architecture has this only as 0 here");
  }
}

}  // namespace zoo
