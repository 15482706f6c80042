#pragma once
// What a pickle of PyTorch holds, as plain data: no object of Python's is ever made, and nothing is called.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <torch/types.h>

namespace zoo {

/// A type of numbers, as PyTorch names it.
struct PickledType {
  std::string_view name;     // "float32"
  std::string_view storage;  // "FloatStorage"; empty if it has none
  size_t item_size;
  std::optional<torch::ScalarType> type;  // nothing: not supported here
};

/// Numbers in a row, which tensors look at.
struct PickledStorage {
  std::string key;  // its name in the file
  const PickledType* type;
  uint64_t n_items;         // of a part of a storage: of the part
  uint64_t first_item = 0;  // of a part: where it begins (PyTorch 0.4 and older)
};

struct PickledTensor {
  size_t storage;  // index into PickleValues::storages
  const PickledType* type;
  uint64_t offset;  // in items of its type
  std::vector<int64_t> shape, strides;
  bool is_negative = false;  // its numbers are those of the storage with the other sign
};

/// Index into PickleValues::values.
using ValueId = uint32_t;

/// `real` is a number with a fraction; `large` an integer beyond int64, as its bytes; `object` a namespace of
/// Python's, which has the form of a dict.
enum class PickleKind : uint8_t {
  none,
  boolean,
  integer,
  real,
  large,
  text,
  list,
  tuple,
  dict,
  object,
  global,
  storage,
  tensor
};

struct PickleValue {
  PickleKind kind = PickleKind::none;
  /// Numbers (storages and tensors: an index), texts and names, elements; of a dict keys and values in turn.
  std::variant<std::monostate, bool, int64_t, double, std::string, std::vector<ValueId>> content = {};

  const std::string& text() const { return std::get<std::string>(content); }
  int64_t integer() const { return std::get<int64_t>(content); }
  const std::vector<ValueId>& elements() const { return std::get<std::vector<ValueId>>(content); }
  std::vector<ValueId>& elements() { return std::get<std::vector<ValueId>>(content); }
};

/// Values refer to one another, maybe in circles.
struct PickleValues {
  std::vector<PickleValue> values;
  std::vector<PickledStorage> storages;
  std::vector<PickledTensor> tensors;

  const PickleValue& operator[](ValueId id) const { return values[id]; }
  bool is(ValueId id, PickleKind kind) const { return values[id].kind == kind; }
  ValueId add(PickleValue value) {
    values.push_back(std::move(value));
    return static_cast<ValueId>(values.size() - 1);
  }
};

/// The items of a dict or a namespace whose keys are texts; of equal keys the last one. Empty for other
/// values.
std::map<std::string, ValueId> text_items(const PickleValues& values, ValueId id);

/// The type with this name of torch or of its storages; null if it is not known.
const PickledType* find_pickled_type(std::string_view name);
const PickledType* find_type_of_storage(std::string_view storage);

}  // namespace zoo
