#include "tests/support/device_work.h"

#include <algorithm>
#include <mutex>
#include <string_view>
#include <vector>

#include <ATen/Context.h>
#include <ATen/detail/MTIAHooksInterface.h>
#include <fmt/format.h>
#include <torch/types.h>

#include "tests/support/device_tally.h"

namespace zoo::testing {
namespace {

using torch::jit::Stack;

/// Autograd's threads count, too.
struct Tally {
  std::mutex mutex;
  DeviceWork work;
};

Tally& tally() {
  static Tally one;
  return one;
}

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

bool is_copy(std::string_view name) {
  return is_one_of(name, {"aten::_copy_from", "aten::_copy_from_and_resize"});
}

/// Views and allocations: the device does nothing.
bool is_free(const c10::OperatorHandle& op) {
  const auto& schema = op.schema();
  const auto& name = schema.name();
  if (name.starts_with("aten::empty") || name.starts_with("aten::new_empty") ||
      is_one_of(name, {"aten::resize_", "aten::set_", "aten::_reshape_alias", "aten::record_stream"}))
    return true;
  return std::ranges::any_of(schema.returns(), [](const c10::Argument& result) {
    return result.alias_info() && !result.alias_info()->isWrite();
  });
}

bool has_bool_indices(const Stack& arguments) {
  return std::ranges::any_of(arguments, [](const c10::IValue& argument) {
    if (!argument.isOptionalTensorList()) return false;
    const auto list = argument.toOptionalTensorList();
    for (size_t i = 0; i < list.size(); ++i) {
      const std::optional<torch::Tensor> index = list.get(i);
      if (index && index->defined() && index->scalar_type() == torch::kBool) return true;
    }
    return false;
  });
}

bool is_pinned(const torch::Tensor& tensor) {
  return at::detail::getMTIAHooks().isPinnedPtr(tensor.storage().data());
}

std::string plural(int64_t n, std::string_view noun, std::string_view ending = "s") {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : ending);
}

}  // namespace

bool waits(const c10::OperatorHandle& op, const Stack& arguments) {
  const auto& name = op.schema().name();
  if (is_copy(name)) {
    const auto from = arguments[0].toTensor(), to = arguments[1].toTensor();
    if (from.is_cpu() == to.is_cpu()) return false;
    const bool non_blocking = arguments.size() > 2 && arguments[2].toBool();
    return !non_blocking || !is_pinned(from.is_cpu() ? from : to);
  }
  // A repetition by numbers of the device has a size that the host does not know, unless it says so.
  if (name == "aten::repeat_interleave") return arguments.back().isNone();
  return is_one_of(name, {"aten::_local_scalar_dense", "aten::nonzero", "aten::masked_select", "aten::equal",
                          "aten::_unique2", "aten::bincount", "aten::is_nonzero"}) ||
         (name.find("index_put") != name.npos && has_bool_indices(arguments));
}

void tally(const c10::OperatorHandle& op, const Stack& arguments, StartedBy started) {
  const auto& name = op.schema().name();
  auto& [mutex, work] = tally();
  const std::scoped_lock lock(mutex);
  if (waits(op, arguments)) {
    ++work.waits;
    ++work.by_operation["wait " + name];
  }
  if (name == "aten::_local_scalar_dense") {
    ++work.downloads;
    return;
  }
  if (is_copy(name)) {
    const bool from_host = arguments[0].toTensor().is_cpu(), to_host = arguments[1].toTensor().is_cpu();
    if (from_host) ++work.uploads;
    if (to_host) ++work.downloads;
    if (from_host || to_host) return;
  }
  if (is_free(op)) return;
  ++work.kernels;
  if (started == StartedBy::host) ++work.launches;
  ++work.by_operation[name];
}

void tally_kernel(const std::string& name, StartedBy started) {
  auto& [mutex, work] = tally();
  const std::scoped_lock lock(mutex);
  ++work.kernels;
  if (started == StartedBy::host) ++work.launches;
  ++work.by_operation[name];
}

void tally_graph() {
  auto& [mutex, work] = tally();
  const std::scoped_lock lock(mutex);
  ++work.launches;
}

void tally_wait(const std::string& name) {
  auto& [mutex, work] = tally();
  const std::scoped_lock lock(mutex);
  ++work.waits;
  ++work.by_operation["wait " + name];
}

DeviceWork strict_device_work() {
  auto& [mutex, work] = tally();
  const std::scoped_lock lock(mutex);
  return work;
}

DeviceWork DeviceWork::since(const DeviceWork& earlier) const {
  DeviceWork result{.kernels = kernels - earlier.kernels,
                    .launches = launches - earlier.launches,
                    .uploads = uploads - earlier.uploads,
                    .downloads = downloads - earlier.downloads,
                    .waits = waits - earlier.waits,
                    .by_operation = {}};
  for (const auto& [name, n] : by_operation) {
    const auto before = earlier.by_operation.find(name);
    const int64_t more = n - (before == earlier.by_operation.end() ? 0 : before->second);
    if (more != 0) result.by_operation.emplace(name, more);
  }
  return result;
}

std::string DeviceWork::in_words() const {
  return fmt::format("{}, {}, {}, {}, {}", plural(kernels, "kernel"), plural(launches, "launch", "es"),
                     plural(uploads, "upload"), plural(downloads, "download"), plural(waits, "wait"));
}

std::string DeviceWork::most_frequent(size_t n_operations) const {
  std::vector<std::pair<std::string, int64_t>> most, all_waits;
  for (const auto& entry : by_operation)
    (entry.first.starts_with("wait ") ? all_waits : most).emplace_back(entry);
  std::ranges::stable_sort(most, std::greater(), [](const auto& entry) { return entry.second; });
  if (most.size() > n_operations) most.resize(n_operations);
  most.insert(most.end(), all_waits.begin(), all_waits.end());
  std::string text;
  for (const auto& [name, n] : most) text += fmt::format("{:6} {}\n", n, name);
  return text;
}

}  // namespace zoo::testing
