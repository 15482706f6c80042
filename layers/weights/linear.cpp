#include "layers/weights/linear.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <torch/nn/init.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "kernels/dropout.h"
#include "kernels/linear.h"
#include "layers/weights/construction.h"
#include "layers/weights/description.h"

namespace zoo {

LinearImpl::LinearImpl(const LinearOptions& options_) : options(options_) {
  TORCH_CHECK(!options.parts().empty(), "a linear map has at least one part");
  set_weight(drawn_tensor({n_outputs(), n_inputs()},
                          [](torch::Tensor& w) { torch::nn::init::kaiming_uniform_(w, std::sqrt(5.0)); }));
  if (!options.bias()) return;
  const double bound = n_inputs() > 0 ? 1.0 / std::sqrt(static_cast<double>(n_inputs())) : 0.0;
  bias = register_parameter(
      "bias", drawn_tensor({n_outputs()}, [&](torch::Tensor& b) { b.uniform_(-bound, bound); }));
}

int64_t LinearImpl::rows_before(size_t part) const {
  int64_t rows = 0;
  for (size_t i = 0; i < part; ++i) rows += options.parts()[i].n_outputs;
  return rows;
}

int64_t LinearImpl::n_outputs() const { return rows_before(options.parts().size()); }

torch::Tensor LinearImpl::forward(const torch::Tensor& x) const {
  if (adapters_.empty()) return matrix().product(x, bias);
  const auto outputs = adapted_parts(x, {.first = 0, .count = options.parts().size()});
  return outputs.size() == 1 ? outputs.front() : torch::cat(outputs, -1);
}

torch::Tensor LinearImpl::forward_some(const torch::Tensor& x, const LinearParts& parts) const {
  const int64_t begin = rows_before(parts.first), end = rows_before(parts.first + parts.count);
  if (adapters_.empty()) return matrix().product(x, bias, begin, end - begin);
  const auto outputs = adapted_parts(x, parts);
  return outputs.size() == 1 ? outputs.front() : torch::cat(outputs, -1);
}

std::vector<torch::Tensor> LinearImpl::forward_parts(const torch::Tensor& x) const {
  if (!adapters_.empty()) return adapted_parts(x, {.first = 0, .count = options.parts().size()});
  std::vector<int64_t> sizes;
  for (const auto& part : options.parts()) sizes.push_back(part.n_outputs);
  return forward(x).split_with_sizes(sizes, -1);
}

torch::Tensor LinearImpl::forward_groups(const torch::Tensor& x, const std::vector<int64_t>& counts) const {
  TORCH_CHECK(counts.size() == options.parts().size(), "each part has a number of rows");
  const int64_t width = options.parts().front().n_outputs;
  // The gradients of all parts are joined once, where those of narrow views would each be as large as all.
  std::vector<torch::Tensor> weights, biases;
  const bool recorded = torch::GradMode::is_enabled() && adapters_.empty() &&
                        matrix().format() == WeightFormat::fp32 && matrix().parameter().requires_grad();
  if (recorded) weights = matrix().parameter().unflatten(0, {-1, width}).unbind();
  if (recorded && bias.defined()) biases = bias.unflatten(0, {-1, width}).unbind();
  std::vector<torch::Tensor> outputs;
  int64_t first = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    const bool stands_in_graph = i == 0 && x.size(0) == 0 && (recorded || x.requires_grad());
    if (counts[i] == 0 && !stands_in_graph) continue;
    const auto rows = x.narrow(0, first, counts[i]);
    first += counts[i];
    outputs.push_back(recorded ? zoo::linear(rows, weights[i], biases.empty() ? torch::Tensor() : biases[i])
                               : forward_some(rows, {.first = i, .count = 1}));
  }
  return outputs.empty() ? x.new_empty({0, width}) : torch::cat(outputs);
}

void LinearImpl::replace_parts(std::vector<LinearPart> parts, const torch::Tensor& weight,
                               const torch::Tensor& bias_rows) {
  TORCH_CHECK(adapters_.empty(), "the parts of a map with adapters cannot be replaced");
  options.parts(std::move(parts));
  auto matrix_rows = matrix().parameter();
  matrix_rows.set_data(weight);
  torch::autograd::impl::bump_version(matrix_rows);  // copies in 16 bits are of other rows
  if (bias.defined()) bias.set_data(bias_rows);
}

