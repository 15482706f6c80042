#include "analysis/causes/attribution.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "analysis/causes/frozen_weights.h"
#include "analysis/causes/repeated_rows.h"
#include "base/error.h"
#include "base/named_enum.h"
#include "models/inference_scope.h"

namespace zoo {
namespace {

constexpr int64_t kVectorsWithGradients = 512;  // rows times positions of a pass, whose steps are all kept

/// The score of each row of logits.
torch::Tensor scores_of(const torch::Tensor& logits, const AttributionReport& report) {
  const auto answers = logits.select(1, report.answer);
  return report.options.against ? answers - logits.select(1, *report.options.against) : answers;
}

std::vector<double> listed(const torch::Tensor& values) {
  const auto flat = values.to(torch::kCPU, torch::kDouble).contiguous();
  return {flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel()};
}

/// The squares of a picture (C, H, W): the model's patches, or about 14 in the shorter side.
std::pair<torch::Tensor, PictureParts> by_squares(const torch::Tensor& pixels, const Model& model,
                                                  const Question& question) {
  constexpr int64_t usual_parts = 14;
  const int64_t H = pixels.size(1), W = pixels.size(2);
  const auto grid = model.patch_grid(question.batch);
  const int64_t P = grid ? grid->patch_size : std::max<int64_t>(1, std::min(H, W) / usual_parts);
  PictureParts parts{.rows = grid ? grid->rows : (H + P - 1) / P,
                     .columns = grid ? grid->columns : (W + P - 1) / P};
  // Pixels that fill no patch are not read; without patches the last squares are filled with zeros.
  const int64_t height = parts.rows * P, width = parts.columns * P;
  const auto whole = torch::constant_pad_nd(pixels.sum(0), {0, width - W, 0, height - H});
  if (const auto& shown = question.shown) {
    const auto share = [](int64_t covered, int64_t side) {
      return static_cast<double>(covered) / static_cast<double>(side);
    };
    parts.covered = Box{.x = shown->x,
                        .y = shown->y,
                        .width = shown->width * share(width, W),
                        .height = shown->height * share(height, H)};
  }
  return {whole.view({parts.rows, P, parts.columns, P}).sum({1, 3}), parts};
}

std::vector<std::string> names_of_target(const Question& question) {
  if (!question.target_tokens.empty()) return question.target_tokens;
  std::vector<std::string> names = {"start"};
  names.insert(names.end(), question.source_tokens.begin(), question.source_tokens.end() - 1);
  return names;
}

void require_output(const Model& model, int64_t output) {
  TORCH_CHECK(output >= 0 && output < model.n_outputs(), "an output between 0 and ", model.n_outputs() - 1);
}

}  // namespace

double AttributionReport::sum() const {
  return std::accumulate(target.begin(), target.end(), std::accumulate(source.begin(), source.end(), 0.0));
}

double AttributionReport::completeness_error() const { return sum() - (score - baseline_score); }

int64_t baseline_token(const Run& run, AttributionBaseline baseline) {
  const bool is_pad = baseline == AttributionBaseline::pad;
  if (!is_pad && baseline != AttributionBaseline::mask) return -1;
  if (task_type(run.experiment()).predicts_from == PredictionInput::image_file) return -1;
  const auto& special = run.tokenizer().special();
  const int64_t id = is_pad ? special.pad : special.mask;
  if (id < 0)
    throw UsageError(
        fmt::format("the vocabulary has no token <{}>: choose the baseline zero or mean", name_of(baseline)));
  return id;
}

Attributing::Attributing(Model& model, Question question, const AttributionOptions& options)
    : model_(model),
      report_{.options = options, .place = options.place.value_or(question.place)},
      path_([&] {
        require_place(question, report_.place, "position");
        const InferenceScope inference(model);
        return BaselinePath(model, question.batch, options.baseline, options.baseline_token);
      }()),
      points_(options.by == AttributionBy::integrated_gradients
                  ? gauss_legendre(options.steps)
                  : std::vector<IntegralPoint>{{.at = 1, .weight = 1}}) {
  const InferenceScope inference(model);
  const auto ends = path_.logits(path_.at(std::array{0.0, 1.0}), report_.place);
  if (ends.isnan().any().item<bool>()) fail_not_a_number();
  auto& target = question.targets[static_cast<size_t>(report_.place)];
  report_.answer = options.answer.value_or(target >= 0 ? target : ends[1].argmax().item<int64_t>());
  target = report_.answer;
  require_output(model, report_.answer);
  if (options.against) {
    require_output(model, *options.against);
    if (*options.against == report_.answer)
      throw UsageError(fmt::format("“{}” is the answer and what it is compared with: name two outputs",
                                   question.label(report_.answer)));
  }
  const auto scores = scores_of(ends, report_).to(torch::kDouble);
  report_.baseline_score = scores[0].item<double>();
  report_.score = scores[1].item<double>();
  report_.question = std::move(question);
}

void Attributing::go_on() {
  const InferenceScope inference(model_);
  const FrozenWeights frozen(model_);
  const torch::AutoGradMode with_gradients(true);
  const auto left = points_.size() - next_;
  const size_t n =
      std::min(left, static_cast<size_t>(rows_at_once(report_.question.batch, kVectorsWithGradients)));
  std::vector<double> shares, weights;
  for (size_t i = 0; i < n; ++i, ++next_) {
    shares.push_back(points_[next_].at);
    weights.push_back(points_[next_].weight);
  }
  auto inputs = path_.at(shares);
  std::vector<torch::Tensor> leaves;
  for (auto& [side, input] : inputs) leaves.push_back(input.requires_grad_());
  const auto score = scores_of(path_.logits(inputs, report_.place), report_).sum();
  const auto gradients = torch::autograd::grad({score}, leaves, /*grad_outputs=*/{},
                                               /*retain_graph=*/std::nullopt, /*create_graph=*/false,
                                               /*allow_unused=*/true);
  size_t i = 0;
  for (const auto& [side, input] : inputs) {
    const auto gradient = gradients[i].defined() ? gradients[i] : torch::zeros_like(input);
    ++i;
    const auto part = torch::tensordot(torch::tensor(weights, torch::kDouble),
                                       gradient.to(torch::kCPU, torch::kDouble), {0}, {0});
    sums_.try_emplace(side, torch::zeros_like(part)).first->second += part;
  }
}

AttributionReport Attributing::report() && {
  TORCH_CHECK(!has_more(), "an attribution that is not done has no report");
  const bool integrates = report_.options.by == AttributionBy::integrated_gradients;
  for (const auto& [side, gradient] : sums_) {
    const auto times = (integrates ? path_.difference(side) : path_.input().at(side))[0];
    const auto products = gradient * times.to(torch::kCPU, torch::kDouble);
    if (path_.is_picture()) {
      const auto [values, parts] = by_squares(products, model_, report_.question);
      report_.source = listed(values);
      report_.picture = parts;
    } else if (side == StackSide::decoder) {
      report_.target = listed(products.sum(-1));
      report_.target_names = names_of_target(report_.question);
    } else {
      report_.source = listed(products.sum(-1));
    }
  }
  return std::move(report_);
}

AttributionReport attribution_report(Model& model, Question question, const AttributionOptions& options) {
  Attributing attributing(model, std::move(question), options);
  while (attributing.has_more()) attributing.go_on();
  return std::move(attributing).report();
}

std::string describe(const AttributionReport& report) {
  const auto& [options, label] = std::tie(report.options, report.question.label);
  const auto score = options.against ? fmt::format("the logit of “{}” less that of “{}”",
                                                   label(report.answer), label(*options.against))
                                     : fmt::format("the logit of “{}”", label(report.answer));
  const auto how = options.by == AttributionBy::gradient_input
                       ? std::string("gradient × input")
                       : fmt::format("integrated gradients, baseline {}, {} steps", name_of(options.baseline),
                                     options.steps);
  const auto place =
      report.question.places.size() > 1 ? fmt::format(" at place {}", report.place) : std::string();
  return fmt::format("{}{}, by {}", score, place, how);
}

}  // namespace zoo
