#include "io/formats/pickle_calls.h"

#include <algorithm>
#include <array>
#include <limits>

namespace zoo {
namespace {

constexpr size_t kMostRank = 64;                 // torch's own limit for most operations
constexpr size_t kMostPickledTensors = 1 << 18;  // the largest models have 1 << 17
constexpr size_t kLongestKey = 100;              // the name of a storage in a file

/// What a name stands for.
enum class Callee {
  dictionary,      // OrderedDict(), OrderedDict([(key, value), …]), defaultdict(type)
  name_space,      // argparse.Namespace(), whose attributes follow
  made_object,     // copyreg._reconstructor(class, object, None): an object of the class
  same,            // a list, a text: the first argument says all
  tensor,          // _rebuild_tensor(storage, offset, shape, strides)
  typed_tensor,    // _rebuild_tensor_v3(…, its type)
  parameter,       // _rebuild_parameter(tensor, …)
  derived_tensor,  // _rebuild_from_type_v2(function, class, arguments, attributes)
  nothing,         // a name that may stand as a value, such as a type
};

struct KnownGlobal {
  std::string_view name;
  Callee callee;
};

constexpr auto kGlobals = std::to_array<KnownGlobal>({
    {"collections.OrderedDict", Callee::dictionary},
    {"collections.defaultdict", Callee::dictionary},
    {"argparse.Namespace", Callee::name_space},
    {"types.SimpleNamespace", Callee::name_space},
    {"copyreg._reconstructor", Callee::made_object},
    {"copy_reg._reconstructor", Callee::made_object},
    {"torch.Size", Callee::same},
    {"torch.device", Callee::same},
    {"_codecs.encode", Callee::same},
    {"builtins.set", Callee::same},
    {"builtins.frozenset", Callee::same},
    {"builtins.list", Callee::same},
    {"builtins.tuple", Callee::same},
    {"builtins.bytearray", Callee::same},
    {"__builtin__.set", Callee::same},
    {"__builtin__.frozenset", Callee::same},
    {"__builtin__.list", Callee::same},
    {"__builtin__.tuple", Callee::same},
    {"__builtin__.bytearray", Callee::same},
    {"builtins.dict", Callee::nothing},
    {"builtins.int", Callee::nothing},
    {"builtins.float", Callee::nothing},
    {"builtins.object", Callee::nothing},
    {"__builtin__.dict", Callee::nothing},
    {"__builtin__.int", Callee::nothing},
    {"__builtin__.float", Callee::nothing},
    {"__builtin__.object", Callee::nothing},
    {"torch._utils._rebuild_tensor", Callee::tensor},
    {"torch._utils._rebuild_tensor_v2", Callee::tensor},
    {"torch._utils._rebuild_tensor_v3", Callee::typed_tensor},
    {"torch._utils._rebuild_parameter", Callee::parameter},
    {"torch._utils._rebuild_parameter_with_state", Callee::parameter},
    {"torch._tensor._rebuild_from_type_v2", Callee::derived_tensor},
    {"torch.Tensor", Callee::nothing},
    {"torch.nn.parameter.Parameter", Callee::nothing},
});

const KnownGlobal* find_global(std::string_view name) {
  const auto* const found = std::ranges::find(kGlobals, name, &KnownGlobal::name);
  return found == kGlobals.end() ? nullptr : found;
}

/// The storage's type for the name of its class; null if it is none.
const PickledType* type_of_class(std::string_view name) {
  if (name == "torch.storage.UntypedStorage" || name == "torch.UntypedStorage")
    return find_pickled_type("uint8");
  for (const std::string_view module : {"torch.cuda.", "torch."}) {
    if (name.starts_with(module)) return find_type_of_storage(name.substr(module.size()));
  }
  return nullptr;
}

const PickledType* type_of_name(std::string_view name) {
  constexpr std::string_view module = "torch.";
  return name.starts_with(module) ? find_pickled_type(name.substr(module.size())) : nullptr;
}

bool is_list(const PickleValues& values, ValueId id) {
  return values.is(id, PickleKind::list) || values.is(id, PickleKind::tuple);
}

/// The numbers of a list, none of them negative; nothing if it is something else.
std::optional<std::vector<int64_t>> sizes_of(const PickleValues& values, ValueId id) {
  if (!is_list(values, id) || values[id].elements().size() > kMostRank) return std::nullopt;
  std::vector<int64_t> sizes;
  for (const auto element : values[id].elements()) {
    if (!values.is(element, PickleKind::integer) || values[element].integer() < 0) return std::nullopt;
    sizes.push_back(values[element].integer());
  }
  return sizes;
}

std::optional<uint64_t> size_of(const PickleValues& values, ValueId id) {
  if (!values.is(id, PickleKind::integer) || values[id].integer() < 0) return std::nullopt;
  return static_cast<uint64_t>(values[id].integer());
}

std::optional<ValueId> made_dictionary(PickleValues& values, const std::vector<ValueId>& arguments) {
  std::vector<ValueId> items;
  if (!arguments.empty() && is_list(values, arguments[0])) {
    for (const auto pair : values[arguments[0]].elements()) {
      if (!is_list(values, pair) || values[pair].elements().size() != 2) return std::nullopt;
      items.insert(items.end(), values[pair].elements().begin(), values[pair].elements().end());
    }
  } else if (!arguments.empty() && !values.is(arguments[0], PickleKind::global) &&
             !values.is(arguments[0], PickleKind::none)) {
    return std::nullopt;
  }
  return values.add({PickleKind::dict, std::move(items)});
}

/// Whether a tensor is stored with the other sign: the dict of what torch keeps beside it says so. `place`:
/// of the dict among the arguments, which may end before. Nothing for a dict that is not understood.
std::optional<bool> is_negated(const PickleValues& values, const std::vector<ValueId>& arguments,
                               size_t place) {
  if (arguments.size() <= place || values.is(arguments[place], PickleKind::none)) return false;
  if (!values.is(arguments[place], PickleKind::dict)) return std::nullopt;
  bool is_negative = false;
  const auto& items = values[arguments[place]].elements();
  for (size_t i = 0; i + 1 < items.size(); i += 2) {
    if (!values.is(items[i], PickleKind::text) || !values.is(items[i + 1], PickleKind::boolean))
      return std::nullopt;
    const auto& name = values[items[i]].text();
    const bool is_set = std::get<bool>(values[items[i + 1]].content);
    if (name == "neg") is_negative = is_set;
    // Complex numbers are not read.
    if (name != "neg" && name != "conj" && is_set) return std::nullopt;
  }
  return is_negative;
}

/// `type`: null stands for the storage's. `place_of_marks`: see is_negated().
std::optional<ValueId> made_tensor(PickleValues& values, const std::vector<ValueId>& arguments,
                                   const PickledType* type, size_t place_of_marks) {
  constexpr size_t n_needed = 4;
  if (arguments.size() < n_needed || !values.is(arguments[0], PickleKind::storage)) return std::nullopt;
  const auto storage = static_cast<size_t>(values[arguments[0]].integer());
  const auto offset = size_of(values, arguments[1]);
  auto shape = sizes_of(values, arguments[2]), strides = sizes_of(values, arguments[3]);
  const auto is_negative = is_negated(values, arguments, place_of_marks);
  const bool is_good = offset && shape && strides && is_negative && shape->size() == strides->size();
  if (!is_good || values.tensors.size() >= kMostPickledTensors) return std::nullopt;
  values.tensors.push_back({.storage = storage,
                            .type = type ? type : values.storages[storage].type,
                            .offset = *offset,
                            .shape = *std::move(shape),
                            .strides = *std::move(strides),
                            .is_negative = *is_negative});
  return values.add({PickleKind::tensor, static_cast<int64_t>(values.tensors.size() - 1)});
}

}  // namespace

bool is_known_global(std::string_view name) {
  return find_global(name) || type_of_class(name) || type_of_name(name);
}

std::optional<ValueId> called(PickleValues& values, ValueId callee, ValueId arguments_id) {
  if (!values.is(callee, PickleKind::global) || !values.is(arguments_id, PickleKind::tuple))
    return std::nullopt;
  const auto* const global = find_global(values[callee].text());
  if (!global) return std::nullopt;
  // Values move when one is added.
  const auto arguments = values[arguments_id].elements();
  const auto is_object_of = [&](size_t i, Callee kind) {
    const auto* const found = i < arguments.size() && values.is(arguments[i], PickleKind::global)
                                  ? find_global(values[arguments[i]].text())
                                  : nullptr;
    return found && found->callee == kind;
  };
  switch (global->callee) {
    case Callee::dictionary:
      return made_dictionary(values, arguments);
    case Callee::made_object:
      if (!is_object_of(0, Callee::name_space)) return std::nullopt;
      return values.add({PickleKind::object, std::vector<ValueId>{}});
    case Callee::name_space:
      if (!arguments.empty()) return std::nullopt;
      return values.add({PickleKind::object, std::vector<ValueId>{}});
    case Callee::same:
      if (arguments.empty()) return values.add({PickleKind::list, std::vector<ValueId>{}});
      if (!is_list(values, arguments[0]) && !values.is(arguments[0], PickleKind::text)) return std::nullopt;
      return arguments[0];
    case Callee::tensor:
      return made_tensor(values, arguments, nullptr, 6);
    case Callee::typed_tensor: {
      constexpr size_t place_of_type = 6;
      if (arguments.size() <= place_of_type || !values.is(arguments[place_of_type], PickleKind::global))
        return std::nullopt;
      const auto* const type = type_of_name(values[arguments[place_of_type]].text());
      return type ? made_tensor(values, arguments, type, place_of_type + 1) : std::nullopt;
    }
    case Callee::parameter:
      if (arguments.empty() || !values.is(arguments[0], PickleKind::tensor)) return std::nullopt;
      return arguments[0];
    case Callee::derived_tensor: {
      constexpr size_t n_needed = 3;
      const bool is_known = arguments.size() >= n_needed &&
                            (is_object_of(0, Callee::tensor) || is_object_of(0, Callee::typed_tensor) ||
                             is_object_of(0, Callee::parameter)) &&
                            is_object_of(1, Callee::nothing);
      return is_known ? called(values, arguments[0], arguments[2]) : std::nullopt;
    }
    case Callee::nothing:
      return std::nullopt;
  }
  return std::nullopt;
}

std::optional<ValueId> persistent_storage(PickleValues& values, ValueId id) {
  constexpr size_t n_needed = 5;
  if (!values.is(id, PickleKind::tuple) || values[id].elements().size() < n_needed) return std::nullopt;
  const auto& parts = values[id].elements();
  const bool is_good = values.is(parts[0], PickleKind::text) && values[parts[0]].text() == "storage" &&
                       values.is(parts[1], PickleKind::global) && values.is(parts[2], PickleKind::text);
  const auto n_items = size_of(values, parts[4]);
  const auto* const type = is_good ? type_of_class(values[parts[1]].text()) : nullptr;
  if (!type || !n_items || values[parts[2]].text().size() > kLongestKey) return std::nullopt;
  PickledStorage storage{.key = values[parts[2]].text(), .type = type, .n_items = *n_items};
  if (parts.size() > n_needed && !values.is(parts[n_needed], PickleKind::none)) {
    constexpr size_t n_parts = 3;  // its name, where it begins, how long it is
    const auto view = parts[n_needed];
    if (!is_list(values, view) || values[view].elements().size() != n_parts) return std::nullopt;
    const auto first = size_of(values, values[view].elements()[1]),
               size = size_of(values, values[view].elements()[2]);
    // The whole storage has n_items.
    if (!first || !size || *first > *n_items || *size > *n_items - *first) return std::nullopt;
    storage.first_item = *first;
    storage.n_items = *size;
  }
  values.storages.push_back(std::move(storage));
  return values.add({PickleKind::storage, static_cast<int64_t>(values.storages.size() - 1)});
}

}  // namespace zoo
