#include "data/images/picture_parts.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "data/directory.h"
#include "io/files.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

enum class Part { train, valid, test };

std::optional<Part> part_called(const fs::path& name) {
  struct Usual {
    std::string_view name;
    Part part;
  };
  constexpr auto usual = std::to_array<Usual>({{"train", Part::train},
                                               {"training", Part::train},
                                               {"val", Part::valid},
                                               {"valid", Part::valid},
                                               {"validation", Part::valid},
                                               {"dev", Part::valid},
                                               {"test", Part::test},
                                               {"testing", Part::test}});
  const auto* const found = std::ranges::find(usual, ascii_lower(name.string()), &Usual::name);
  return found == usual.end() ? std::nullopt : std::optional(found->part);
}

std::vector<fs::path> visible_directories(const fs::path& directory) {
  auto names = names_in(directory);
  std::erase_if(names, [&](const fs::path& name) {
    return name.string().starts_with('.') || !has_directory(directory / name);
  });
  return names;
}

}  // namespace

std::optional<PictureParts> find_picture_parts(const fs::path& directory) {
  const auto names = visible_directories(directory);
  std::array<std::optional<fs::path>, 3> parts;
  std::optional<fs::path> other;
  for (const auto& name : names) {
    const auto part = part_called(name);
    if (!part) {
      other = name;
      continue;
    }
    auto& found = parts.at(static_cast<size_t>(*part));
    if (found) {
      throw DataError(fmt::format("{}: {} and {} are the same part of the pictures: keep one of them",
                                  directory.string(), excerpt(found->filename().string()),
                                  excerpt(name.string())));
    }
    found = directory / name;
  }
  auto& [train, valid, test] = parts;
  const auto fail = [&](std::string_view problem) {
    throw DataError(fmt::format("{}: {}", directory.string(), problem));
  };
  if (!train) {
    if (!other && valid && test) fail("it has parts for validation and test, but none is called train");
    return std::nullopt;
  }
  const bool has_classes = !visible_directories(*train).empty();
  if (other && !has_classes) return std::nullopt;  // a class that is called so
  if (other) {
    fail(
        fmt::format("'{}' stands beside the part train: move it away, or name the parts in a configuration "
                    "(data.train, data.valid, data.test)",
                    excerpt(other->string())));
  }
  for (const auto& part : parts) {
    if (!part || !visible_directories(*part).empty()) continue;
    fail(fmt::format("the part {} has no directories: there must be one for each class, with its images",
                     excerpt(part->filename().string())));
  }
  return PictureParts{.train = *train, .valid = valid, .test = test};
}

}  // namespace zoo
