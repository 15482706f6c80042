#include "tests/support/strict_device.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <ATen/detail/MTIAHooksInterface.h>
#include <ATen/native/transformers/attention.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/library.h>

#include "tests/support/device_tally.h"
#include "tests/support/strict_fused.h"
#if __has_include(<ATen/core/GraphImplInterface.h>)  // LibTorch 2.13
#include <ATen/core/GraphImplInterface.h>
#define ZOO_HAS_GRAPHS
#endif

namespace zoo::testing {
namespace {

using torch::jit::Stack;

constexpr auto kStrict = c10::DeviceType::MTIA;

bool is_strict(const torch::Tensor& tensor) { return tensor.defined() && tensor.device().type() == kStrict; }

bool is_there = false, has_failed = false;
std::optional<size_t> most_bytes;

void check_memory(size_t bytes) {
  TORCH_CHECK_WITH(OutOfMemoryError, !most_bytes || bytes <= *most_bytes,
                   "CUDA out of memory. Tried to allocate ", bytes,
                   " bytes. GPU 0 has a total capacity of …");
}

// ---- memory

// Added to addresses. What reads such an address crashes, as it would with an address of a GPU.
constexpr uintptr_t kShift = uintptr_t{1} << 60;

void* hidden(void* data) {
  return data == nullptr ? nullptr : reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(data) + kShift);
}
void* shown(const void* data) {
  return data == nullptr ? nullptr : reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(data) - kShift);
}

void release(void* context) { delete static_cast<c10::DataPtr*>(context); }

/// Memory of the processor as memory of the device.
c10::DataPtr strict_memory(c10::DataPtr memory) {
  void* const data = hidden(memory.get());
  return {data, new c10::DataPtr(std::move(memory)), &release, strict_device()};
}

class StrictAllocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t n) override {
    check_memory(n);
    return strict_memory(c10::GetCPUAllocator()->allocate(n));
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t n) const override {
    default_copy_data(shown(to), shown(from), n);
  }
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {}
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex) override { return {}; }
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex) override {}
};

StrictAllocator* allocator() {
  static StrictAllocator one;
  return &one;
}

/// Memory of the processor from which the device can copy by itself.
class PinnedAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t n) override {
    auto memory = c10::GetCPUAllocator()->allocate(n);
    void* const data = memory.get();
    const std::scoped_lock lock(mutex_);
    if (data != nullptr) pinned_.insert(data);
    return {data, new c10::DataPtr(std::move(memory)), &unpin, torch::kCPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &unpin; }
  void copy_data(void* to, const void* from, size_t n) const override { default_copy_data(to, from, n); }
  bool has(const void* data) const {
    const std::scoped_lock lock(mutex_);
    return pinned_.contains(data);
  }
  static PinnedAllocator& one() {
    static auto* const allocator = new PinnedAllocator;  // outlives its memory
    return *allocator;
  }

 private:
  static void unpin(void* context) {
    auto* const memory = static_cast<c10::DataPtr*>(context);
    {
      const std::scoped_lock lock(one().mutex_);
      one().pinned_.erase(memory->get());
    }
    delete memory;
  }

  mutable std::mutex mutex_;
  std::set<const void*> pinned_;
};

