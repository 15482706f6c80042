#include "comparison/planning/comparison_directory.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "base/error.h"
#include "io/files.h"
#include "io/json_document.h"
#include "io/paths.h"
#include "pages/json.h"
#include "pages/tables/report_document.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

/// Not for a link to one.
bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(fs::symlink_status(path, ignored));
}

std::vector<fs::path> entries_of(const fs::path& dir) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator at(dir, error), end; !error && at != end; at.increment(error))
    entries.push_back(at->path());
  if (error) throw SystemError(fmt::format("cannot read '{}': {}", dir.string(), error.message()));
  return entries;
}

/// "seed-3", "seed-3.yaml" → "3"; nothing for other names.
std::optional<std::string> seed_in(std::string_view name) {
  constexpr std::string_view prefix = "seed-";
  if (!name.starts_with(prefix)) return std::nullopt;
  const auto rest = name.substr(prefix.size());
  const auto digits = static_cast<size_t>(
      std::ranges::find_if_not(rest, [](unsigned char c) { return std::isdigit(c) != 0; }) - rest.begin());
  const auto ending = rest.substr(digits);
  if (digits == 0 || !(ending.empty() || ending == ".yaml" || ending == ".log")) return std::nullopt;
  return std::string(rest.substr(0, digits));
}

/// The first entry of DIR/runs that no comparison wrote. A comparison writes the configuration of a training
/// beside it.
std::optional<fs::path> foreign_run(const fs::path& runs) {
  for (const auto& variant : entries_of(runs)) {
    if (!is_folder(variant)) return variant;
    for (const auto& entry : entries_of(variant)) {
      const auto name = entry.filename().string();
      const auto seed = seed_in(name);
      const bool ours = seed && is_there(variant / fmt::format("seed-{}.yaml", *seed));
      if (!ours && !is_temporary(name)) return entry;
    }
  }
  return std::nullopt;
}

/// The first entry of DIR/models that is no copied model.
std::optional<fs::path> foreign_model(const fs::path& models) {
  for (const auto& variant : entries_of(models)) {
    if (!is_folder(variant)) return variant;
    for (const auto& entry : entries_of(variant)) {
      const auto name = entry.filename().string();
      const bool ours = seed_in(name) && is_folder(entry) && is_there(entry / "config.yaml");
      if (!ours && !is_temporary(name)) return entry;
    }
  }
  return std::nullopt;
}

std::optional<fs::path> foreign_measurement(const fs::path& measured) {
  for (const auto& entry : entries_of(measured)) {
    const auto name = entry.filename().string();
    if (is_folder(entry) || !(name.ends_with(".json") || is_temporary(name))) return entry;
  }
  return std::nullopt;
}

bool is_results(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_regular_file(fs::symlink_status(path, ignored))) return false;
  const auto json = ordered_json_or_null(read_json_text(path));
  return text_at(json, "schema").starts_with("transformer-zoo/comparison/");
}

/// Whether this is a page of a comparison, which may still run and has no results then (report_page.html).
bool is_report_page(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_regular_file(fs::symlink_status(path, ignored))) return false;
  const auto page = read_file(path, Follow::nothing);
  return std::string_view(page).substr(0, 1000).find(R"(<meta name="generator" content="zoo compare">)") !=
         std::string_view::npos;
}

constexpr auto kReports = std::to_array<std::string_view>({"results.json", "report.html", "report.md"});

/// The first entry of a folder with runs and measurements that no comparison wrote.
std::optional<fs::path> foreign_training(const fs::path& dir) {
  if (is_folder(dir / "runs")) {
    if (auto found = foreign_run(dir / "runs")) return found;
  } else if (is_there(dir / "runs")) {
    return dir / "runs";
  }
  if (is_folder(dir / "measured")) {
    if (auto found = foreign_measurement(dir / "measured")) return found;
  } else if (is_there(dir / "measured")) {
    return dir / "measured";
  }
  return std::nullopt;
}

/// The first entry that a new comparison would replace, although no comparison wrote it.
std::optional<fs::path> foreign_entry(const fs::path& dir) {
  if (auto found = foreign_training(dir)) return found;
  if (is_folder(dir / "tuning")) {
    for (const auto& entry : entries_of(dir / "tuning")) {
      if (entry.filename() != "runs" && entry.filename() != "measured") return entry;
    }
    if (auto found = foreign_training(dir / "tuning")) return found;
  } else if (is_there(dir / "tuning")) {
    return dir / "tuning";
  }
  if (is_folder(dir / "models")) {
    if (auto found = foreign_model(dir / "models")) return found;
  } else if (is_there(dir / "models")) {
    return dir / "models";
  }
  if (is_results(dir / "results.json")) return std::nullopt;
  for (const auto name : kReports) {
    if (is_there(dir / name) && !is_report_page(dir / name)) return dir / name;
  }
  return std::nullopt;
}

}  // namespace

void check_is_free(const fs::path& dir, ExistingRun existing) {
  std::error_code ignored;
  const bool is_free =
      !fs::exists(dir, ignored) || (fs::is_directory(dir, ignored) && fs::is_empty(dir, ignored));
  if (is_free || existing != ExistingRun::refuse) return;
  throw UsageError(
      fmt::format("{} exists: ExistingRun::resume goes on with it, ExistingRun::replace replaces it, "
                  "CompareOptions::dir chooses another",
                  dir.string()));
}

void write_report_files(const fs::path& dir, const std::string& page, const std::string& markdown) {
  if (!dir.empty()) make_directory(dir);
  write_file_atomically(dir / "report.html", page);
  write_file_atomically(dir / "report.md", markdown);
}

void check_reports(const fs::path& dir) {
  if (is_results(dir / "results.json") || is_report_page(dir / "report.html")) return;
  for (const auto* const name : {"report.html", "report.md"}) {
    if (is_there(dir / name)) {
      throw UsageError(
          fmt::format("{}: no comparison has written this: move it away, or give another CompareOptions::dir",
                      (dir / name).string()));
    }
  }
}

void make_comparison_directory(const fs::path& dir) {
  make_directory(dir);
  make_subdirectory(dir / "measured");
}

void remove_comparison(const fs::path& dir, const std::vector<fs::path>& needed) {
  for (const auto& run : needed) {
    if (is_within(resolved(run), resolved(dir / "runs")) ||
        is_within(resolved(run), resolved(dir / "tuning"))) {
      throw UsageError(
          fmt::format("{}: ExistingRun::replace would remove this run, which is to be compared: give "
                      "a CompareOptions::dir other than {}",
                      run.string(), dir.string()));
    }
  }
  if (const auto foreign = foreign_entry(dir)) {
    throw UsageError(
        fmt::format("{}: no comparison has written this, so ExistingRun::replace removes nothing: "
                    "move it away, or give another CompareOptions::dir",
                    foreign->string()));
  }
  const auto remove = [&](const fs::path& name) {
    std::error_code error;
    fs::remove_all(dir / name, error);
    if (error)
      throw SystemError(fmt::format("cannot remove '{}': {}", (dir / name).string(), error.message()));
  };
  if (is_folder(dir / "models")) {
    for (const auto& model : entries_of(dir / "models")) {
      const auto inside = [&](const fs::path& run) { return is_within(resolved(run), resolved(model)); };
      if (std::ranges::none_of(needed, inside)) remove(fs::path("models") / model.filename());
    }
  }
  remove("runs");
  remove("tuning");
  remove("measured");
  for (const auto name : kReports) remove(name);
}

}  // namespace zoo
