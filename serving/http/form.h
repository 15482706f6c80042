#pragma once
// Bodies of the type multipart/form-data (RFC 7578), which carry files.
//
// Whatever two readers could read in two ways is refused: what stands before the first part or after the last
// one, two parts of one name, headers that are repeated or continue on a second line, lines that end with LF
// alone. Clients such as browsers, curl, httpx and requests write none of that. The test fuzz.form reads
// mutated bodies.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zoo {

/// A part of a form. It refers to the body.
struct FormPart {
  std::string name;
  bool is_file = false;  // whether it has a file's name, which nothing here uses
  std::string_view content;
};

struct FormLimits {
  size_t parts = 32;
  size_t head_bytes = 4096;  // of the headers of one part
};

/// Whether a header Content-Type says multipart/form-data, with any parameters.
bool is_form(std::string_view content_type);

/// The parts of a body, in its order, with different names. `content_type` is the header that is_form().
/// Throws DataError, one line: no boundary, or not what a form is.
std::vector<FormPart> read_form(std::string_view body, std::string_view content_type,
                                const FormLimits& limits = {});

}  // namespace zoo
