#include "serving/http/form.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace zoo {
namespace {

constexpr size_t kMostBoundary = 70, kMostName = 256;
constexpr std::string_view kEndOfLine = "\r\n";

[[noreturn]] void fail(std::string_view problem) {
  throw DataError(fmt::format("the form (multipart/form-data): {}", problem));
}

bool is_token_byte(char c) {
  const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  return is_letter || std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }

/// What begins `text` up to where `is_part` ends, which is taken off.
template <class IsPart>
std::string_view take_while(std::string_view& text, const IsPart& is_part) {
  const size_t n = static_cast<size_t>(std::ranges::find_if_not(text, is_part) - text.begin());
  const auto taken = text.substr(0, n);
  text.remove_prefix(n);
  return taken;
}

bool take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

void skip_blanks(std::string_view& text) {
  take_while(text, [](char c) { return c == ' ' || c == '\t'; });
}

/// A header's value "word; name=value; name="value"", with the names of parameters in lower case.
struct HeaderValue {
  std::string word;  // in lower case
  std::vector<std::pair<std::string, std::string>> parameters = {};

  const std::string* find(std::string_view name) const {
    const auto found = std::ranges::find(parameters, name, &std::pair<std::string, std::string>::first);
    return found == parameters.end() ? nullptr : &found->second;
  }
};

/// What stands between quotes. Browsers write %22 for a quote and a backslash as it is, others \" and \\. A
/// backslash before a quote can therefore be read in two ways.
std::string take_quoted(std::string_view& text, std::string_view header) {
  const size_t end = text.find('"');
  if (end == text.npos) fail(fmt::format("{} has a quote that does not end", header));
  const auto quoted = text.substr(0, end);
  if (quoted.ends_with('\\')) fail(fmt::format("{} has a backslash before a quote", header));
  text.remove_prefix(end + 1);
  return std::string(quoted);
}

HeaderValue read_value(std::string_view text, std::string_view header) {
  HeaderValue value;
  skip_blanks(text);
  value.word = ascii_lower(take_while(text, [](char c) { return is_token_byte(c) || c == '/'; }));
  for (skip_blanks(text); !text.empty(); skip_blanks(text)) {
    if (!take(text, ';')) fail(fmt::format("{} is written in another way than word; name=value", header));
    skip_blanks(text);
    if (text.empty()) break;
    auto name = ascii_lower(take_while(text, is_token_byte));
    if (name.empty() || !take(text, '='))
      fail(fmt::format("{} is written in another way than word; name=value", header));
    if (value.find(name)) fail(fmt::format("{} says {} twice", header, excerpt(name)));
    auto content = take(text, '"') ? take_quoted(text, header) : std::string(take_while(text, is_token_byte));
    value.parameters.emplace_back(std::move(name), std::move(content));
  }
  return value;
}

std::string boundary_of(std::string_view content_type) {
  const auto value = read_value(content_type, "Content-Type");
  const auto* const boundary = value.find("boundary");
  if (!boundary || boundary->empty()) fail("Content-Type has no boundary");
  const auto may_be_in_boundary = [](char c) {
    return is_token_byte(c) || std::string_view("(),/:=? ").find(c) != std::string_view::npos;
  };
  if (boundary->size() > kMostBoundary || boundary->ends_with(' ') ||
      !std::ranges::all_of(*boundary, may_be_in_boundary))
    fail(fmt::format("the boundary '{}' is none", excerpt(*boundary)));
  return *boundary;
}

/// The headers of a part, which end with an empty line. They are taken off `rest`.
FormPart take_head(std::string_view& rest, const FormLimits& limits) {
  FormPart part;
  size_t n_bytes = 0;
  bool has_disposition = false, has_type = false;
  for (;;) {
    const size_t end = rest.substr(0, limits.head_bytes + kEndOfLine.size()).find(kEndOfLine);
    n_bytes += end;
    if (end == rest.npos || n_bytes > limits.head_bytes)
      fail(fmt::format("the headers of a part do not end within {} bytes", limits.head_bytes));
    auto line = rest.substr(0, end);
    rest.remove_prefix(end + kEndOfLine.size());
    if (line.empty()) break;
    if (std::ranges::any_of(line, is_control)) fail("a part has a header with a control character");
    const auto name = ascii_lower(take_while(line, is_token_byte));
    if (name.empty() || !take(line, ':')) fail("a part has a header that is none");
    if (name == "content-disposition") {
      if (std::exchange(has_disposition, true)) fail("a part has Content-Disposition twice");
      const auto value = read_value(line, "Content-Disposition");
      const auto* const field = value.find("name");
      if (value.word != "form-data" || !field || field->empty() || field->size() > kMostName)
        fail("a part has another Content-Disposition than form-data; name=\"…\"");
      if (value.find("name*")) fail("a part has two names: name and name*");
      part.name = *field;
      part.is_file = value.find("filename") || value.find("filename*");
    } else if (name == "content-type") {
      if (std::exchange(has_type, true)) fail("a part has Content-Type twice");
      if (read_value(line, "Content-Type").word.starts_with("multipart/"))
        fail("a part has parts of its own");
    } else if (name == "content-transfer-encoding") {
      const auto coding = read_value(line, "Content-Transfer-Encoding").word;
      if (coding != "binary" && coding != "8bit" && coding != "7bit")
        fail(fmt::format("the coding '{}' of a part is not known here: send bytes as they are",
                         excerpt(coding)));
    }
  }
  if (!has_disposition) fail("a part has no Content-Disposition");
  return part;
}

}  // namespace

bool is_form(std::string_view content_type) {
  const auto type = content_type.substr(0, content_type.find(';'));
  const size_t end = type.find_last_not_of(" \t");
  return end != type.npos && ascii_lower(type.substr(0, end + 1)) == "multipart/form-data";
}

std::vector<FormPart> read_form(std::string_view body, std::string_view content_type,
                                const FormLimits& limits) {
  const auto line = "--" + boundary_of(content_type);  // which begins every part
  const auto delimiter = std::string(kEndOfLine) + line;
  std::vector<FormPart> parts;
  if (!body.starts_with(line)) fail("it does not begin with its boundary");
  body.remove_prefix(line.size());
  while (body.starts_with(kEndOfLine)) {
    body.remove_prefix(kEndOfLine.size());
    if (parts.size() == limits.parts) fail(fmt::format("it has more than {} parts", limits.parts));
    auto part = take_head(body, limits);
    // The empty line before it could be the end of the headers or belong to the boundary.
    if (body.starts_with(line)) fail("a boundary follows the headers of a part at once");
    const size_t end = body.find(delimiter);
    if (end == body.npos) fail(fmt::format("the part {} does not end: was it cut?", excerpt(part.name)));
    part.content = body.substr(0, end);
    if (std::ranges::find(parts, part.name, &FormPart::name) != parts.end())
      fail(fmt::format("it has two parts that are called {}", excerpt(part.name)));
    parts.push_back(std::move(part));
    body.remove_prefix(end + delimiter.size());
  }
  if (body != "--" && body != "--\r\n") fail("something else than a part or the end follows a boundary");
  if (parts.empty()) fail("it has no parts");
  return parts;
}

}  // namespace zoo
