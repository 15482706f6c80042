#include "layers/activation_checkpointing.h"

#include <utility>

#include <ATen/autocast_mode.h>
#include <ATen/core/ivalue.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/random.h"
#include "base/random_state.h"
#include "kernels/first_derivative.h"

namespace zoo {
namespace {

using torch::autograd::AutogradContext;
using Tensors = torch::autograd::variable_list;

/// The autocast state of this thread. Autograd's threads do not inherit all of it.
struct AutocastState {
  explicit AutocastState(c10::DeviceType device_)
      : device(device_),
        enabled(at::autocast::is_autocast_enabled(device)),
        caches(at::autocast::is_autocast_cache_enabled()),
        type(at::autocast::get_autocast_dtype(device)) {}
  void set() const {
    at::autocast::set_autocast_enabled(device, enabled);
    at::autocast::set_autocast_cache_enabled(caches);
    at::autocast::set_autocast_dtype(device, type);
  }

  c10::DeviceType device;
  bool enabled, caches;
  torch::ScalarType type;
};

/// Sets an earlier autocast state on this thread for its lifetime.
class AutocastScope {
 public:
  explicit AutocastScope(const AutocastState& state) : former_(state.device) { state.set(); }
  ~AutocastScope() { former_.set(); }
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  AutocastState former_;
};

/// How many nested functions this thread is recomputing.
thread_local int recomputing = 0;

struct RecomputingScope {
  RecomputingScope() { ++recomputing; }
  ~RecomputingScope() { --recomputing; }
  RecomputingScope(const RecomputingScope&) = delete;
  RecomputingScope& operator=(const RecomputingScope&) = delete;
};

/// A function, and everything that its second call needs to repeat the first.
class Call final : public torch::CustomClassHolder {
 public:
  Call(Recomputable function, size_t n_inputs, c10::Device device)
      : n_inputs_(n_inputs), function_(std::move(function)), device_(device), autocast_(device.type()) {}

  size_t n_inputs() const { return n_inputs_; }

  torch::Tensor first(const Tensors& inputs) {
    generator_ = random_state(device_);
    first_row_ = first_row();
    SeedRecord record;  // NOLINT(misc-const-correctness): seeds are added while it lives
    auto output = function_(inputs);
    seeds_ = record.seeds();
    return output;
  }
  torch::Tensor again(const Tensors& inputs) const {
    const AutocastScope autocast(autocast_);
    const RandomStateScope generator(device_, generator_);
    const RowScope rows(first_row_);
    SeedReplay replay(seeds_);  // NOLINT(misc-const-correctness): it advances from seed to seed
    return function_(inputs);
  }

 private:
  size_t n_inputs_;
  Recomputable function_;
  c10::Device device_;
  AutocastState autocast_;
  torch::Tensor generator_;
  std::vector<uint64_t> seeds_;
  int64_t first_row_ = 0;
};

/// The same tensors, detached, as leaves of a new graph.
Tensors cut_off(at::TensorList tensors) {
  Tensors result;
  for (const auto& tensor : tensors) {
    result.push_back(tensor.detach());
    if (tensor.requires_grad()) result.back().requires_grad_();
  }
  return result;
}

struct Recomputed : torch::autograd::Function<Recomputed> {
  /// `tensors`: the inputs, then the parameters.
  static torch::Tensor forward(AutogradContext* context, const c10::intrusive_ptr<Call>& call,
                               at::TensorList tensors) {
    context->save_for_backward(tensors.vec());
    context->saved_data["call"] = c10::IValue::make_capsule(call);
    // Records a graph that is dropped at once: without gradients LibTorch sometimes chooses other kernels,
    // which round differently from the kernels of the second call.
    const torch::AutoGradMode recording(true);
    return call->first(cut_off(tensors.slice(0, call->n_inputs()))).detach();
  }

  static Tensors backward(AutogradContext* context, const Tensors& gradients) {
    only_first_derivative("a recomputed part of a model");
    const auto capsule = context->saved_data["call"].toCapsule();
    const auto& call = static_cast<const Call&>(*capsule);
    const auto tensors = context->get_saved_variables();
    const auto inputs = cut_off(at::TensorList(tensors).slice(0, call.n_inputs()));

    Tensors wanted;
    std::vector<size_t> places;
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (!tensors[i].requires_grad() || !context->needs_input_grad(i)) continue;
      wanted.push_back(i < inputs.size() ? inputs[i] : tensors[i]);
      places.push_back(i + 1);  // place 0 is `call`, which has no gradient
    }
    const RecomputingScope scope;
    torch::Tensor output;
    {
      const torch::AutoGradMode recording(true);
      output = call.again(inputs);
    }
    const auto found = torch::autograd::grad({output}, wanted, {gradients[0]}, /*retain_graph=*/false,
                                             /*create_graph=*/false, /*allow_unused=*/true);
    Tensors result(tensors.size() + 1);
    for (size_t i = 0; i < places.size(); ++i) result[places[i]] = found[i];
    return result;
  }
};

}  // namespace

torch::Tensor recomputed(Recomputable function, const std::vector<torch::Tensor>& inputs,
                         const std::vector<torch::Tensor>& parameters) {
  TORCH_CHECK(!inputs.empty(), "recomputed() needs at least one input");
  auto tensors = inputs;
  tensors.insert(tensors.end(), parameters.begin(), parameters.end());
  for (const auto& tensor : tensors)
    TORCH_CHECK(tensor.defined(), "recomputed(): an input or a parameter is undefined");
  const auto call = c10::make_intrusive<Call>(std::move(function), inputs.size(), inputs.front().device());
  return Recomputed::apply(call, at::TensorList(tensors));
}

bool is_recomputing() { return recomputing > 0; }

}  // namespace zoo
