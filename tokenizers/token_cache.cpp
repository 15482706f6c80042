#include "tokenizers/token_cache.h"

#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"

namespace zoo {

CachedStore::CachedStore(std::string key)
    : root_(key.empty() ? std::filesystem::path() : cache_root()), key_(std::move(key)) {}

std::vector<TokenStore> CachedStore::open_parts() const {
  std::vector<TokenStore> parts;
  while (auto part = opened(part_path(parts.size()))) parts.push_back(*std::move(part));
  return parts;
}

TokenStore CachedStore::write_part(size_t number, const TokenStore& part) const {
  return written(part_path(number), {part}).value_or(part);
}

std::optional<TokenStore> CachedStore::join(const std::vector<TokenStore>& parts) const {
  auto whole = written(path(), parts);
  std::error_code ignored;
  for (size_t i = 0; whole && i < parts.size(); ++i) std::filesystem::remove(part_path(i), ignored);
  return whole;
}

std::filesystem::path CachedStore::part_path(size_t number) const {
  return root_ / fmt::format("{}.part-{}", key_, number);
}

std::optional<TokenStore> CachedStore::opened(const std::filesystem::path& path) const {
  return root_.empty() ? std::nullopt : open_store(path, key_);
}

std::optional<TokenStore> CachedStore::written(const std::filesystem::path& path,
                                               const std::vector<TokenStore>& parts) const {
  if (root_.empty()) return std::nullopt;
  try {
    std::error_code ignored;  // a failure here shows again in the write
    std::filesystem::create_directories(root_, ignored);
    write_store(path, key_, parts);
    return open_store(path, key_);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace zoo
