#pragma once
// JSON from files that anybody may have written. nlohmann's parser alone takes any depth and any size: from
// 4 MB of "[{[{…" it makes 1 GB of values.

#include <filesystem>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace zoo {

/// The most that a JSON text may hold.
struct JsonLimits {
  static constexpr size_t bytes = size_t{256} << 20;   // of the text
  static constexpr size_t memory = size_t{256} << 20;  // of its values, roughly
  static constexpr size_t depth = 64;                  // of lists and objects in each other
  // Of one object in the order of the text: nlohmann's ordered objects search all.
  static constexpr size_t ordered_members = 1000;
};

/// The value of a JSON text. Throws DataError: not JSON, beyond JsonLimits, or a number that is out of range.
nlohmann::json parse_json(std::string_view text);
/// The same with the members of objects in the order of the text.
nlohmann::ordered_json parse_ordered_json(std::string_view text);

/// The same, but null for a text that parse_ordered_json() refuses: for lines that a crash may have cut, and
/// for files that can be made again.
nlohmann::ordered_json ordered_json_or_null(std::string_view text);

/// The JSON text of a value: one line, or lines that are indented by `indent`. These functions and those
/// above are here so that a source need not compile nlohmann's parser and writer again. Throws DataError if a
/// text of the value is not UTF-8.
std::string json_text(const nlohmann::json& value, int indent = -1);
std::string json_text(const nlohmann::ordered_json& value, int indent = -1);
/// The same for people and clients: bytes that are not UTF-8 become U+FFFD.
std::string shown_json(const nlohmann::json& value, int indent = -1);
std::string shown_json(const nlohmann::ordered_json& value, int indent = -1);

/// The text of a file of a run directory that is JSON or lines of JSON; links are not followed. Throws
/// DataError as read_file(), and for a file of more than JsonLimits::bytes.
std::string read_json_text(const std::filesystem::path& path);

}  // namespace zoo
