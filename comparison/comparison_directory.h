#pragma once
// The directory of a comparison: what lies where in it, and what of it may be removed.
//
//   DIR/results.json, report.html, report.md    what came of it
//   DIR/runs/SLUG/seed-N                        its trainings, each with
//                 seed-N.yaml, seed-N.log       its configuration and what it said beside it
//   DIR/measured                                what takes long to measure

#include <filesystem>
#include <vector>

namespace zoo {

/// Removes a comparison, and nothing else. Throws UsageError, before anything is removed, where DIR/runs or
/// DIR/measured holds what no comparison writes, where a report is another program's, or where one of the
/// `needed` runs would go with it; SystemError.
void remove_comparison(const std::filesystem::path& dir, const std::vector<std::filesystem::path>& needed);

}  // namespace zoo
