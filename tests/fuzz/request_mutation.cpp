// Mutations of requests that keep the body JSON: a line, then an object.

#include <limits>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/fuzz/mutation.h"

namespace zoo::fuzz {
namespace {

using Json = nlohmann::ordered_json;

struct Request {
  std::string line;
  Json body;
};

Request read_request(const std::string& seed) {
  const size_t end = std::min(seed.find('\n'), seed.size());
  return {
      .line = seed.substr(0, end),
      .body = Json::parse(seed.substr(std::min(end + 1, seed.size())), nullptr, /*allow_exceptions=*/false)};
}

/// Every value of a document, the outer ones first.
void collect(Json& value, std::vector<Json*>& values) {
  values.push_back(&value);
  if (!value.is_structured()) return;
  for (auto& inner : value) collect(inner, values);
}

Json nested(int64_t depth, bool lists) {
  Json value = 1;
  for (int64_t i = 0; i < depth; ++i) value = lists ? Json::array({value}) : Json{{"type", value}};
  return value;
}

/// A value that a key may not expect.
Json odd_value(CounterRandom& random) {
  switch (random.below(16)) {
    case 0:
      return nullptr;
    case 1:
      return random.below(2) == 0;
    case 2:
      return random.below(9) - 3;
    case 3:
      return std::numeric_limits<int64_t>::max() - random.below(2);
    case 4:
      return std::numeric_limits<uint64_t>::max();
    case 5:
      return std::numeric_limits<int64_t>::min();
    case 6:
      return static_cast<double>(random.below(2001) - 1000) / 64;
    case 7:
      return random.below(2) == 0 ? 1e308 : -5e-324;
    case 8:
      return "";
    case 9:
      return std::string(static_cast<size_t>(random.below(3000)), 'a');
    case 10:
      return std::string("\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", 9) + '\0' + "abc";
    case 11:
      return random.below(2) == 0 ? "abc" : "(a*)*b|[^a-z]{2,5}";
    case 12:
      return Json::array();
    case 13:
      return Json::object();
    case 14:
      return nested(random.below(random.below(50) == 0 ? 3000 : 12), random.below(2) == 0);
    default: {
      auto list = Json::array();
      for (int64_t i = random.below(40); i > 0; --i) list.push_back(random.below(40) - 4);
      return list;
    }
  }
}

void change(CounterRandom& random, Json& body, const std::vector<Request>& others) {
  std::vector<Json*> values;
  collect(body, values);
  auto& value = *values[static_cast<size_t>(random.below(std::ssize(values)))];
  auto donor = others[static_cast<size_t>(random.below(std::ssize(others)))].body;
  std::vector<Json*> given;
  collect(donor, given);
  const auto& foreign = *given[static_cast<size_t>(random.below(std::ssize(given)))];
  if (value.is_object() && !value.empty() && random.below(2) == 0) {
    const auto at = std::next(value.begin(), random.below(static_cast<int64_t>(value.size())));
    if (random.below(3) == 0) {
      value.erase(at);
    } else if (donor.is_object() && !donor.empty()) {
      const auto from = std::next(donor.begin(), random.below(static_cast<int64_t>(donor.size())));
      value[from.key()] = from.value();
    }
    return;
  }
  if (value.is_array() && random.below(2) == 0) {
    value.push_back(random.below(2) == 0 || value.empty() ? odd_value(random) : value.front());
    return;
  }
  value = random.below(3) == 0 ? foreign : odd_value(random);
}

}  // namespace

std::string mutate_request(CounterRandom& random, const Seeds& seeds) {
  if (random.below(4) == 0) return mutate_text(random, seeds);
  std::vector<Request> requests;
  for (const auto& seed : seeds) {
    if (auto request = read_request(seed); !request.body.is_discarded())
      requests.push_back(std::move(request));
  }
  auto request = requests[static_cast<size_t>(random.below(std::ssize(requests)))];
  for (int64_t i = 1 + random.below(3); i > 0; --i) change(random, request.body, requests);
  return request.line + '\n' + request.body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace zoo::fuzz
