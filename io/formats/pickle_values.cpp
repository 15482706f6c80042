#include "io/formats/pickle_values.h"

#include <algorithm>
#include <array>

namespace zoo {
namespace {

constexpr auto kTypes = std::to_array<PickledType>({
    {"float64", "DoubleStorage", 8, torch::kFloat64},
    {"float32", "FloatStorage", 4, torch::kFloat32},
    {"float16", "HalfStorage", 2, torch::kFloat16},
    {"bfloat16", "BFloat16Storage", 2, torch::kBFloat16},
    {"int64", "LongStorage", 8, torch::kInt64},
    {"int32", "IntStorage", 4, torch::kInt32},
    {"int16", "ShortStorage", 2, torch::kInt16},
    {"int8", "CharStorage", 1, torch::kInt8},
    {"uint8", "ByteStorage", 1, torch::kUInt8},
    {"bool", "BoolStorage", 1, torch::kBool},
    {"complex64", "ComplexFloatStorage", 8, std::nullopt},
    {"complex128", "ComplexDoubleStorage", 16, std::nullopt},
    {"float8_e4m3fn", "", 1, std::nullopt},
    {"float8_e5m2", "", 1, std::nullopt},
    {"uint16", "", 2, std::nullopt},
    {"uint32", "", 4, std::nullopt},
    {"uint64", "", 8, std::nullopt},
});

}  // namespace

const PickledType* find_pickled_type(std::string_view name) {
  const auto* const found = std::ranges::find(kTypes, name, &PickledType::name);
  return found == kTypes.end() ? nullptr : found;
}

const PickledType* find_type_of_storage(std::string_view storage) {
  if (storage.empty()) return nullptr;
  const auto* const found = std::ranges::find(kTypes, storage, &PickledType::storage);
  return found == kTypes.end() ? nullptr : found;
}

std::map<std::string, ValueId> text_items(const PickleValues& values, ValueId id) {
  std::map<std::string, ValueId> items;
  if (!values.is(id, PickleKind::dict) && !values.is(id, PickleKind::object)) return items;
  const auto& elements = values[id].elements();
  for (size_t i = 0; i + 1 < elements.size(); i += 2) {
    if (values.is(elements[i], PickleKind::text)) items[values[elements[i]].text()] = elements[i + 1];
  }
  return items;
}

}  // namespace zoo
