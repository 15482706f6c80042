#include "data/structures/ca_trace.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/residues/residues.h"
#include "data/structures/structure_comparison.h"

namespace zoo {
namespace {

/// A chain of a trace: the places of its residues, [first, last).
struct Part {
  size_t first = 0, last = 0;
};

std::vector<Part> parts_of(const CaTrace& trace) {
  std::vector<Part> parts(trace.chains.size());
  for (size_t i = 0; i < trace.chain_of.size(); ++i) {
    auto& part = parts[static_cast<size_t>(trace.chain_of[i])];
    if (part.last == 0) part.first = i;
    part.last = i + 1;
  }
  return parts;
}

std::string_view letters_in(const CaTrace& trace, Part part) {
  return std::string_view(trace.letters).substr(part.first, part.last - part.first);
}

/// What two chains have in common: `alike` is the share of equal letters of the shorter one.
struct Match {
  double alike = 0;
  PairedPlaces pairs = {};
};

Match match_of(std::string_view first, std::string_view second) {
  Match match{.pairs = aligned_letters(first, second)};
  const auto equal = std::ranges::count_if(match.pairs, [&](const auto& pair) {
    return first[static_cast<size_t>(pair.first)] == second[static_cast<size_t>(pair.second)];
  });
  match.alike = static_cast<double>(equal) / static_cast<double>(std::min(first.size(), second.size()));
  return match;
}

}  // namespace

CaTrace ca_trace(const Structure& structure, std::string_view name) {
  CaTrace trace;
  std::vector<double> positions;
  for (const auto& chain : structure.models.front().chains) {
    const auto before = trace.letters.size();
    for (const auto& residue : chain.residues) {
      const auto* const ca = residue.parent.empty() ? nullptr : residue.atom("CA");
      if (!ca) continue;
      trace.letters += residue_letter(residue_of_name(residue.parent).value_or(kUnknownResidue));
      trace.numbers.push_back(std::to_string(residue.number));
      if (residue.insertion != ' ') trace.numbers.back() += residue.insertion;
      trace.b_factors.push_back(ca->b_factor);
      positions.insert(positions.end(), ca->position.begin(), ca->position.end());
      trace.chain_of.push_back(std::ssize(trace.chains));
    }
    if (trace.letters.size() > before) trace.chains.push_back(chain.name);
  }
  if (trace.letters.empty())
    throw DataError(fmt::format("{}: has no residue of a protein with a CA atom", name));
  trace.positions = torch::tensor(positions, torch::kDouble).view({-1, 3});
  return trace;
}

PairedPlaces aligned_letters(std::string_view first, std::string_view second) {
  PairedPlaces pairs;
  if (first == second) {
    for (int64_t i = 0; i < std::ssize(first); ++i) pairs.emplace_back(i, i);
    return pairs;
  }
  const auto n = first.size(), m = second.size();
  if (std::ssize(first) > kMostAlignedCells / std::max<int64_t>(std::ssize(second), 1))
    throw DataError(fmt::format("chains of {} and {} residues are too long to be aligned", n, m));
  // What a step ends with: a pair, a letter of the first sequence alone, or one of the second.
  enum Step : uint8_t { both, only_first, only_second };
  constexpr int32_t match = 4, mismatch = -2, opened = -8, extended = -1, never = -(1 << 29);
  using Scores = std::array<int32_t, 3>;
  constexpr Scores nothing = {never, never, never};
  std::vector<Scores> before(m + 1, nothing), now(m + 1, nothing);
  std::vector<std::array<uint8_t, 3>> origins((n + 1) * (m + 1));  // the step before, for each step
  Scores best{};
  for (size_t i = 0; i <= n; ++i) {
    for (size_t j = 0; j <= m; ++j) {
      now[j] = nothing;
      if (i == 0 && j == 0) {
        now[j][both] = 0;
        continue;
      }
      auto& origin = origins[i * (m + 1) + j];
      for (const Step step : {both, only_first, only_second}) {
        if ((step != only_second && i == 0) || (step != only_first && j == 0)) continue;
        const auto& from = step == only_second ? now[j - 1] : step == both ? before[j - 1] : before[j];
        const bool is_free =
            step == only_first ? j == 0 || j == m : step == only_second && (i == 0 || i == n);
        for (const Step last : {both, only_first, only_second}) {
          const int32_t cost = step == both || is_free ? 0 : last == step ? extended : opened;
          if (from[last] + cost <= now[j][step]) continue;
          now[j][step] = from[last] + cost;
          origin[step] = last;
        }
        if (step == both) now[j][step] += first[i - 1] == second[j - 1] ? match : mismatch;
      }
    }
    best = now[m];
    std::swap(before, now);
  }
  auto step = static_cast<Step>(std::ranges::max_element(best) - best.begin());
  for (size_t i = n, j = m; i > 0 || j > 0;) {
    const auto last = static_cast<Step>(origins[i * (m + 1) + j][step]);
    if (step != only_second) --i;
    if (step != only_first) --j;
    if (step == both) pairs.emplace_back(static_cast<int64_t>(i), static_cast<int64_t>(j));
    step = last;
  }
  std::ranges::reverse(pairs);
  return pairs;
}

SuperposedTraces superposed(const CaTrace& trace, std::string_view name, const CaTrace& truth,
                            std::string_view truth_name) {
  constexpr double least_alike = 0.3, surely_alike = 0.9;
  SuperposedTraces result{.truth = truth};
  const auto parts = parts_of(trace), true_parts = parts_of(truth);
  std::vector<bool> is_taken(true_parts.size());
  for (size_t c = 0; c < parts.size(); ++c) {
    Match best;
    size_t partner = 0;
    const auto try_chain = [&](size_t t) {
      auto match = match_of(letters_in(trace, parts[c]), letters_in(truth, true_parts[t]));
      if (match.alike <= best.alike) return;
      best = std::move(match);
      partner = t;
    };
    for (size_t t = 0; t < true_parts.size(); ++t) {
      if (!is_taken[t] && truth.chains[t] == trace.chains[c]) try_chain(t);
    }
    for (size_t t = 0; t < true_parts.size() && best.alike < surely_alike; ++t) {
      if (!is_taken[t]) try_chain(t);
    }
    if (best.alike < least_alike) continue;
    is_taken[partner] = true;
    result.length += static_cast<int64_t>(true_parts[partner].last - true_parts[partner].first);
    for (const auto& [i, j] : best.pairs) {
      result.pairs.emplace_back(i + static_cast<int64_t>(parts[c].first),
                                j + static_cast<int64_t>(true_parts[partner].first));
    }
  }
  if (result.pairs.empty())
    throw DataError(fmt::format("{}: no chain has a sequence like one of {}", truth_name, name));
  std::vector<int64_t> first, second;
  for (const auto& [i, j] : result.pairs) {
    first.push_back(i);
    second.push_back(j);
  }
  const auto chosen = trace.positions.index({torch::tensor(first)});
  const auto right = truth.positions.index({torch::tensor(second)});
  const auto all = torch::ones(chosen.size(0), torch::kBool);
  const auto tm = tm_score(chosen, right, all, result.length);
  result.tm_score = tm.score;
  result.lddt = lddt(chosen, right, all).score;
  result.rmsd = superposition(chosen, right, all).rmsd;
  // The inverse motion: R^T (x - t).
  result.truth.positions = (truth.positions - tm.motion.shift).matmul(tm.motion.rotation);
  return result;
}

nlohmann::ordered_json to_json(const SuperposedTraces& traces) {
  return {{"residues", traces.length},
          {"paired", traces.pairs.size()},
          {"tm_score", traces.tm_score},
          {"lddt", traces.lddt},
          {"rmsd", traces.rmsd}};
}

std::string to_columns(const SuperposedTraces& traces) {
  return fmt::format("\t{}\t{:.3f}\t{:.3f}\t{:.2f}", traces.pairs.size(), traces.tm_score, traces.lddt,
                     traces.rmsd);
}

}  // namespace zoo
