#include "io/json_document.h"

#include <array>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include "base/error.h"
#include "io/files.h"

namespace zoo {
namespace {

/// Reads a text without making values, and stops where it goes beyond JsonLimits. (nlohmann's parser has a
/// callback for that, but with one it searches a list again for each object in it.)
class LimitCheck : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return charge(kScalar); }
  bool boolean(bool) override { return charge(kScalar); }
  bool number_integer(number_integer_t) override { return charge(kScalar); }
  bool number_unsigned(number_unsigned_t) override { return charge(kScalar); }
  bool number_float(number_float_t, const string_t&) override { return charge(kScalar); }
  bool string(string_t& value) override { return charge(kString + value.size()); }
  bool binary(binary_t&) override { return false; }  // JSON has none
  bool start_object(size_t) override { return open(); }
  bool start_array(size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    if (++members_[static_cast<size_t>(depth_)] > JsonLimits::members)
      throw DataError(fmt::format("a JSON object with more than {} members", JsonLimits::members));
    return charge(kMember + name.size());
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception& error) override {
    constexpr int out_of_range = 406;  // a number's exception; the others are about the text
    if (error.id == out_of_range) throw DataError("JSON with a number that is out of range");
    throw DataError(fmt::format("not valid JSON at byte {}", position));
  }

 private:
  // About the bytes of a value in its list or object, which grow by doubling.
  static constexpr size_t kScalar = 32, kString = 48, kContainer = 96, kMember = 112;

  bool open() {
    if (depth_ >= JsonLimits::depth)
      throw DataError(fmt::format("JSON that is nested deeper than {} levels", JsonLimits::depth));
    members_[static_cast<size_t>(++depth_)] = 0;
    return charge(kContainer);
  }
  bool close() {
    --depth_;
    return true;
  }
  bool charge(size_t bytes) {
    memory_ += bytes;
    if (memory_ > JsonLimits::memory)
      throw DataError(fmt::format("JSON that takes more than {} MiB", JsonLimits::memory >> 20));
    return true;
  }

  int depth_ = 0;
  size_t memory_ = 0;
  std::array<size_t, JsonLimits::depth + 1> members_{};  // of the open object at each depth
};

template <class Json>
Json parse(std::string_view text) {
  if (text.size() > JsonLimits::bytes)
    throw DataError(fmt::format("larger than {} MiB, too large for JSON", JsonLimits::bytes >> 20));
  // The parser would take a zero byte for the end and ignore the rest.
  if (const size_t zero = text.find('\0'); zero != text.npos)
    throw DataError(fmt::format("not valid JSON at byte {}", zero + 1));
  LimitCheck check;
  nlohmann::json::sax_parse(text.begin(), text.end(), &check);
  return Json::parse(text.begin(), text.end());
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
