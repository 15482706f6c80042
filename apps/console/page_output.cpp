#include "apps/console/page_output.h"

#include <unistd.h>

#include <iostream>
#include <system_error>

#include <fmt/format.h>

#include "io/files.h"

namespace zoo {

CLI::Validator writable_file() {
  const auto problem_of = [](const std::string& text) -> std::string {
    const std::filesystem::path path = text;
    const auto directory = path.has_parent_path() ? path.parent_path() : ".";
    if (text.empty()) return "the name is empty: give a file";
    if (has_directory(path)) return fmt::format("{} is a directory: give a file", text);
    if (!has_directory(directory))
      return fmt::format("there is no directory {}: make it, or name another one", directory.string());
    // A file is replaced; a pipe or a device is written to.
    std::error_code ignored;
    const bool is_replaced = !std::filesystem::exists(path, ignored) || has_file(path);
    const auto& written = is_replaced ? directory : path;
    if (::access(written.c_str(), W_OK) == 0) return "";
    return fmt::format("{} cannot be written: name another file", text);
  };
  return CLI::Validator(problem_of, "");
}

void add_page(CLI::App& command, std::optional<std::filesystem::path>& out) {
  command.add_option("--out", out, "Also write a page, one HTML file")
      ->type_name("FILE")
      ->check(writable_file());
}

void write_page(const std::filesystem::path& out, const std::string& page) {
  write_file_atomically(out, page, Follow::everything);
  std::cerr << "page: " << out.string() << '\n';
}

}  // namespace zoo
