#pragma once
// The directory of a comparison: its files, and which of them ExistingRun::replace removes.
//
//   DIR/results.json, report.html, report.md    the results
//   DIR/runs/SLUG/seed-N                        one training, and beside it
//                 seed-N.yaml, seed-N.log       its configuration and its output
//   DIR/models/SLUG/seed-N                      copies of models from elsewhere
//   DIR/measured                                measurements that take long
//   DIR/tuning/runs, DIR/tuning/measured        the same of the short trainings of `tune`

#include <filesystem>
#include <string>
#include <vector>

#include "checkpoints/run_directory.h"

namespace zoo {

/// Throws UsageError if DIR holds a report.html or a report.md that no comparison wrote.
void check_reports(const std::filesystem::path& dir);

/// Throws UsageError if DIR holds something, whatever it is, and `existing` refuses that.
void check_is_free(const std::filesystem::path& dir, ExistingRun existing);

/// Writes DIR/report.html and DIR/report.md, and makes DIR if need be. Throws SystemError.
void write_report_files(const std::filesystem::path& dir, const std::string& page,
                        const std::string& markdown);

/// Makes DIR and DIR/measured. Throws CheckpointError if DIR/measured is a link or a file, SystemError.
void make_comparison_directory(const std::filesystem::path& dir);

/// Removes the files of a comparison, and nothing else; of DIR/models, what is not among `needed`. Throws
/// UsageError before anything is removed: where DIR/runs or DIR/measured holds an entry that no comparison
/// writes, where another program wrote a report, or where one of the `needed` runs would be removed. Throws
/// SystemError.
void remove_comparison(const std::filesystem::path& dir, const std::vector<std::filesystem::path>& needed);

}  // namespace zoo
