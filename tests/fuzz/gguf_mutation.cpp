// Mutations that know the keys of a GGUF file.

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "tests/fuzz/mutation.h"

namespace zoo::fuzz {
namespace {

/// Reads numbers from a file that the fuzzer itself has written.
class KeyScanner {
 public:
  explicit KeyScanner(const std::string& file) : file_(file) {}

  template <class T>
  T number() {
    T value{};
    if (position_ + sizeof value <= file_.size()) std::memcpy(&value, file_.data() + position_, sizeof value);
    position_ += sizeof value;
    return value;
  }
  void skip(uint64_t bytes) { position_ += bytes; }
  void skip_value(uint32_t type) {
    constexpr size_t sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    if (type == 8) return skip(number<uint64_t>());
    if (type != 9) return skip(type < std::size(sizes) ? sizes[type] : 0);
    const auto element = number<uint32_t>();
    const auto n = number<uint64_t>();
    for (uint64_t i = 0; i < n && position_ < file_.size(); ++i) skip_value(element);
  }
  size_t position() const { return std::min<size_t>(position_, file_.size()); }

 private:
  const std::string& file_;
  uint64_t position_ = 0;
};

/// Bytes of the value, or one at the end: a number becomes another one, a letter of a text or a list another
/// one.
void change_within(CounterRandom& random, std::string& key) {
  const auto n = static_cast<int64_t>(key.size());
  const int64_t from_end = std::min<int64_t>(n, random.below(2) == 0 ? 4 : 200);
  const auto at = static_cast<size_t>(n - 1 - random.below(std::max<int64_t>(from_end, 1)));
  if (n > 0) key[at] = static_cast<char>(random.below(3) == 0 ? random.below(256) : random.below(34));
}

struct Parts {
  std::vector<std::string> keys;  // each with its value
  std::string rest;               // tensors and data
  uint64_t n_tensors = 0;
};

Parts parts_of(const std::string& file) {
  KeyScanner scanner(file);
  scanner.skip(8);
  Parts parts;
  parts.n_tensors = scanner.number<uint64_t>();
  const auto n = scanner.number<uint64_t>();
  for (uint64_t i = 0; i < n && scanner.position() < file.size(); ++i) {
    const size_t begin = scanner.position();
    scanner.skip(scanner.number<uint64_t>());
    scanner.skip_value(scanner.number<uint32_t>());
    parts.keys.push_back(file.substr(begin, scanner.position() - begin));
  }
  parts.rest = file.substr(scanner.position());
  return parts;
}

}  // namespace

std::string mutate_gguf(CounterRandom& random, const Seeds& seeds) {
  const auto any = [&](const auto& list) -> const auto& {
    return list[static_cast<size_t>(random.below(static_cast<int64_t>(list.size())))];
  };
  const auto& seed = any(seeds);
  auto parts = parts_of(seed);
  const int64_t n_changes = 1 + random.below(3);
  for (int64_t i = 0; i < n_changes && !parts.keys.empty(); ++i) {
    const auto at = parts.keys.begin() + random.below(static_cast<int64_t>(parts.keys.size()));
    switch (random.below(6)) {
      case 0:
        parts.keys.erase(at);
        break;
      case 1:
        if (const auto other = parts_of(any(seeds)); !other.keys.empty()) *at = any(other.keys);
        break;
      case 2:
        // Names and shapes of tensors come first.
        parts.rest = mutate_bytes(random, {parts.rest.substr(0, std::min<size_t>(parts.rest.size(), 800))}) +
                     parts.rest.substr(std::min<size_t>(parts.rest.size(), 800));
        break;
      case 3:
        *at = mutate_bytes(random, {*at});
        break;
      default:
        change_within(random, *at);
    }
  }
  std::string file = seed.substr(0, 8);
  const auto number = [&](uint64_t value) {
    file.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  number(parts.n_tensors);
  number(parts.keys.size());
  for (const auto& key : parts.keys) file += key;
  file += parts.rest;
  file.append(32, '\0');  // the data may begin up to 31 bytes later now
  return random.below(20) == 0 ? mutate_bytes(random, {file}) : file;
}

}  // namespace zoo::fuzz
