#include "io/formats/pytorch_file.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"
#include "io/formats/storage_places.h"
#include "io/formats/unpickler.h"

namespace zoo {
namespace {

/// The dict of weights in the outermost value, which is one itself or has one.
class StateDict {
 public:
  StateDict(const FileBytes& file, const PickleValues& values, ValueId top) : file_(file), values_(values) {
    if (!values.is(top, PickleKind::dict)) file.fail("it holds no dict of tensors (model.state_dict())");
    constexpr auto names = std::to_array<std::string_view>({"state_dict", "model_state_dict", "model"});
    std::string found;
    for (const auto& [name, id] : items_of(top)) {
      if (std::ranges::find(names, name) == names.end() || tensors_of(id).empty()) continue;
      if (!found.empty())
        file.fail("it holds weights under '{}' and under '{}': save those that you want alone", found, name);
      found = name;
      tensors_ = tensors_of(id);
    }
    if (found.empty()) tensors_ = tensors_of(top);
    if (!tensors_.empty()) return;
    std::vector<std::string> keys;
    for (const auto& [name, id] : items_of(top)) keys.push_back(name);
    file.fail(
        "it holds no dict of tensors (model.state_dict()), neither by itself nor as state_dict, "
        "model_state_dict or model; it has: {}",
        keys.empty() ? "nothing" : excerpt(fmt::format("{}", fmt::join(keys, ", ")), 200));
  }

  const std::map<std::string, size_t>& tensors() const { return tensors_; }

 private:
  std::map<std::string, ValueId> items_of(ValueId id) const { return text_items(values_, id); }

  std::map<std::string, size_t> tensors_of(ValueId id) const {
    std::map<std::string, size_t> tensors;
    if (!values_.is(id, PickleKind::dict)) return tensors;
    for (const auto& [name, item] : items_of(id)) {
      if (values_.is(item, PickleKind::tensor))
        tensors.emplace(name, static_cast<size_t>(values_[item].integer()));
    }
    return tensors;
  }

  const FileBytes& file_;
  const PickleValues& values_;
  std::map<std::string, size_t> tensors_;
};

/// Plain values as JSON.
class PlainValue {
 public:
  PlainValue(const FileBytes& file, const PickleValues& values) : file_(file), values_(values) {}

  nlohmann::json json(ValueId id, int depth = 0) {
    const auto& value = values_[id];
    // Values may contain themselves.
    constexpr int most_depth = 20;
    size_t size = 1;
    if (value.kind == PickleKind::text) size += value.text().size();
    if (const auto* const elements = std::get_if<std::vector<ValueId>>(&value.content))
      size += elements->size();
    n_values_ += size;
    if (depth > most_depth || n_values_ > kMostPlain) file_.fail("a value beside its weights is too large");
    switch (value.kind) {
      case PickleKind::none:
        return nullptr;
      case PickleKind::boolean:
        return std::get<bool>(value.content);
      case PickleKind::integer:
        return value.integer();
      case PickleKind::real:
        return std::get<double>(value.content);
      case PickleKind::text:
        if (find_invalid_utf8(value.text())) file_.fail("a text beside its weights is not UTF-8");
        return value.text();
      case PickleKind::list:
      case PickleKind::tuple: {
        auto list = nlohmann::json::array();
        for (const auto element : value.elements()) list.push_back(json(element, depth + 1));
        return list;
      }
      case PickleKind::dict:
      case PickleKind::object: {
        auto object = nlohmann::json::object();
        for (const auto& [name, item] : text_items(values_, id))
          object[excerpt(name)] = json(item, depth + 1);
        return object;
      }
      default:
        file_.fail("a value beside its weights is no plain one");
    }
  }

 private:
  const FileBytes& file_;
  const PickleValues& values_;
  static constexpr size_t kMostPlain = 1 << 20;  // values and bytes of texts
  size_t n_values_ = 0;
};

bool is_contiguous(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides) {
  int64_t expected = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && strides[i] != expected) return false;
    expected *= std::max<int64_t>(shape[i], 1);
  }
  return true;
}

}  // namespace

PytorchFile::PytorchFile(const std::filesystem::path& path) : file_(path) {
  StoragePlaces places(file_, values_, top_);
  const StateDict state(file_, values_, top_);
  for (const auto& [name, number] : state.tensors()) {
    const auto& tensor = values_.tensors[number];
    const auto place = places.place_of(values_.storages[tensor.storage]);
    add_entry(name, tensor, place.begin, place.size);
  }
  drop_prefixes();
}