struct StrictGuard final : c10::impl::NoOpDeviceGuardImpl<kStrict> {
  c10::Device exchangeDevice(c10::Device) const override { return {kStrict, 0}; }
  c10::Device getDevice() const override { return {kStrict, 0}; }
  c10::Stream getStream(c10::Device) const noexcept override { return stream(); }
  c10::Stream getNewStream(c10::Device, int) const override { return stream(); }
  c10::Stream getStreamFromGlobalPool(c10::Device, bool) const override { return stream(); }
  c10::Stream getDefaultStream(c10::Device) const override { return stream(); }
  c10::Stream exchangeStream(c10::Stream) const noexcept override { return stream(); }
  void synchronizeDevice(c10::DeviceIndex) const override {
    TORCH_CHECK(!has_failed, "CUDA error: device-side assert triggered");
    tally_wait("synchronize");
  }
  // All work is done at once, so there is nothing to note in an event.
  void record(void**, const c10::Stream&, c10::DeviceIndex, c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void synchronizeEvent(void*) const override { tally_wait("event"); }
  static c10::Stream stream() { return c10::Stream(c10::Stream::DEFAULT, {kStrict, 0}); }
};

/// Random numbers come from the processor's generator. LibTorch asks for the object once, which may be before
/// a test wants the device.
struct StrictHooks final : at::MTIAHooksInterface {
  bool hasMTIA() const override { return is_there; }
  bool isBuilt() const override { return is_there; }
  bool isAvailable() const override { return is_there; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return 1; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  bool isPinnedPtr(const void* data) const override { return PinnedAllocator::one().has(data); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &PinnedAllocator::one(); }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override {
    return at::detail::getDefaultCPUGenerator();
  }
};

// ---- operations

/// The tensors of an operation as tensors of the processor in the same memory, and back.
class Translation {
 public:
  torch::Tensor to_processor(const torch::Tensor& tensor) {
    if (!is_strict(tensor)) return tensor;
    for (const auto& known : tensors_) {
      if (known.original.is_same(tensor)) return known.alias;
    }
    const auto& storage = storage_of(tensor);
    auto alias = at::detail::make_tensor<c10::TensorImpl>(
        c10::Storage(storage.alias), c10::DispatchKeySet(c10::DispatchKey::CPU), tensor.dtype());
    alias.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides(),
                                                       tensor.storage_offset());
    tensors_.push_back({tensor, alias});
    return alias;
  }

  torch::Tensor to_device(const torch::Tensor& result) {
    if (!result.defined()) return result;
    for (const auto& known : tensors_) {
      if (known.alias.is_same(result)) return known.original;
    }
    for (const auto& known : storages_) {
      if (known.alias.is_alias_of(result.storage())) return tensor_in(known.original, result);
    }
    return tensor_in(adopted(result.storage()), result);
  }

  /// Gives the originals the sizes and the memory that an operation with `out` has given to their aliases.
  void take_over_changes() {
    for (auto& [original, alias] : tensors_) {
      if (shown(original.storage().data()) != alias.storage().data()) {
        original.unsafeGetTensorImpl()->set_storage_keep_dtype(adopted(alias.storage()));
      }
      if (original.sizes() != alias.sizes() || original.strides() != alias.strides()) {
        original.unsafeGetTensorImpl()->set_sizes_and_strides(alias.sizes(), alias.strides(),
                                                              alias.storage_offset());
      }
    }
  }

 private:
  struct Storages {
    c10::Storage original, alias;
  };
  struct Tensors {
    torch::Tensor original, alias;
  };

  const Storages& storage_of(const torch::Tensor& tensor) {
    for (const auto& known : storages_) {
      if (known.original.is_alias_of(tensor.storage())) return known;
    }
    const auto& original = tensor.storage();
    auto* const keeper = new c10::Storage(original);
    c10::DataPtr data(
        shown(original.data()), keeper, [](void* p) { delete static_cast<c10::Storage*>(p); }, torch::kCPU);
    storages_.push_back({original, c10::Storage(c10::Storage::use_byte_size_t(), original.nbytes(),
                                                std::move(data), c10::GetCPUAllocator(), true)});
    return storages_.back();
  }

  /// Memory of the processor that no tensor of the device has yet.
  static c10::Storage adopted(const c10::Storage& storage) {
    check_memory(storage.nbytes());
    auto* const keeper = new c10::Storage(storage);
    c10::DataPtr data(
        hidden(storage.mutable_data()), keeper, [](void* p) { delete static_cast<c10::Storage*>(p); },
        strict_device());
    return {c10::Storage::use_byte_size_t(), storage.nbytes(), std::move(data), allocator(), true};
  }

