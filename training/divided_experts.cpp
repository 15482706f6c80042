#include "training/divided_experts.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>
#include <torch/utils.h>

#include "base/error.h"

namespace zoo {
namespace {

/// Over the processes of a training.
class ProcessExchange final : public ExpertExchange {
 public:
  explicit ProcessExchange(const ProcessGroup& processes) : processes_(processes) {}
  int64_t rank() const override { return processes_.rank(); }
  int64_t size() const override { return processes_.size(); }
  torch::Tensor gather(const torch::Tensor& numbers) const override {
    auto all = torch::zeros({size(), numbers.numel()}, numbers.options());
    all[rank()].copy_(numbers);
    processes_.all_reduce(all).wait();
    return all;
  }
  torch::Tensor exchange(const torch::Tensor& rows, const std::vector<int64_t>& sent,
                         const std::vector<int64_t>& received) const override {
    int64_t n_rows = 0;
    for (const int64_t n : received) n_rows += n;
    auto result = torch::empty({n_rows, rows.size(1)}, rows.options().requires_grad(false));
    processes_.all_to_all(result, rows.detach().contiguous(), received, sent).wait();
    return result;
  }

 private:
  const ProcessGroup& processes_;
};

}  // namespace

DividedExperts::DividedExperts(const Model& model, const ProcessGroup& processes)
    : processes_(processes),
      layers_(experts_of(model)),
      exchange_(std::make_shared<ProcessExchange>(processes)) {
  for (const auto& layer : layers_) {
    if (layer->options.count() % processes.size() != 0)
      throw ConfigError(fmt::format(
          "training.parallel.experts: {} experts cannot be divided among {} processes: choose a number of "
          "processes that divides model.experts.count",
          layer->options.count(), processes.size()));
    for (const auto& linear : layer->maps()) maps_.push_back({linear.ptr(), linear->options.parts()});
  }
  std::unordered_set<const c10::TensorImpl*> divided;
  for (const auto& tensor : parameters()) divided.insert(tensor.unsafeGetTensorImpl());
  for (const auto& item : model.named_parameters()) {
    if (divided.contains(item.value().unsafeGetTensorImpl())) names_.push_back(item.key());
  }
  std::ranges::sort(names_);
  for (const auto& map : maps_) {
    const auto own = [&](const torch::Tensor& whole) {
      return whole.defined() ? own_rows(whole.detach()).clone() : whole;
    };
    map.linear->replace_parts(own_parts(map), own(map.linear->matrix().parameter()), own(map.linear->bias));
  }
  for (const auto& layer : layers_) layer->divide(exchange_);
}

std::vector<LinearPart> DividedExperts::own_parts(const Map& map) const {
  const int64_t n = std::ssize(map.parts) / processes_.size();
  const auto first = map.parts.begin() + processes_.rank() * n;
  return {first, first + n};
}

std::vector<torch::Tensor> DividedExperts::parameters() const {
  std::vector<torch::Tensor> result;
  for (const auto& map : maps_) {
    result.push_back(map.linear->matrix().parameter());
    if (map.linear->bias.defined()) result.push_back(map.linear->bias);
  }
  return result;
}

torch::Tensor DividedExperts::own_rows(const torch::Tensor& whole) const {
  return whole.chunk(processes_.size())[static_cast<size_t>(processes_.rank())];
}

torch::Tensor DividedExperts::room_for(const torch::Tensor& own) const {
  auto sizes = own.sizes().vec();
  sizes.front() *= processes_.size();
  return torch::empty(sizes, own.options().requires_grad(false));
}

/// Collective.
void DividedExperts::fill(const torch::Tensor& whole, const torch::Tensor& own) const {
  const torch::NoGradGuard no_grad;
  own_rows(whole).copy_(own);
  const auto shares = whole.chunk(processes_.size());
  for (int64_t rank = 0; rank < processes_.size(); ++rank)
    processes_.broadcast(shares[static_cast<size_t>(rank)], rank).wait();
}

bool DividedExperts::has(const std::string& name) const {
  return std::ranges::binary_search(names_, name) ||
         std::ranges::binary_search(names_, name.substr(0, name.rfind('.')));
}

DividedExperts::Gradients DividedExperts::sorted(const std::vector<torch::Tensor>& gradients) const {
  std::unordered_set<const c10::TensorImpl*> own;
  for (const auto& parameter : parameters()) own.insert(parameter.grad().unsafeGetTensorImpl());
  Gradients result;
  for (const auto& gradient : gradients)
    (own.contains(gradient.unsafeGetTensorImpl()) ? result.own : result.shared).push_back(gradient);
  return result;
}

TensorMap DividedExperts::gather(const TensorMap& own) const {
  TensorMap result;
  for (const auto& [name, tensor] : own) {
    if (!has(name) || tensor.dim() == 0) {
      result.emplace(name, tensor);
      continue;
    }
    const auto whole = room_for(tensor);
    fill(whole, tensor);
    if (processes_.is_first()) result.emplace(name, whole.cpu());
  }
  return result;
}

TensorMap DividedExperts::room_for(const TensorMap& own) const {
  TensorMap result;
  for (const auto& [name, tensor] : own)
    result.emplace(name, has(name) && tensor.dim() > 0 ? room_for(tensor) : tensor);
  return result;
}

void DividedExperts::take_rows(const TensorMap& whole, const TensorMap& own) const {
  const torch::NoGradGuard no_grad;
  for (const auto& [name, tensor] : own) {
    if (has(name) && tensor.dim() > 0) tensor.copy_(own_rows(whole.at(name)));
  }
}

DividedExperts::Whole::Whole(const DividedExperts& experts) : experts_(experts) {
  for (const auto& parameter : experts.parameters()) own_.push_back(parameter.tensor_data());
  for (const auto& map : experts.maps_) {
    const auto room = [&](const torch::Tensor& own) { return own.defined() ? experts.room_for(own) : own; };
    map.linear->replace_parts(map.parts, room(map.linear->matrix().parameter()), room(map.linear->bias));
  }
  for (const auto& layer : experts.layers_) layer->divide(nullptr);
}

DividedExperts::Whole::~Whole() {
  const torch::NoGradGuard no_grad;
  auto own = own_.begin();
  const auto rows_again = [&](const torch::Tensor& whole) {
    if (!whole.defined()) return whole;
    own->copy_(experts_.own_rows(whole.detach()));
    return *own++;
  };
  for (const auto& map : experts_.maps_) {
    const auto weight = rows_again(map.linear->matrix().parameter());
    map.linear->replace_parts(experts_.own_parts(map), weight, rows_again(map.linear->bias));
  }
  for (const auto& layer : experts_.layers_) layer->divide(experts_.exchange_);
}

std::unique_ptr<DividedExperts::Whole> DividedExperts::gathered() const {
  auto whole = blank();
  const auto parts = parameters();
  for (size_t i = 0; i < parts.size(); ++i) fill(parts[i].detach(), whole->own_[i]);
  return whole;
}

std::unique_ptr<DividedExperts::Whole> DividedExperts::blank() const {
  return std::unique_ptr<Whole>(new Whole(*this));
}

}  // namespace zoo
