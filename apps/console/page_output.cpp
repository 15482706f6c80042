#include "apps/console/page_output.h"

#include <iostream>

#include "base/error.h"
#include "io/files.h"

namespace zoo {

void add_page(CLI::App& command, std::optional<std::filesystem::path>& out) {
  command.add_option("--out", out, "Also write a page, one HTML file")->type_name("FILE");
}

void write_page(const std::filesystem::path& out, const std::string& page) {
  if (out.empty()) throw UsageError("--out: the name is empty: give a file");
  write_file_atomically(out, page, Follow::everything);
  std::cerr << "page: " << out.string() << '\n';
}

}  // namespace zoo