  static torch::Tensor tensor_in(const c10::Storage& storage, const torch::Tensor& like) {
    auto tensor = at::detail::make_tensor<c10::TensorImpl>(
        c10::Storage(storage), c10::DispatchKeySet(c10::DispatchKey::MTIA), like.dtype());
    tensor.unsafeGetTensorImpl()->set_sizes_and_strides(like.sizes(), like.strides(), like.storage_offset());
    return tensor;
  }

  std::vector<Storages> storages_;
  std::vector<Tensors> tensors_;
};

/// Calls `visit` with each tensor of an argument or result, which may change it.
template <class Visit>
void visit_tensors(c10::IValue& value, const Visit& visit) {
  if (value.isTensor()) {
    value = visit(value.toTensor());
  } else if (value.isTensorList()) {
    auto list = value.toTensorList().copy();
    for (size_t i = 0; i < list.size(); ++i) list.set(i, visit(list.get(i)));
    value = list;
  } else if (value.isOptionalTensorList()) {
    auto list = value.toOptionalTensorList().copy();
    for (size_t i = 0; i < list.size(); ++i) {
      const std::optional<torch::Tensor> element = list.get(i);
      if (element) list.set(i, std::optional(visit(*element)));
    }
    value = list;
  }
}

/// Records an operation in place of doing it.
using Record = std::function<void(const c10::OperatorHandle& op, Stack& stack)>;
/// The same for a kernel of our own.
using RecordKernel = std::function<void(const std::string& name, std::function<void()> kernel)>;

/// A graph that is being recorded.
struct Recorder {
  Record operation;
  RecordKernel kernel;
};
std::optional<Recorder> recorder;
std::atomic<std::thread::id> recording_thread;  // that began it; none: no graph is recorded

/// As CUDA does in its mode for one thread, which others do not disturb. Backward passes have threads of
/// their own.
bool records_this_thread() {
  const auto thread = recording_thread.load();
  return thread != std::thread::id() &&
         (thread == std::this_thread::get_id() || torch::autograd::get_current_graph_task_id() >= 0);
}

bool is_one_of(const std::string& name, std::initializer_list<const char*> names) {
  return std::ranges::any_of(names, [&](const char* one) { return name == one; });
}

/// What CUDA's kernels refuse and the processor's take.
void check_rules(const c10::OperatorHandle& op, const Stack& arguments) {
  const auto& schema = op.schema();
  const auto& name = schema.name();
  const bool copies = is_one_of(name, {"aten::_copy_from", "aten::_copy_from_and_resize"});
  const bool copies_numbers = name == "aten::where";  // other operations get them as arguments of the kernel
  bool crosses = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    auto value = arguments[i];
    visit_tensors(value, [&](const torch::Tensor& tensor) {
      if (!tensor.defined() || is_strict(tensor)) return tensor;
      crosses = true;
      TORCH_CHECK(copies || (tensor.dim() == 0 && tensor.is_cpu()),
                  "Expected all tensors to be on the same device, but argument ",
                  schema.arguments()[i].name(), " of ", name, " is on ", tensor.device());
      return tensor;
    });
  }
  TORCH_CHECK(!records_this_thread() || !(waits(op, arguments) || ((copies || copies_numbers) && crosses)),
              "operation not permitted when stream is capturing: ", name);
  if (is_one_of(name, {"aten::_softmax_backward_data", "aten::_log_softmax_backward_data"})) {
    const auto gradient = arguments[0].toTensor().scalar_type(), input = arguments[3].toScalarType();
    TORCH_CHECK(gradient == input || (gradient == torch::kFloat && input == torch::kHalf),
                "expected input and grad types to match, or input to be at::Half and grad to be at::Float");
  }
  if (is_one_of(name, {"aten::mm", "aten::bmm", "aten::addmm", "aten::baddbmm"})) {
    const auto& first = arguments[0].toTensor();
    TORCH_CHECK(first.is_floating_point() || first.is_complex(), "\"", name, "_cuda\" not implemented for '",
                first.dtype(), "'");
  }
  if (is_one_of(name, {"aten::native_layer_norm", "aten::native_layer_norm_backward"})) {
    const auto type = arguments[name == "aten::native_layer_norm" ? 0 : 1].toTensor().scalar_type();
    for (const auto& argument : arguments) {
      if (!argument.isTensor() || !argument.toTensor().defined()) continue;
      const auto other = argument.toTensor().scalar_type();
      TORCH_CHECK(other == type || (other == torch::kFloat && argument.toTensor().size(-1) == 1),
                  "expected scalar type ", type, " but found ", other);
    }
  }
}