const LinearImpl::Adapter* LinearImpl::adapter_of(size_t part) const {
  const auto found = std::ranges::find(adapters_, part, &Adapter::part);
  return found == adapters_.end() ? nullptr : &*found;
}

torch::Tensor LinearImpl::with_adapter(const torch::Tensor& y, const torch::Tensor& x, size_t part) const {
  const auto* const adapter = adapter_of(part);
  if (!adapter) return y;
  const double p = is_training() ? adapter->options.dropout : 0.0;
  const auto reduced = zoo::linear(p > 0 ? dropout(x, p) : x, adapter->a) * adapter->scale();  // (…, r)
  return y + zoo::linear(reduced, adapter->b).to(y.scalar_type());
}

std::vector<torch::Tensor> LinearImpl::adapted_parts(const torch::Tensor& x, const LinearParts& parts) const {
  const int64_t begin = rows_before(parts.first), end = rows_before(parts.first + parts.count);
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < parts.count; ++i) sizes.push_back(options.parts()[parts.first + i].n_outputs);
  auto outputs = matrix().product(x, bias, begin, end - begin).split_with_sizes(sizes, -1);
  for (size_t i = 0; i < parts.count; ++i) outputs[i] = with_adapter(outputs[i], x, parts.first + i);
  return outputs;
}

std::string LinearImpl::adapter_suffix(size_t part) const {
  return options.parts().size() == 1 ? "" : "_" + options.parts()[part].name;
}

void LinearImpl::add_adapter(size_t part, const AdapterOptions& adapter) {
  TORCH_CHECK(part < options.parts().size() && !adapter_of(part),
              "this map has an adapter, or does not exist");
  TORCH_CHECK(adapter.rank > 0, "an adapter has a positive rank");
  auto a = torch::empty({adapter.rank, n_inputs()}, parameter_options());
  torch::nn::init::kaiming_uniform_(a, std::sqrt(5.0));
  auto b = torch::zeros({options.parts()[part].n_outputs, adapter.rank}, parameter_options());
  const auto suffix = adapter_suffix(part);
  adapters_.push_back({.part = part,
                       .options = adapter,
                       .a = register_parameter("lora_a" + suffix, a),
                       .b = register_parameter("lora_b" + suffix, b)});
}

int64_t LinearImpl::merge_adapters() {
  const torch::NoGradGuard no_grad;
  for (const auto& adapter : adapters_) {
    const auto rows = matrix().parameter().detach().narrow(0, rows_before(adapter.part),
                                                           options.parts()[adapter.part].n_outputs);
    const auto product = adapter.b.to(torch::kDouble).mm(adapter.a.to(torch::kDouble)) * adapter.scale();
    rows.copy_(rows.to(torch::kDouble) + product);
    parameters_.erase("lora_a" + adapter_suffix(adapter.part));
    parameters_.erase("lora_b" + adapter_suffix(adapter.part));
  }
  return std::ssize(std::exchange(adapters_, {}));
}

void LinearImpl::take_settings(const torch::nn::Module& from) {
  MatrixModule::take_settings(from);
  for (const auto& adapter : dynamic_cast<const LinearImpl&>(from).adapters_)
    add_adapter(adapter.part, adapter.options);
}

void LinearImpl::pretty_print(std::ostream& stream) const {
  const auto rank = adapters_.empty() ? std::nullopt : std::optional(adapters_.front().options.rank);
  stream << Description("Linear")
                .add("n_inputs", n_inputs())
                .add("n_outputs", n_outputs())
                .add("bias", options.bias())
                .add("format", matrix().format())
                .add("adapter_rank", rank);
}

void LinearImpl::visit_weights(const WeightVisitor& visit) const {
  for (size_t i = 0; i < options.parts().size(); ++i) {
    visit({.parameter = matrix().parameter(),
           .first = rows_before(i),
           .count = options.parts()[i].n_outputs,
           .use = options.parts()[i].use});
  }
}

void count_linear(CostAccount& account, std::string name, std::string kind, const LinearOptions& options,
                  double n_tokens) {
  const int64_t from = options.n_inputs();
  int64_t to = 0;
  for (const auto& part : options.parts()) to += part.n_outputs;
  account.add({.name = std::move(name),
               .kind = std::move(kind),
               .shape = account.text("{} → {}", from, to),
               .flops = 2 * n_tokens * static_cast<double>(from * to),
               .activation_bytes = bytes_of(n_tokens, to)});
}

}  // namespace zoo
