#include "io/json_document.h"

#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "io/files.h"

namespace zoo {
namespace {

/// Builds the value from the parser's events, within the limits. (nlohmann's own parser with a callback looks
/// through a list again after each of its elements.)
template <class Json>
class JsonBuilder final : public nlohmann::json_sax<Json> {
  using Sax = nlohmann::json_sax<Json>;
  static constexpr bool is_ordered = std::is_same_v<Json, nlohmann::ordered_json>;

 public:
  Json take() { return std::move(root_); }

  bool null() override { return add(nullptr, kScalar); }
  bool boolean(bool value) override { return add(value, kScalar); }
  bool number_integer(typename Sax::number_integer_t value) override { return add(value, kScalar); }
  bool number_unsigned(typename Sax::number_unsigned_t value) override { return add(value, kScalar); }
  bool number_float(typename Sax::number_float_t value, const typename Sax::string_t&) override {
    return add(value, kScalar);
  }
  bool string(typename Sax::string_t& value) override {
    const size_t size = value.size();
    return add(std::move(value), kString + size);
  }
  bool binary(typename Sax::binary_t&) override { return false; }  // not in a text

  bool start_object(size_t) override { return open(Json::object()); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(typename Sax::string_t& name) override {
    if (is_ordered && open_.back()->size() == JsonLimits::ordered_members)
      throw DataError(fmt::format("a JSON object with more than {} members", JsonLimits::ordered_members));
    charge(kMember + name.size());
    key_ = std::move(name);
    return true;
  }

  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    constexpr int number_overflow = 406;
    if (error.id == number_overflow) throw DataError("JSON with a number that is out of range");
    throw DataError(fmt::format("not valid JSON at byte {}", position));
  }

 private:
  // About the bytes of a value in its list or object, which grow by doubling.
  static constexpr size_t kScalar = 32, kString = 48, kContainer = 96, kMember = 112;

  void charge(size_t bytes) {
    memory_ += bytes;
    if (memory_ > JsonLimits::memory)
      throw DataError(fmt::format("JSON that takes more than {} MiB", JsonLimits::memory >> 20));
  }

  /// The place of the next value.
  Json& next() {
    if (open_.empty()) return root_;
    if (open_.back()->is_object()) return (*open_.back())[key_];
    open_.back()->push_back(nullptr);
    return open_.back()->back();
  }

  template <class Value>
  bool add(Value&& value, size_t bytes) {
    charge(bytes);
    next() = std::forward<Value>(value);
    return true;
  }

  bool open(Json empty) {
    if (open_.size() == JsonLimits::depth)
      throw DataError(fmt::format("JSON that is nested deeper than {} levels", JsonLimits::depth));
    charge(kContainer);
    Json& place = next();
    place = std::move(empty);
    open_.push_back(&place);  // stays in place: its parent gets no further value before it is closed
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  Json root_;
  std::vector<Json*> open_;
  std::string key_;
  size_t memory_ = 0;
};

template <class Json>
Json parse(std::string_view text) {
  if (text.size() > JsonLimits::bytes)
    throw DataError(fmt::format("larger than {} MiB, too large for JSON", JsonLimits::bytes >> 20));
  // The parser would take a zero byte for the end and ignore the rest.
  if (const size_t zero = text.find('\0'); zero != text.npos)
    throw DataError(fmt::format("not valid JSON at byte {}", zero + 1));
  JsonBuilder<Json> builder;
  Json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

template <class Json>
std::string written(const Json& value, int indent) {
  try {
    return value.dump(indent);
  } catch (const typename Json::type_error&) {
    throw DataError("a text that is to be written as JSON is not UTF-8");
  }
}

template <class Json>
std::string shown(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
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

std::string json_text(const nlohmann::json& value, int indent) { return written(value, indent); }
std::string json_text(const nlohmann::ordered_json& value, int indent) { return written(value, indent); }
std::string shown_json(const nlohmann::json& value, int indent) { return shown(value, indent); }
std::string shown_json(const nlohmann::ordered_json& value, int indent) { return shown(value, indent); }

std::string read_json_text(const std::filesystem::path& path) {
  std::error_code unknown;  // read_file() says why
  const auto size = std::filesystem::file_size(path, unknown);
  if (!unknown && size > JsonLimits::bytes)
    throw DataError(fmt::format("{}: larger than {} MiB", path.string(), JsonLimits::bytes >> 20));
  return read_file(path, Follow::nothing);
}

}  // namespace zoo
