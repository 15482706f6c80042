#include "analysis/causes/part_replacement.h"

#include <utility>

namespace zoo {

PartReplacer::PartReplacer(const std::vector<AblatedPart>& parts, const std::vector<int64_t>& positions,
                           Replacement replacement)
    : parts_(parts), positions_(positions), replacement_(std::move(replacement)) {}

torch::Tensor PartReplacer::on(const ActivationPlace& place, const torch::Tensor& x) {
  torch::Tensor result, other;
  for (const auto& part : parts_) {
    if (part.place != place) continue;
    if (!result.defined()) {
      result = x.clone();
      other = replacement_(place, x).expand_as(x);
    }
    const auto of_head = [&](const torch::Tensor& all) {
      return part.head ? all.select(2, *part.head) : all;
    };
    auto into = of_head(result);
    if (positions_.empty()) into.copy_(of_head(other));
    for (const int64_t position : positions_)
      if (position < x.size(1)) into.select(1, position).copy_(of_head(other).select(1, position));
  }
  return result.defined() ? result : x;
}

torch::Tensor lengths_at(const ActivationPlace& place, const Batch& batch) {
  const bool decodes =
      batch.decoder.defined() && place.side == StackSide::decoder && place.kind != ActivationKind::memory;
  const auto& lengths = decodes ? batch.decoder.lengths : batch.input.lengths;
  return lengths.defined() ? lengths.to(torch::kCPU) : lengths;
}

std::map<ActivationPlace, torch::Tensor> mean_activations(Model& model, const std::vector<Batch>& batches,
                                                          const WantedPlaces& wanted) {
  std::map<ActivationPlace, torch::Tensor> means;
  std::map<ActivationPlace, int64_t> counts;
  for (const auto& batch : batches) {
    for (const auto& [place, x] : record_activations(model, model.on_device(batch), wanted)) {
      auto rows = x.to(torch::kDouble);  // (B, T, …)
      int64_t count = rows.size(0) * rows.size(1);
      if (const auto lengths = lengths_at(place, batch); lengths.defined()) {
        auto padding = torch::arange(rows.size(1)).unsqueeze(0).ge(lengths.unsqueeze(1)).to(x.device());
        while (padding.dim() < rows.dim()) padding = padding.unsqueeze(-1);
        rows = rows.masked_fill(padding, 0);
        count = lengths.sum().item<int64_t>();
      }
      auto& sum = means[place];
      const auto more = rows.sum(torch::IntArrayRef({0, 1}));
      sum = sum.defined() ? sum + more : more;
      counts[place] += count;
    }
  }
  for (auto& [place, sum] : means) sum = sum / static_cast<double>(counts[place]);
  return means;
}

torch::Tensor activations_of_others(const torch::Tensor& x, const torch::Tensor& others,
                                    const torch::Tensor& lengths, int64_t shift) {
  std::vector<int64_t> rows, columns;
  for (int64_t b = 0; b < x.size(0); ++b) {
    const int64_t row = (b + shift) % others.size(0);
    const int64_t length = lengths.defined() ? lengths[row].item<int64_t>() : others.size(1);
    for (int64_t t = 0; t < x.size(1); ++t) {
      rows.push_back(row);
      columns.push_back(t % length);
    }
  }
  const auto on_device = [&](const std::vector<int64_t>& list) {
    return torch::tensor(list, torch::kInt64).to(x.device());
  };
  return others.index({on_device(rows), on_device(columns)}).view(x.sizes());
}

}  // namespace zoo
