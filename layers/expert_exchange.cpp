#include "layers/expert_exchange.h"

#include <utility>

#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>

#include "base/random.h"

namespace zoo {
namespace {

using torch::autograd::AutogradContext;
using Tensors = torch::autograd::variable_list;

/// One exchange, as a value that the graph keeps until its backward pass.
struct Mail : torch::CustomClassHolder {
  Mail(std::shared_ptr<const ExpertExchange> over, std::vector<int64_t> to, std::vector<int64_t> from)
      : exchange(std::move(over)), sent(std::move(to)), received(std::move(from)) {}
  std::shared_ptr<const ExpertExchange> exchange;
  std::vector<int64_t> sent, received;
};

/// The gradients go back the way that the rows came.
struct Exchanged : torch::autograd::Function<Exchanged> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& rows,
                               const c10::intrusive_ptr<Mail>& mail) {
    context->saved_data["mail"] = c10::IValue::make_capsule(mail);
    return mail->exchange->exchange(rows, mail->sent, mail->received);
  }
  static Tensors backward(AutogradContext* context, const Tensors& gradients) {
    const auto capsule = context->saved_data["mail"].toCapsule();
    const auto& mail = static_cast<const Mail&>(*capsule);
    return {mail.exchange->exchange(gradients[0], mail.received, mail.sent), {}};
  }
};

std::vector<int64_t> values_of(const torch::Tensor& numbers) {
  const auto flat = numbers.contiguous();
  return {flat.const_data_ptr<int64_t>(), flat.const_data_ptr<int64_t>() + flat.numel()};
}

}  // namespace

ExpertRoute::ExpertRoute(std::shared_ptr<const ExpertExchange> exchange, const std::vector<int64_t>& counts)
    : exchange_(std::move(exchange)) {
  const int64_t n = exchange_->size(), E = std::ssize(counts), n_here = E / n, rank = exchange_->rank();
  auto numbers = counts;
  numbers.push_back(zoo::first_row());
  const auto all = exchange_->gather(torch::tensor(numbers, torch::kLong));  // (n, E + 1)
  const auto by_expert = all.narrow(1, 0, E);
  const auto here = by_expert.narrow(1, rank * n_here, n_here);  // (n, E / n)
  counts_ = values_of(here.sum(0));
  received_ = values_of(here.sum(1));
  sent_ = values_of(by_expert[rank].unflatten(0, {n, n_here}).sum(1));
  first_row_ = all[0][E].item<int64_t>() + by_expert.narrow(1, 0, rank * n_here).sum().item<int64_t>();
  const auto experts = torch::arange(n_here).repeat({n}).repeat_interleave(here.flatten());
  order_ = experts.argsort(/*stable=*/true, /*dim=*/0, /*descending=*/false);
}

torch::Tensor ExpertRoute::to_experts(const torch::Tensor& rows) const {
  const auto arrived = Exchanged::apply(rows, c10::make_intrusive<Mail>(exchange_, sent_, received_));
  return arrived.index_select(0, order_.to(arrived.device()));
}

torch::Tensor ExpertRoute::back(const torch::Tensor& outputs) const {
  const auto arrival =
      torch::empty_like(order_).scatter_(0, order_, torch::arange(order_.numel(), order_.options()));
  return Exchanged::apply(outputs.index_select(0, arrival.to(outputs.device())),
                          c10::make_intrusive<Mail>(exchange_, received_, sent_));
}

}  // namespace zoo
