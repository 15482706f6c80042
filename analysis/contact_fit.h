#pragma once
// Contacts measured as Rao et al. (2021) do: a logistic regression from attention maps, fitted to a few known
// structures, and the precision of the likeliest pairs in others.

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <torch/types.h>

#include "models/contact_regression.h"
#include "models/model.h"
#include "tokenizers/tokenizer.h"

namespace zoo {

/// A protein whose structure is known.
struct KnownContacts {
  std::string name;     // the file's, and the chain's where it has several
  std::string letters;  // L: the residues that have a CB atom, or a CA atom if they are glycine
  torch::Tensor touch;  // (L, L) bool: these atoms are within 8 Å
};

/// The proteins of a file of a structure, or of all such files in a folder, in the order of their names; of
/// at most `most` of the files. Throws DataError if there are none.
std::vector<KnownContacts> known_contacts(const std::filesystem::path& path,
                                          std::optional<int64_t> most = std::nullopt);

/// Called after each of the proteins.
using ContactProgress = std::function<void(int64_t done, int64_t all)>;

/// Weights (M) and the bias.
struct LogisticFit {
  torch::Tensor weights;
  double bias = 0;
};
/// The weights w and the bias b that make |w|₁ + c · Σ log(1 + exp(∓(x w + b))) least: features (P, M)
/// double, labels (P) double, 0 or 1. By Newton's steps with coordinate descent (Friedman et al. 2010).
LogisticFit l1_logistic_fit(const torch::Tensor& features, const torch::Tensor& labels, double c);

/// The regression that reads contacts of residues at least 6 apart from a model's maps, c = 0.15. Throws
/// DataError if the tokenizer does not read each residue as one token, or as attention_report().
ContactRegression fitted_regression(Model& model, const Tokenizer& tokenizer,
                                    std::span<const KnownContacts> proteins, const ContactProgress& progress);

/// How far apart two residues are in the chain: 6 to 11, 12 to 23, 24 and more.
enum class ContactRange { short_range, medium_range, long_range };
constexpr auto config_names(ContactRange) {
  return std::to_array<std::string_view>({"short", "medium", "long"});
}
inline constexpr size_t kContactRanges = 3, kContactShares = 3;

/// Shares of the likeliest L, L/2 and L/5 pairs of one protein that touch, and of all pairs.
struct ContactPrecision {
  std::array<double, kContactShares> likeliest;
  double chance = 0;
};
/// For each range; nothing where the chain is too short for it.
using ContactPrecisions = std::array<std::optional<ContactPrecision>, kContactRanges>;

/// probabilities: (L, L) double.
ContactPrecisions contact_precisions(const torch::Tensor& probabilities, const torch::Tensor& touch);
/// Of each of the proteins. Throws as fitted_regression().
std::vector<ContactPrecisions> contact_precisions(Model& model, const Tokenizer& tokenizer,
                                                  const ContactRegressionImpl& regression,
                                                  std::span<const KnownContacts> proteins,
                                                  const ContactProgress& progress);

}  // namespace zoo