c10::OperatorHandle operation(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
}

/// The operation of the processor for one that LibTorch offers to devices without kernels of their own.
/// Changes the arguments accordingly.
c10::OperatorHandle processor_operation(const c10::OperatorHandle& op, Stack& stack) {
  const auto& name = op.schema().name();
  if (name == "aten::convolution_overrideable") return operation("aten::convolution");
  if (name != "aten::convolution_backward_overrideable") return op;
  const auto weight = stack.end()[-8].toTensor();  // of 10 arguments the third
  stack.insert(stack.end() - 7, c10::IValue(std::vector<int64_t>{weight.size(0)}));  // the sizes of the bias
  return operation("aten::convolution_backward");
}

void compute(const c10::OperatorHandle& op, Stack& stack) {
  const size_t n_arguments = op.schema().arguments().size(), n_results = op.schema().returns().size();
  Translation translation;
  for (auto& argument : torch::jit::last(stack, n_arguments)) {
    auto& value = const_cast<c10::IValue&>(argument);
    if (value.isDevice() && value.toDevice().type() == kStrict) value = c10::Device(torch::kCPU);
    visit_tensors(value, [&](const torch::Tensor& tensor) { return translation.to_processor(tensor); });
  }
  if (op.schema().name() == "aten::_copy_from") {  // which the processor does not have
    const auto arguments = torch::jit::pop(stack, n_arguments);
    const auto to = arguments[1].toTensor();
    to.copy_(arguments[0].toTensor());
    stack.emplace_back(to);
  } else if (!compute_fused(op, stack)) {
    processor_operation(op, stack).redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack);
  }
  if (op.schema().name() == "aten::log") {  // which rounds in another way than the processor's
    const auto result = torch::jit::peek(stack, 0, 1).toTensor();
    if (result.is_floating_point())
      result.copy_(
          torch::nextafter(result, torch::full_like(result, -std::numeric_limits<double>::infinity())));
  }
  translation.take_over_changes();
  for (auto& result : torch::jit::last(stack, n_results)) {
    visit_tensors(const_cast<c10::IValue&>(result),
                  [&](const torch::Tensor& tensor) { return translation.to_device(tensor); });
  }
}

// ---- graphs

