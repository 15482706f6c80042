#include "base/tensor_memory.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <string_view>

#include <ATen/Context.h>
#include <c10/core/Allocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/util/Exception.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <fmt/format.h>

namespace zoo {

class TensorMemory::Meter {
 public:
  virtual ~Meter() = default;
  virtual int64_t current() const = 0;
  virtual int64_t peak() const = 0;
  virtual void reset_peak() = 0;
};

namespace {

/// LibTorch reports every allocation on the CPU to the object in the profiler's slot. Threads of autograd and
/// of parallel regions inherit the slot.
class CpuCounter final : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, int64_t bytes, size_t, size_t, c10::Device device) override {
    if (!device.is_cpu()) return;
    const int64_t now = current_.fetch_add(bytes) + bytes;
    int64_t before = peak_.load();
    while (now > before && !peak_.compare_exchange_weak(before, now)) {
    }
  }
  bool memoryProfilingEnabled() const override { return true; }

  int64_t current() const { return current_; }
  int64_t peak() const { return peak_; }
  void reset_peak() { peak_ = current_.load(); }

 private:
  std::atomic<int64_t> current_ = 0, peak_ = 0;
};

class CpuMeter final : public TensorMemory::Meter {
 public:
  CpuMeter() { c10::ThreadLocalDebugInfo::_push(c10::DebugInfoKind::PROFILER_STATE, counter_); }
  ~CpuMeter() override { c10::ThreadLocalDebugInfo::_pop(c10::DebugInfoKind::PROFILER_STATE); }
  int64_t current() const override { return counter_->current(); }
  int64_t peak() const override { return std::max<int64_t>(counter_->peak(), 0); }
  void reset_peak() override { counter_->reset_peak(); }

 private:
  std::shared_ptr<CpuCounter> counter_ = std::make_shared<CpuCounter>();
};

class DeviceMeter final : public TensorMemory::Meter {
 public:
  explicit DeviceMeter(c10::Device device) : device_(device) {
    at::globalContext().lazyInitDevice(device.type());  // before this call the allocator has no devices
    start_ = bytes().current;
    allocator().resetPeakStats(index());
  }
  int64_t current() const override { return bytes().current - start_; }
  int64_t peak() const override { return bytes().peak - start_; }
  void reset_peak() override { allocator().resetPeakStats(index()); }

 private:
  struct Bytes {
    int64_t current, peak;
  };
  c10::DeviceAllocator& allocator() const { return *c10::getDeviceAllocator(device_.type()); }
  c10::DeviceIndex index() const { return std::max<c10::DeviceIndex>(device_.index(), 0); }
  Bytes bytes() const {
    constexpr auto all = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    const auto stat = allocator().getDeviceStats(index()).allocated_bytes[all];
    return {stat.current, stat.peak};
  }

  c10::Device device_;
  int64_t start_ = 0;
};

}  // namespace

TensorMemory::TensorMemory(c10::Device device) {
  if (device.is_cpu()) {
    meter_ = std::make_unique<CpuMeter>();
  } else {
    meter_ = std::make_unique<DeviceMeter>(device);
  }
}

TensorMemory::~TensorMemory() = default;
int64_t TensorMemory::current() const { return meter_->current(); }
int64_t TensorMemory::peak() const { return meter_->peak(); }
void TensorMemory::reset_peak() { meter_->reset_peak(); }

void free_cached_memory(c10::Device device) {
  if (!device.is_cpu()) c10::getDeviceAllocator(device.type())->emptyCache();
}

std::optional<std::string> memory_shortage(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return "";
  if (dynamic_cast<const c10::Error*>(&error) == nullptr) return std::nullopt;
  const std::string_view text = static_cast<const c10::Error&>(error).what_without_backtrace();
  const auto says = [&](std::string_view part) { return text.find(part) != text.npos; };
  const bool is_shortage = dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr ||
                           says("can't allocate memory") || says("out of memory") || says("ALLOC_FAILED");
  if (!is_shortage) return std::nullopt;
  for (const std::string_view before : {"Tried to allocate ", "tried to allocate "}) {
    const auto at = text.find(before);
    if (at == text.npos) continue;
    const auto rest = text.substr(at + before.size());
    const auto end = rest.find_first_of(" \n", rest.find(' ') + 1);  // behind the number and its unit
    auto amount = rest.substr(0, end);
    while (amount.ends_with('.')) amount.remove_suffix(1);
    return fmt::format(" ({} more were asked for)", amount);
  }
  return "";
}

}  // namespace zoo
