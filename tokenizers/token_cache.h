#pragma once
// Token ids that were computed before, in files that many runs share.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/cache_root.h"
#include "tokenizers/token_store.h"

namespace zoo {

/// The files of a store in the cache. A cache only saves time: what cannot be written is not, and a damaged
/// file is none.
class CachedStore {
 public:
  /// `key`: the hex digest of everything that the ids depend on; empty: they are not cached.
  explicit CachedStore(std::string key);

  std::optional<TokenStore> open() const { return opened(path()); }
  /// The parts that were written before, from the first on.
  std::vector<TokenStore> open_parts() const;
  /// The part as it was written; as it is in memory if it cannot be written.
  TokenStore write_part(size_t number, const TokenStore& part) const;
  /// All parts as one, which removes their files; nothing if it cannot be written.
  std::optional<TokenStore> join(const std::vector<TokenStore>& parts) const;
  /// The whole store as it was written; as it is in memory if it cannot be written.
  TokenStore write(const TokenStore& store) const { return written(path(), {store}).value_or(store); }

 private:
  std::filesystem::path path() const { return root_ / (key_ + ".tokens"); }
  std::filesystem::path part_path(size_t number) const;
  std::optional<TokenStore> opened(const std::filesystem::path& path) const;
  std::optional<TokenStore> written(const std::filesystem::path& path,
                                    const std::vector<TokenStore>& parts) const;

  std::filesystem::path root_;
  std::string key_;
};

}  // namespace zoo
