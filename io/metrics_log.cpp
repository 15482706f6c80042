#include "io/metrics_log.h"

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "io/files.h"
#include "io/json_document.h"
#include "io/output_file.h"
#include "io/tensorboard.h"

namespace zoo {
namespace {

constexpr const char* kFileName = "metrics.jsonl";

/// Makes the directory, and drops the lines of metrics.jsonl that come after `step` or that a crash left
/// unfinished.
std::filesystem::path prepare(const std::filesystem::path& run_dir, int64_t step) {
  make_directory(run_dir);
  const auto path = run_dir / kFileName;
  if (!is_there(path)) return path;

  std::string old;
  try {
    old = read_json_text(path);
  } catch (const DataError& failure) {
    throw CheckpointError(failure.what());
  }
  std::string kept;
  for (size_t begin = 0, end; (end = old.find('\n', begin)) != old.npos; begin = end + 1) {
    const std::string_view line = std::string_view(old).substr(begin, end - begin);
    if (!line.starts_with('{')) continue;  // to parse what is no row takes long
    const auto entry = ordered_json_or_null(line);
    if (!entry.is_object()) continue;
    const auto at = entry.find("step");
    if (at == entry.end() || !at->is_number_integer() || at->get<double>() > static_cast<double>(step))
      continue;
    kept.append(line).append("\n");
  }
  if (kept != old) write_file_atomically(path, kept);
  return path;
}

std::string json_number(double value) { return std::isfinite(value) ? fmt::format("{}", value) : "null"; }

}  // namespace

struct MetricsLog::Impl {
  Impl(const std::filesystem::path& path, const std::filesystem::path& run_dir, int64_t step)
      : lines(path, OutputFile::Mode::kAppend), events(run_dir, step) {}

  OutputFile lines;
  EventFile events;
};

std::string metric_text(double value) {
  return std::abs(value) < 1e6 ? fmt::format("{:.4f}", value) : fmt::format("{:.3e}", value);
}

nlohmann::ordered_json last_metrics_row(const std::filesystem::path& run_dir) try {
  const auto text = read_file(run_dir / kFileName, Follow::nothing);
  const size_t end = text.rfind('\n');
  if (end == text.npos || end == 0) return nullptr;
  const size_t begin = text.rfind('\n', end - 1) + 1;  // 0 for the first line
  return ordered_json_or_null(std::string_view(text).substr(begin, end - begin));
} catch (const DataError&) {
  return nullptr;
}

MetricsLog::MetricsLog(const std::filesystem::path& run_dir, int64_t step) {
  const auto path = prepare(run_dir, step);
  impl_ = std::make_unique<Impl>(path, run_dir, step);
}

MetricsLog::~MetricsLog() = default;

void MetricsLog::write(int64_t step, int64_t tokens, double seconds, const Metrics& metrics) {
  std::string line =
      fmt::format(R"({{"step": {}, "tokens": {}, "seconds": {})", step, tokens, json_number(seconds));
  for (const auto& [name, value] : metrics) {
    line += fmt::format(", {}: {}", json_text(nlohmann::json(name)), json_number(value));
  }
  impl_->lines.write(line + "}\n");

  Metrics scalars = metrics;
  scalars["tokens"] = static_cast<double>(tokens);
  scalars["seconds"] = seconds;
  impl_->events.write(step, scalars);
}

}  // namespace zoo
