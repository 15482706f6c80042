#include "io/json_document.h"

#include <array>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include "base/error.h"
#include "io/files.h"

namespace zoo {
namespace {

/// Watches a parser: the callback of nlohmann's parser, called for each value before it is kept.
class Guard {
 public:
  template <class Json>
  void check(int depth, typename Json::parse_event_t event, const Json& value) {
    using Event = typename Json::parse_event_t;
    // About the bytes of a value in its list or object, which grow by doubling.
    constexpr size_t scalar = 32, string = 48, container = 96, member = 112;
    switch (event) {
      case Event::object_start:
      case Event::array_start:
        if (depth >= JsonLimits::depth)
          throw DataError(fmt::format("JSON that is nested deeper than {} levels", JsonLimits::depth));
        members_[static_cast<size_t>(depth) + 1] = 0;
        return charge(container);
      case Event::key:
        if (++members_[static_cast<size_t>(depth)] > JsonLimits::members)
          throw DataError(fmt::format("a JSON object with more than {} members", JsonLimits::members));
        return charge(member + value.template get_ref<const std::string&>().size());
      case Event::value:
        return charge(value.is_string() ? string + value.template get_ref<const std::string&>().size()
                                        : scalar);
      case Event::object_end:
      case Event::array_end:
        return;
    }
  }

 private:
  void charge(size_t bytes) {
    memory_ += bytes;
    if (memory_ > JsonLimits::memory)
      throw DataError(fmt::format("JSON that takes more than {} MiB", JsonLimits::memory >> 20));
  }

  size_t memory_ = 0;
  std::array<size_t, JsonLimits::depth + 2> members_{};  // of the open object at each depth
};

template <class Json>
Json parse(std::string_view text) {
  if (text.size() > JsonLimits::bytes)
    throw DataError(fmt::format("larger than {} MiB, too large for JSON", JsonLimits::bytes >> 20));
  // The parser would take a zero byte for the end and ignore the rest.
  if (const size_t zero = text.find('\0'); zero != text.npos)
    throw DataError(fmt::format("not valid JSON at byte {}", zero + 1));
  Guard guard;
  try {
    return Json::parse(text.begin(), text.end(),
                       [&](int depth, typename Json::parse_event_t event, Json& value) {
                         guard.check<Json>(depth, event, value);
                         return true;
                       });
  } catch (const typename Json::parse_error& error) {
    throw DataError(fmt::format("not valid JSON at byte {}", error.byte));
  } catch (const typename Json::exception&) {
    throw DataError("JSON with a number that is out of range");
  }
}

}  // namespace

nlohmann::json parse_json(std::string_view text) { return parse<nlohmann::json>(text); }

nlohmann::ordered_json parse_ordered_json(std::string_view text) {
  return parse<nlohmann::ordered_json>(text);
}

nlohmann::ordered_json ordered_json_or_null(std::string_view text) {
  try {
    return parse_ordered_json(text);
  } catch (const DataError&) {
    return nullptr;
  }
}

std::string read_json_text(const std::filesystem::path& path) {
  std::error_code unknown;  // read_file() says why
  const auto size = std::filesystem::file_size(path, unknown);
  if (!unknown && size > JsonLimits::bytes)
    throw DataError(fmt::format("{}: larger than {} MiB", path.string(), JsonLimits::bytes >> 20));
  return read_file(path, Follow::nothing);
}

}  // namespace zoo