#ifdef ZOO_HAS_GRAPHS
/// Records operations without an effect, as CUDA does, and replays them in the same memory. Only memory that
/// is allocated meanwhile gets numbers at once, so that the processor's kernels find valid indices.
class StrictGraph final : public at::GraphImplInterface {
 public:
  explicit StrictGraph(const at::GraphImplArgs&) {}
  ~StrictGraph() override {
    if (!records_) return;
    recording_thread = std::thread::id();
    recorder.reset();
    has_failed = true;  // as a stream of CUDA that goes on recording
  }
  void capture_begin(at::MempoolId_t, at::GraphCaptureMode) override {
    TORCH_CHECK(!recorder, "another graph is recorded");
    recorder =
        Recorder{.operation = [this](const c10::OperatorHandle& op, Stack& stack) { record(op, stack); },
                 .kernel =
                     [this](const std::string& name, std::function<void()> kernel) {
                       steps_.push_back([name, kernel = std::move(kernel)] {
                         tally_kernel(name, StartedBy::graph);
                         kernel();
                       });
                     }};
    recording_thread = std::this_thread::get_id();
    records_ = true;
    generator_ = at::detail::getDefaultCPUGenerator().get_state();
  }
  void capture_end() override {
    recording_thread = std::thread::id();
    recorder.reset();
    records_ = false;
    auto generator = at::detail::getDefaultCPUGenerator();  // recording draws nothing
    generator.set_state(generator_);
  }
  void instantiate() override {}
  void replay() override {
    tally_graph();
    for (const auto& step : steps_) step();
  }
  void reset() override {
    steps_.clear();
    new_.clear();
  }
  at::MempoolId_t pool() const override { return {0, 0}; }
  void enable_debug_mode() override {}
  void debug_dump(const std::string&) override {}

 private:
  void record(const c10::OperatorHandle& op, Stack& stack) {
    const auto arguments = torch::jit::last(stack, op.schema().arguments().size()).vec();
    const auto before = contents_of(arguments);
    compute(op, stack);
    if (op.schema().name().starts_with("aten::empty")) {  // whoever gets it may give it another size
      new_.push_back(stack.back().toTensor().storage());
      return;
    }
    const auto results = torch::jit::last(stack, op.schema().returns().size()).vec();
    for (const auto& [tensor, content] : before) compute_copy(tensor, content);
    steps_.push_back([op, arguments, results] {
      Stack now = arguments;
      tally(op, now, StartedBy::graph);
      compute(op, now);
      for (size_t i = 0; i < now.size(); ++i) copy_into(op, now[i], results[i]);
    });
  }

  using Contents = std::vector<std::pair<torch::Tensor, torch::Tensor>>;

  /// Copies of the tensors that the operation may write. Nobody writes a tensor with elements that share
  /// memory.
  Contents contents_of(const Stack& arguments) const {
    Contents contents;
    for (auto value : arguments) {
      visit_tensors(value, [&](const torch::Tensor& tensor) {
        if (is_strict(tensor) && tensor.numel() > 0 && !is_new(tensor) &&
            at::has_internal_overlap(tensor) != at::MemOverlap::Yes) {
          Translation translation;
          contents.emplace_back(tensor, translation.to_processor(tensor).clone());
        }
        return tensor;
      });
    }
    return contents;
  }
  bool is_new(const torch::Tensor& tensor) const {
    return std::ranges::any_of(new_,
                               [&](const c10::Storage& one) { return one.is_alias_of(tensor.storage()); });
  }
  static void compute_copy(const torch::Tensor& to, const torch::Tensor& from) {
    Translation translation;
    if (to.sizes() == from.sizes()) translation.to_processor(to).copy_(from);
  }
  static void copy_into(const c10::OperatorHandle& op, c10::IValue from, c10::IValue to) {
    std::vector<torch::Tensor> source;
    visit_tensors(from, [&](const torch::Tensor& tensor) {
      source.push_back(tensor);
      return tensor;
    });
    size_t i = 0;
    visit_tensors(to, [&](const torch::Tensor& tensor) {
      const auto& origin = source.at(i++);
      TORCH_CHECK(!is_strict(tensor) || origin.sizes() == tensor.sizes(), op.schema().name(), " gives ",
                  origin.sizes(), ", but was recorded with ", tensor.sizes());
      if (is_strict(tensor) && origin.data_ptr() != tensor.data_ptr()) {
        Translation translation;
        translation.to_processor(tensor).copy_(translation.to_processor(origin));
      }
      return tensor;
    });
  }

  std::vector<std::function<void()>> steps_;
  std::vector<c10::Storage> new_;  // allocated while it is recorded
  bool records_ = false;
  torch::Tensor generator_;
};
#endif