/// `begin` and `size`: of the tensor's storage in the file.
void PytorchFile::add_entry(const std::string& name, const PickledTensor& tensor, uint64_t begin,
                            uint64_t size) {
  const auto shown = excerpt(name);
  const uint64_t item = tensor.type->item_size, n_stored = size / item;
  uint64_t n = 1, last = 0;
  bool is_empty = false;
  constexpr uint64_t most = uint64_t{1} << 62U;
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    const auto length = static_cast<uint64_t>(tensor.shape[i]),
               stride = static_cast<uint64_t>(tensor.strides[i]);
    if (length == 0) {
      is_empty = true;
      continue;
    }
    if (length > most / n || (stride != 0 && length - 1 > (most - last) / stride))
      file_.fail("damaged: the shape of '{}' overflows 64 bits", shown);
    n *= length;
    last += (length - 1) * stride;
  }
  if (tensor.offset > n_stored || (!is_empty && last >= n_stored - tensor.offset))
    file_.fail("damaged: '{}' goes past the {} bytes of its numbers", shown, size);
  // A tensor may repeat its numbers (expand()), but a small file must not become a huge tensor.
  constexpr uint64_t most_repeated = uint64_t{1} << 24U;
  if (!is_empty && n > n_stored && n > most_repeated)
    file_.fail("'{}' has {} numbers of which only {} are stored; save it as .contiguous()", shown, n,
               n_stored);
  entries_.emplace(name, Entry{.shape = tensor.shape,
                               .strides = tensor.strides,
                               .type = tensor.type,
                               .begin = begin + tensor.offset * item,
                               .n_items = is_empty ? 0 : last + 1,
                               .is_negative = tensor.is_negative});
}

void PytorchFile::drop_prefixes() {
  for (bool again = true; again;) {
    again = false;
    for (const std::string_view prefix : {"module.", "_orig_mod."}) {
      const auto begins = [&](const auto& item) { return item.first.starts_with(prefix); };
      if (entries_.empty() || !std::ranges::all_of(entries_, begins)) continue;
      std::map<std::string, Entry> shorter;
      for (auto& [name, entry] : entries_) shorter.emplace(name.substr(prefix.size()), std::move(entry));
      entries_ = std::move(shorter);
      again = true;
    }
  }
}

std::vector<std::string> PytorchFile::names() const {
  std::vector<std::string> result;
  for (const auto& [name, entry] : entries_) result.push_back(name);
  return result;
}

const PytorchFile::Entry& PytorchFile::entry(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found != entries_.end()) return found->second;
  const auto near = nearest(name, names());
  file_.fail("it has no tensor '{}'{}", excerpt(name),
             near ? fmt::format("; did you mean '{}'?", *near) : "");
}

torch::ScalarType PytorchFile::dtype(const std::string& name) const {
  const auto& type = *entry(name).type;
  if (!type.type)
    file_.fail("the tensor '{}' has the dtype {}, which is not supported", excerpt(name), type.name);
  return *type.type;
}

void PytorchFile::read_into(const torch::Tensor& to, const std::string& name) const {
  const auto& stored = entry(name);
  TORCH_CHECK(to.sizes() == stored.shape, name, " is read into a tensor of another shape");
  if (stored.n_items == 0) return;
  if (stored.is_negative && dtype(name) == torch::kBool)
    file_.fail("damaged: '{}' has truth values with a sign", excerpt(name));
  read_stored(to, name, stored);
  if (stored.is_negative) torch::Tensor(to).neg_();
}

/// The numbers as they are in the file.
void PytorchFile::read_stored(const torch::Tensor& to, const std::string& name, const Entry& stored) const {
  const auto type = dtype(name);
  const auto read = [&](int64_t first, int64_t n, const torch::Tensor& numbers) {
    const auto item = static_cast<int64_t>(stored.type->item_size);
    file_.read(stored.begin + static_cast<uint64_t>(first * item), static_cast<size_t>(n * item),
               numbers.data_ptr());
  };
  const bool is_in_order =
      is_contiguous(stored.shape, stored.strides) && to.is_contiguous() && type != torch::kBool;
  if (is_in_order && to.is_cpu() && to.scalar_type() == type) {
    read(0, to.numel(), to);
    return;
  }
  if (is_in_order) {  // piece by piece, so that it is not in memory twice
    constexpr int64_t at_once = int64_t{1} << 22;
    auto flat = to.view({-1});
    for (int64_t begin = 0; begin < flat.numel(); begin += at_once) {
      const auto n = std::min(flat.numel() - begin, at_once);
      const auto piece = torch::empty({n}, torch::TensorOptions().dtype(type));
      read(begin, n, piece);
      flat.narrow(0, begin, n).copy_(piece);
    }
    return;
  }
  // The numbers from the first to the last, of which the tensor is a view. A bool that is neither 0 nor 1
  // must not exist.
  auto numbers = torch::empty({static_cast<int64_t>(stored.n_items)},
                              torch::TensorOptions().dtype(type == torch::kBool ? torch::kUInt8 : type));
  read(0, static_cast<int64_t>(stored.n_items), numbers);
  if (type == torch::kBool && !numbers.le(1).all().item<bool>())
    file_.fail("damaged: '{}' has the dtype bool, but holds bytes other than 0 and 1", excerpt(name));
  torch::Tensor(to).copy_(numbers.as_strided(stored.shape, stored.strides));
}

std::optional<nlohmann::json> PytorchFile::value_beside(const std::string& name) const {
  const auto items = text_items(values_, top_);
  const auto found = items.find(name);
  if (found == items.end()) return std::nullopt;
  return PlainValue(file_, values_).json(found->second);
}

}  // namespace zoo
