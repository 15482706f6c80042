#include "data/class_split.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace zoo {
namespace {

/// FNV-1a, and MurmurHash3's last step so that every bit depends on every byte.
uint64_t hash_of(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325U;
  for (const unsigned char byte : text) hash = (hash ^ byte) * 0x100000001b3U;
  hash = (hash ^ (hash >> 33U)) * 0xff51afd7ed558ccdU;
  hash = (hash ^ (hash >> 33U)) * 0xc4ceb9fe1a85ec53U;
  return hash ^ (hash >> 33U);
}

/// The least hash of a row for train.
uint64_t first_hash_of_train(double valid_fraction, const std::vector<uint64_t>& hashes) {
  constexpr double two_to_64 = 18446744073709551616.0;
  const auto wanted = static_cast<uint64_t>(valid_fraction * two_to_64);
  const auto [least, largest] = std::ranges::minmax(hashes);
  // A small table may have no text on one side.
  return std::clamp(wanted, least + (least < largest ? 1 : 0), largest);
}

/// Whether each row is one for validation.
std::vector<bool> rows_for_validation(double valid_fraction, std::span<const RowIdentity> rows,
                                      const std::vector<uint64_t>& hashes) {
  std::map<std::string_view, uint64_t> largest;  // of each class
  for (size_t i = 0; i < rows.size(); ++i) {
    auto& most = largest[rows[i].label];
    most = std::max(most, hashes[i]);
  }
  const bool are_classes = 2 * largest.size() <= rows.size();
  const uint64_t first_of_train = first_hash_of_train(valid_fraction, hashes);
  std::vector<bool> result;
  for (size_t i = 0; i < rows.size(); ++i) {
    const bool is_kept = are_classes && hashes[i] == largest.at(rows[i].label);
    result.push_back(!is_kept && hashes[i] < first_of_train);
  }
  return result;
}

}  // namespace

std::vector<bool> rows_of_split(const DataConfig& config, Split split, std::span<const RowIdentity> rows) {
  if (!is_shared(config, split) || rows.empty()) return std::vector<bool>(rows.size(), true);
  std::vector<uint64_t> hashes;
  for (const auto& row : rows) hashes.push_back(hash_of(row.text));
  const std::set<uint64_t> texts(hashes.begin(), hashes.end());
  if (2 * texts.size() <= rows.size()) {
    // A table of few texts: a text that is for validation alone would be one that the model never saw.
    std::map<std::string_view, size_t> n_before;
    for (size_t i = 0; i < rows.size(); ++i)
      hashes[i] = hash_of(rows[i].text + '\0' + std::to_string(n_before[rows[i].text]++));
  }
  auto result = rows_for_validation(config.valid_fraction, rows, hashes);
  if (split == Split::train) result.flip();
  return result;
}

}  // namespace zoo
