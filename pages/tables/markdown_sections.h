#pragma once
// The sections of the Markdown report below its table. Each is empty where there is nothing to show.

#include <string>

#include "pages/json.h"
#include "pages/tables/markdown_text.h"

namespace zoo::markdown {

/// The metric at four points of each run's learning curve.
std::string curves(const Json& results, const MetricText& metric);

/// The metric on texts of lengths other than the training length.
std::string lengths(const Json& results, const MetricText& metric);

/// The fit of loss against compute.
std::string sizes(const Json& results);

/// Bits per byte on slices of the texts, and verdicts against the baseline.
std::string slices(const Json& results);

/// How evenly the experts of runs with a mixture of experts work.
std::string experts(const Json& results);
/// The commonest mistakes of runs that classify.
std::string mistakes(const Json& results);

/// The candidates of each run, and which one it chose.
std::string tuning(const Json& results, const MetricText& metric);

/// Task, metric, budget, tests and machine.
std::string facts(const Json& results);

/// What each key of a grid changes on average; empty without such effects.
std::string effects(const Json& results, const MetricText& metric);
/// What a comparison lacks of what the field asks for; empty without gaps.
std::string gaps(const Json& results);

}  // namespace zoo::markdown
