#include "base/recordable.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <string_view>

#include <ATen/core/ivalue.h>
#include <fmt/format.h>
#include <torch/types.h>

namespace zoo {
namespace {

/// Operations whose result, or its size, the host waits for.
constexpr auto kWaiting = std::to_array<std::string_view>(
    {"aten::_local_scalar_dense", "aten::nonzero", "aten::masked_select", "aten::equal", "aten::is_nonzero",
     "aten::_unique2", "aten::unique_dim", "aten::unique_consecutive", "aten::bincount", "aten::_ctc_loss",
     "aten::linalg_eigh", "aten::linalg_svd", "aten::_linalg_svd", "aten::_linalg_eigh"});

bool is_on(const c10::IValue& value, c10::DeviceType device) {
  return value.isTensor() && value.toTensor().defined() && value.toTensor().device().type() == device;
}

/// Whether an index is a tensor of truth values, whose number the host waits for.
bool has_bool_index(const c10::IValue& value, c10::DeviceType device) {
  if (!value.isOptionalTensorList()) return false;
  const auto list = value.toOptionalTensorList();
  for (size_t i = 0; i < list.size(); ++i) {
    const std::optional<torch::Tensor> index = list.get(i);
    if (index && is_on(*index, device) && index->scalar_type() == torch::kBool) return true;
  }
  return false;
}

/// Empty: nothing stands in the way.
std::string obstacle_of(const at::RecordFunction& call, c10::DeviceType device) {
  const std::string_view name = call.name();
  const auto inputs = call.inputs();
  if (name == "aten::copy_" && inputs.size() > 1 && is_on(inputs[0], device) != is_on(inputs[1], device) &&
      inputs[1].isTensor())
    return fmt::format("{} between devices", name);
  const bool concerns =
      std::ranges::any_of(inputs, [&](const c10::IValue& input) { return is_on(input, device); });
  if (!concerns) return {};
  // Without a size, the size of a repetition depends on its numbers.
  const bool repeats = name == "aten::repeat_interleave" && inputs.size() == 2 && inputs[1].isNone();
  const bool waits =
      repeats || std::ranges::find(kWaiting, name) != kWaiting.end() ||
      std::ranges::any_of(inputs, [&](const c10::IValue& input) { return has_bool_index(input, device); });
  return waits ? fmt::format("{} waits for the device", name) : std::string();
}

}  // namespace

struct RecordableWatch::Notes : c10::DebugInfoBase {
  explicit Notes(c10::DeviceType watched) : device(watched) {}

  static std::unique_ptr<at::ObserverContext> note(const at::RecordFunction& call) {
    // LibTorch hands this object on to the threads of backward passes; nobody else uses its place.
    auto* const notes = dynamic_cast<Notes*>(c10::ThreadLocalDebugInfo::get(c10::DebugInfoKind::TEST_INFO_2));
    if (!notes) return nullptr;
    const auto found = obstacle_of(call, notes->device);
    if (found.empty()) return nullptr;
    const std::scoped_lock lock(notes->mutex);
    if (notes->first.empty()) notes->first = found;
    return nullptr;
  }

  const c10::DeviceType device;
  std::mutex mutex;
  std::string first;
};

RecordableWatch::RecordableWatch(c10::Device device)
    : notes_(std::make_shared<Notes>(device.type())),
      guard_(std::make_unique<c10::DebugInfoGuard>(c10::DebugInfoKind::TEST_INFO_2, notes_)),
      handle_(at::addThreadLocalCallback(
          at::RecordFunctionCallback(&Notes::note).needsInputs(true).scopes({at::RecordScope::FUNCTION}))) {}

RecordableWatch::~RecordableWatch() { at::removeCallback(handle_); }

std::optional<std::string> RecordableWatch::obstacle() const {
  const std::scoped_lock lock(notes_->mutex);
  return notes_->first.empty() ? std::nullopt : std::optional(notes_->first);
}

}  // namespace zoo