void run_operation(const c10::OperatorHandle& op, Stack* stack) {
  TORCH_CHECK(!has_failed, "CUDA error: device-side assert triggered");
  const auto arguments = torch::jit::last(*stack, op.schema().arguments().size()).vec();
  check_rules(op, arguments);
  if (records_this_thread()) {
    recorder->operation(op, *stack);
  } else {
    tally(op, arguments, StartedBy::host);
    compute(op, *stack);
  }
}

const bool has_hooks = [] {
  // LibTorch 2.11 passes an argument.
  at::MTIAHooksRegistry()->Register("MTIAHooks", [](auto&&...) {
    return std::unique_ptr<at::MTIAHooksInterface>(std::make_unique<StrictHooks>());
  });
  return true;
}();

// For these LibTorch has kernels of its own, which only say that there are none, or are made of other
// operations.
TORCH_LIBRARY_IMPL(aten, MTIA, m) {
  for (const char* const name :
       {"convolution_overrideable", "convolution_backward_overrideable",
        "_scaled_dot_product_fused_attention_overrideable",
        "_scaled_dot_product_fused_attention_overrideable_backward", "native_layer_norm"})
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&run_operation>());
  // CUDA has kernels for lists of tensors; LibTorch takes the tensors one by one on other devices.
  for (const auto& op : c10::Dispatcher::singleton().getAllOpNames()) {
    if (!op.name.starts_with("aten::_foreach_") || op.overload_name.ends_with("out")) continue;
    const auto name = op.name + (op.overload_name.empty() ? "" : "." + op.overload_name);
    m.impl(name.c_str(), torch::CppFunction::makeFromBoxedFunction<&run_operation>());
  }
}

TORCH_LIBRARY_IMPL(_, MTIA, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&run_operation>()); }

void register_once() {
  is_there = has_hooks;
  c10::SetAllocator(kStrict, allocator());
  // Not earlier: with a device LibTorch's engine for gradients starts threads, which a forked process lacks.
  static const c10::impl::DeviceGuardImplRegistrar registrar(kStrict, new StrictGuard);
#ifdef ZOO_HAS_GRAPHS
  at::GraphImplRegistry()->Register(
      c10::DeviceTypeName(kStrict, /*lower_case=*/false), [](const at::GraphImplArgs& args) {
        return std::unique_ptr<at::GraphImplInterface>(std::make_unique<StrictGraph>(args));
      });
#endif
}

/// As CUDA chooses: flash or memory-efficient attention, unless the mask wants a gradient. The processor's
/// kernel, which computes it, has no dropout.
int64_t attention_kind(const at::Tensor& q, const at::Tensor&, const at::Tensor&,
                       const std::optional<at::Tensor>& mask, double dropout, bool, std::optional<double>,
                       bool) {
  const bool fused = dropout == 0 && q.is_floating_point() && q.scalar_type() != torch::kDouble &&
                     !(mask && mask->requires_grad());
  return static_cast<int64_t>(fused ? at::SDPBackend::overrideable : at::SDPBackend::math);
}

}  // namespace

void start_on_strict_device(const std::string& name, std::function<void()> kernel) {
  TORCH_CHECK(!has_failed, "CUDA error: device-side assert triggered");
  if (records_this_thread()) {
    recorder->kernel(name, std::move(kernel));
  } else {
    tally_kernel(name, StartedBy::host);
    kernel();
  }
}

void* address_on_the_processor(void* address) { return shown(address); }

void limit_strict_memory(std::optional<size_t> bytes) { most_bytes = bytes; }

void fail_strict_device() { has_failed = true; }

torch::Device strict_device() {
  static const bool registered = (register_once(), true);
  static_cast<void>(registered);
  return {kStrict, 0};
}

}  // namespace zoo::testing

namespace at::native {
REGISTER_MTIA_DISPATCH(_fused_sdp_choice_stub, &zoo::testing::attention_kind)
}  // namespace at::native
