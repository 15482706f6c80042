#include "analysis/contact_fit.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <torch/types.h>

#include "analysis/contacts.h"
#include "base/error.h"
#include "base/residues/residues.h"
#include "data/structures/structure.h"
#include "io/files.h"

namespace zoo {
namespace {

constexpr int64_t kLeastSeparation = 6;
constexpr auto kFirstSeparations = std::to_array<int64_t>({kLeastSeparation, 12, 24});  // of the ranges

std::optional<KnownContacts> contacts_of(const StructureChain& chain, std::string name) {
  constexpr double touching = 8;  // Å
  KnownContacts protein{.name = std::move(name), .letters = {}, .touch = {}};
  std::vector<double> places;
  for (const auto& residue : chain.residues) {
    if (residue.parent.empty()) continue;
    const auto* const atom = residue.atom(residue.parent == "GLY" ? "CA" : "CB");
    if (!atom) continue;
    protein.letters += residue_letter(residue_of_name(residue.parent).value_or(kUnknownResidue));
    places.insert(places.end(), atom->position.begin(), atom->position.end());
  }
  if (std::ssize(protein.letters) <= kLeastSeparation) return std::nullopt;
  const auto positions = torch::tensor(places, torch::kDouble).view({-1, 3});
  protein.touch = torch::cdist(positions, positions, 2, /*compute_mode=*/2).lt(touching);
  return protein;
}

/// (M, L, L), one row and column a residue.
torch::Tensor maps_of(Model& model, const Tokenizer& tokenizer, const KnownContacts& protein) {
  std::vector<std::string> labels;
  auto maps = residue_maps(model, tokenizer, protein.letters, labels);
  if (maps.size(1) != std::ssize(protein.letters)) {
    throw DataError(fmt::format(
        "{}: the tokenizer reads {} residues as {} tokens: contacts need a token for each residue",
        protein.name, protein.letters.size(), maps.size(1)));
  }
  return maps;
}

/// |w|₁ + c · Σ log(1 + exp(∓z)).
double loss_of(const torch::Tensor& scores, const torch::Tensor& labels, const torch::Tensor& weights,
               double c) {
  const auto losses = torch::softplus(scores) - labels * scores;
  return (c * losses.sum() + weights.abs().sum()).item<double>();
}

/// The step d that makes gradient·d + ½ dᵀ hessian d + |w + d|₁ least; the last weight, the bias, has no
/// penalty.
std::vector<double> newton_step(const torch::Tensor& hessian, const torch::Tensor& gradient,
                                const torch::Tensor& weights) {
  constexpr int most_sweeps = 1000;
  constexpr double tolerance = 1e-12;
  const auto n = static_cast<size_t>(gradient.numel());
  const auto h = hessian.accessor<double, 2>();
  const auto g = gradient.accessor<double, 1>(), w = weights.accessor<double, 1>();
  std::vector<double> step(n), bent(n);  // bent: hessian · step
  for (int sweep = 0; sweep < most_sweeps; ++sweep) {
    double largest = 0;
    for (size_t j = 0; j < n; ++j) {
      const auto at = static_cast<int64_t>(j);
      const double curve = h[at][at], slope = g[at] + bent[j], now = w[at] + step[j];
      if (curve <= 0) continue;
      const double free = now - slope / curve, penalty = j + 1 < n ? 1 / curve : 0;
      const double best = std::copysign(std::max(0.0, std::abs(free) - penalty), free);
      const double change = best - now;
      if (change == 0) continue;
      step[j] += change;
      for (size_t k = 0; k < n; ++k) bent[k] += change * h[static_cast<int64_t>(k)][at];
      largest = std::max(largest, change * change * curve);
    }
    if (largest < tolerance) break;
  }
  return step;
}

}  // namespace

std::vector<KnownContacts> known_contacts(const std::filesystem::path& path, std::optional<int64_t> most) {
  std::vector<std::filesystem::path> files;
  if (has_directory(path)) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
      if (is_structure_file(entry.path())) files.push_back(entry.path());
    }
    if (error) throw DataError(fmt::format("{}: {}", path.string(), error.message()));
    std::ranges::sort(files);
  } else {
    files.push_back(path);
  }
  if (most && std::ssize(files) > *most) files.resize(static_cast<size_t>(*most));
  std::vector<KnownContacts> proteins;
  for (const auto& file : files) {
    const auto structure = read_structure(file);
    const auto& chains = structure.models.front().chains;
    for (const auto& chain : chains) {
      const auto name = file.filename().string() + (chains.size() > 1 ? " " + chain.name : "");
      if (auto protein = contacts_of(chain, name)) proteins.push_back(std::move(*protein));
    }
  }
  if (proteins.empty()) {
    throw DataError(fmt::format("{}: has no structure of a protein with more than {} residues (.pdb, .cif)",
                                path.string(), kLeastSeparation));
  }
  return proteins;
}

