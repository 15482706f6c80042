#pragma once
// A card for a part of a model: what holds for a mixer, a norm, an activation or positions of the library or
// of a program, as far as a small model with it shows.

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "costs/scaling.h"
#include "io/config/registry.h"

namespace zoo {

/// The parts that can be probed: keys of `model`.
enum class ProbedPart { attention, norm, activation, position };
constexpr auto config_names(ProbedPart) {
  return std::to_array<std::string_view>({"attention", "norm", "activation", "position"});
}

/// The types of a part.
const TypeList& types_of(ProbedPart part);

/// Whether something that every part should do holds.
///   yes, no   it was tried
///   none      the part has no such thing, or the number is a fact and no test
enum class Holds { yes, no, none };

/// One line of a card.
struct PartCheck {
  std::string name;  // "causal"
  std::string role;  // "decoder" or "encoder": of the model with the part
  Holds holds = Holds::none;
  std::string says;  // one sentence with the numbers
  double value = 0;  // the number behind it, such as the largest difference
};

/// What a task says of the part: the metric that ranks models of the task.
struct PartScore {
  std::string task;    // the name of the configuration
  std::string metric;  // of Metric::label
  double value = 0;
  bool percent = false;
  int64_t steps = 0;
};

struct PartCard {
  ProbedPart part = ProbedPart::attention;
  std::string name;  // of the type: "window"
  std::string type;  // as a configuration selects it, with all its keys: "{type: window, size: 8, …}"
  std::string doc;
  std::vector<PartCheck> checks;
  /// Why models of a role cannot have the part: {role, reason}.
  std::vector<std::pair<std::string, std::string>> refused;
  std::vector<ScalingCurve> curves;  // of the part
  std::vector<PartScore> scores;

  bool all_hold() const;
};

struct ProbeOptions {
  uint64_t seed = 1;
  /// Absent: time and memory are not measured.
  std::optional<ScalingOptions> scaling = ScalingOptions{};
};

/// Probes a part in small models with random weights, on the CPU: a decoder and an encoder, as far as they
/// may have it. Checks are
///   causal     decoder: a token changes no earlier output
///   reach      a fact: how many tokens the last output depends on
///   order      a fact: whether the output changes if two other tokens change places
///   padding    tokens behind the end of a row change nothing
///   stepwise   decoder: token by token gives what the whole row gives at once
///   pieces     decoder: so do two pieces
///   company    the rows beside a row change nothing, to the bit
///   copy       a copy of the model gives the same bits
///   gradients  the gradient along a random direction is the difference quotient
///   training   a few steps lower the loss of a batch
/// Throws ConfigError if no model may have the part.
PartCard probe(ProbedPart part, const Selection& selection, const ProbeOptions& options = {});

/// {"part", "name", "type", "doc", "checks": [{"name", "role", "holds": true, false or null, "value",
/// "says"}], "refused": [{"role", "reason"}], "scaling": [as results.json], "scores": [{"task", "metric",
/// "value", "percent", "steps"}]}
nlohmann::ordered_json to_json(const PartCard& card);

}  // namespace zoo
