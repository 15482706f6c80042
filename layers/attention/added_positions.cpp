#include "layers/attention/added_positions.h"

#include <fmt/format.h>
#include <torch/types.h>

#include "base/error.h"
#include "layers/weights/construction.h"
#include "layers/weights/description.h"
#include "layers/weights/embedding.h"

namespace zoo {

namespace {

/// Rows of a table of `n` positions, of which `offset` are before position 0.
torch::Tensor rows_of_table(const torch::Tensor& table, int64_t n, int64_t offset, const PositionRange& range,
                            torch::Device device) {
  if (range.n_keys() > n) {
    throw DataError(fmt::format("a sequence of {} tokens is longer than model.max_positions, {}: shorten it",
                                range.n_keys(), n));
  }
  if (!range.differs_by_row()) return table.narrow(0, offset + range.first(), range.count());
  return torch::embedding(table, range.ids(device) + offset);
}

torch::Tensor sinusoids(const SinusoidalPositionsOptions& options, const torch::Tensor& positions) {
  return sinusoidal_positions(positions + options.offset(), options.d_model(), 10000, options.layout());
}

}  // namespace

SinusoidalPositionsImpl::SinusoidalPositionsImpl(const SinusoidalPositionsOptions& options_)
    : options(options_),
      sinusoids_([options_](const torch::Tensor& positions) { return sinusoids(options_, positions); }) {
  if (!options.stored()) return;
  table = register_buffer("table",
                          drawn_tensor({*options.stored(), options.d_model()}, [&](torch::Tensor& values) {
                            values.copy_(sinusoids(options, torch::arange(*options.stored())));
                          }));
}

torch::Tensor SinusoidalPositionsImpl::forward(const PositionRange& range, torch::Device device) {
  return options.stored() ? rows_of_table(table, *options.stored(), 0, range, device)
                          : sinusoids_.rows(range, device);
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
  return rows_of_table(weight, options.max_positions(), options.offset(), range, device);
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
