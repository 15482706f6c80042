#pragma once
// The page that a subcommand may write.

#include <filesystem>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

namespace zoo {

/// Refuses a place where no file can be written, before the work whose result goes there.
CLI::Validator writable_file();

/// Declares --out.
void add_page(CLI::App& command, std::optional<std::filesystem::path>& out);
/// Writes a page, and says where on stderr.
void write_page(const std::filesystem::path& out, const std::string& page);

}  // namespace zoo
