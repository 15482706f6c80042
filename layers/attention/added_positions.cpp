#include "layers/attention/added_positions.h"

#include <fmt/format.h>
#include <torch/types.h>

#include "base/error.h"
#include "layers/weights/description.h"
#include "layers/weights/embedding.h"

namespace zoo {

SinusoidalPositionsImpl::SinusoidalPositionsImpl(const SinusoidalPositionsOptions& options_)
    : options(options_), sinusoids_([options_](const torch::Tensor& positions) {
        const auto rows = positions + options_.offset();
        return sinusoidal_positions(rows, options_.d_model(), 10000, options_.layout());
      }) {}

torch::Tensor SinusoidalPositionsImpl::forward(const PositionRange& range, torch::Device device) {
  return sinusoids_.rows(range, device);
}

void SinusoidalPositionsImpl::pretty_print(std::ostream& stream) const {
  stream
      << Description("SinusoidalPositions").add("d_model", options.d_model()).add("layout", options.layout());
}

LearnedPositionsImpl::LearnedPositionsImpl(const LearnedPositionsOptions& options_) : options(options_) {
  const auto table = make_table(options.offset() + options.max_positions(), options.d_model());
  weight = register_parameter("weight", table->weight.detach());
}

torch::Tensor LearnedPositionsImpl::forward(const PositionRange& range, torch::Device device) {
  if (range.n_keys() > options.max_positions()) {
    throw DataError(fmt::format("a sequence of {} tokens is longer than model.max_positions, {}: shorten it",
                                range.n_keys(), options.max_positions()));
  }
  if (!range.differs_by_row()) return weight.narrow(0, options.offset() + range.first(), range.count());
  return torch::embedding(weight, range.ids(device) + options.offset());
}

void LearnedPositionsImpl::visit_tables(const WeightVisitor& visit) const {
  visit({weight, 0, weight.size(0), WeightUse::table});
}

void LearnedPositionsImpl::pretty_print(std::ostream& stream) const {
  stream << Description("LearnedPositions")
                .add("max_positions", options.max_positions())
                .add("d_model", options.d_model())
                .add("offset", options.offset());
}

}  // namespace zoo