LogisticFit l1_logistic_fit(const torch::Tensor& features, const torch::Tensor& labels, double c) {
  constexpr int most_steps = 100, most_halvings = 40;
  constexpr double tolerance = 1e-10;
  const torch::NoGradGuard no_grad;
  const auto n = features.size(1);
  const auto x = torch::cat({features, torch::ones({features.size(0), 1}, torch::kDouble)}, 1);
  auto weights = torch::zeros(n + 1, torch::kDouble);
  auto scores = torch::zeros(features.size(0), torch::kDouble);
  auto loss = loss_of(scores, labels, weights.slice(0, 0, n), c);
  for (int i = 0; i < most_steps; ++i) {
    const auto p = scores.sigmoid();
    const auto gradient = c * x.t().mv(p - labels);
    const auto hessian = (c * x.t().mm(x * (p * (1 - p)).unsqueeze(1))).contiguous();
    const auto step = torch::tensor(newton_step(hessian, gradient, weights), torch::kDouble);
    const auto change = x.mv(step);
    double length = 1, next = loss;
    for (int halving = 0; halving < most_halvings; ++halving, length /= 2) {
      next = loss_of(scores + length * change, labels, (weights + length * step).slice(0, 0, n), c);
      if (next < loss) break;
    }
    if (!(next < loss)) break;
    weights += length * step;
    scores += length * change;
    const bool is_done = loss - next <= tolerance * loss;
    loss = next;
    if (is_done) break;
  }
  return {.weights = weights.slice(0, 0, n).clone(), .bias = weights[n].item<double>()};
}

ContactRegression fitted_regression(Model& model, const Tokenizer& tokenizer,
                                    std::span<const KnownContacts> proteins,
                                    const ContactProgress& progress) {
  constexpr double c = 0.15;
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> features, labels;
  int64_t n_done = 0;
  for (const auto& protein : proteins) {
    const auto maps = corrected_maps(maps_of(model, tokenizer, protein)).to(torch::kCPU, torch::kDouble);
    const auto places = torch::triu_indices(maps.size(1), maps.size(1), kLeastSeparation);
    features.push_back(maps.index({torch::indexing::Slice(), places[0], places[1]}).t());
    labels.push_back(protein.touch.index({places[0], places[1]}).to(torch::kDouble));
    progress(++n_done, std::ssize(proteins));
  }
  const auto fit = l1_logistic_fit(torch::cat(features), torch::cat(labels), c);
  ContactRegression regression(fit.weights.numel());
  regression->weight.copy_(fit.weights.unsqueeze(0));
  regression->bias.fill_(fit.bias);
  regression->to(model.device());
  return regression;
}

ContactPrecisions contact_precisions(const torch::Tensor& probabilities, const torch::Tensor& touch) {
  constexpr std::array<int64_t, kContactShares> parts = {1, 2, 5};
  const int64_t length = touch.size(0);
  ContactPrecisions precisions;
  for (size_t range = 0; range < kContactRanges; ++range) {
    const auto first = kFirstSeparations[range];
    const auto last = range + 1 < kContactRanges ? kFirstSeparations[range + 1] : length;
    if (length <= first) continue;
    const auto in_range = torch::ones({length, length}, torch::kBool)
                              .triu(first)
                              .logical_and(torch::ones({length, length}, torch::kBool).tril(last - 1));
    const auto scores = probabilities.masked_select(in_range);
    const auto right = touch.masked_select(in_range).to(torch::kDouble);
    const auto order = std::get<1>(scores.sort(/*stable=*/true, 0, /*descending=*/true));
    const auto sorted = right.index_select(0, order);
    ContactPrecision precision{.likeliest = {}, .chance = right.mean().item<double>()};
    for (size_t share = 0; share < parts.size(); ++share) {
      const auto n = std::clamp<int64_t>(length / parts[share], 1, sorted.numel());
      precision.likeliest[share] = sorted.slice(0, 0, n).mean().item<double>();
    }
    precisions[range] = precision;
  }
  return precisions;
}

std::vector<ContactPrecisions> contact_precisions(Model& model, const Tokenizer& tokenizer,
                                                  const ContactRegressionImpl& regression,
                                                  std::span<const KnownContacts> proteins,
                                                  const ContactProgress& progress) {
  const torch::NoGradGuard no_grad;
  std::vector<ContactPrecisions> all;
  for (const auto& protein : proteins) {
    const auto probabilities = regression.forward(maps_of(model, tokenizer, protein));
    all.push_back(contact_precisions(probabilities.to(torch::kCPU, torch::kDouble), protein.touch));
    progress(std::ssize(all), std::ssize(proteins));
  }
  return all;
}

}  // namespace zoo
