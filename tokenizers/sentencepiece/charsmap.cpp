#include "tokenizers/sentencepiece/charsmap.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace zoo {
namespace {

/// The library's kMaxTrieResultsSize: rules of which each is a prefix of the next.
constexpr int kMostMatches = 32;
/// Normalised text may not be much longer than the text. The longest replacement of NFKC has 33 bytes.
constexpr size_t kLongestReplacement = 256;
/// NFKC has 240 KB.
constexpr size_t kLargest = size_t{16} << 20;

[[noreturn]] void fail(std::string_view problem) {
  throw DataError(fmt::format("its precompiled_charsmap is damaged: {}", problem));
}

/// A unit of the double array, as Darts::Details::DoubleArrayUnit reads it.
struct Unit {
  uint32_t bits;

  bool has_value() const { return (bits >> 8 & 1) == 1; }
  uint32_t value() const { return bits & 0x7FFFFFFF; }
  uint32_t label() const { return bits & 0x800000FF; }
  uint32_t offset() const { return bits >> 10 << ((bits & 1U << 9) >> 6); }
};

/// A walk over all keys. A unit at index i leads to the block of 256 units that holds its base i ^ offset;
/// the byte c leads from there to unit base ^ c if that has the label c. What can follow depends on the base
/// only, so each base is looked at once.
class Trie {
 public:
  Trie(std::string_view units, std::string_view replacements)
      : n_units_(units.size() / 4),
        units_(n_units_),
        matches_(n_units_, kUnseen),
        replacements_(replacements) {
    std::memcpy(units_.data(), units.data(), 4 * n_units_);
  }

  void check() {
    enter(base_of(0));
    while (!path_.empty()) {
      Step& step = path_.back();
      if (step.next == 256) {
        leave();
      } else {
        follow(step.base ^ step.next++);
      }
    }
  }

 private:
  static constexpr int8_t kUnseen = -1, kOnPath = -2;
  struct Step {
    uint32_t base;
    uint32_t next = 0;   // the byte that is tried next
    int8_t matches = 0;  // the most rules that end after this base on one path
    int8_t ending = 0;   // 1 if a rule ends where this base was entered
  };

  uint32_t base_of(uint32_t index) const {
    const uint32_t base = index ^ units_[index].offset();
    if ((base | 0xFF) >= n_units_) fail("its trie points outside itself");
    return base;
  }

  void follow(uint32_t index) {
    const Unit unit = units_[index];
    if (unit.label() != (index ^ path_.back().base)) return;
    const uint32_t base = base_of(index);
    if (unit.has_value()) check_replacement(units_[base].value());
    const auto ending = static_cast<int8_t>(unit.has_value() ? 1 : 0);
    if (matches_[base] == kOnPath) fail("its trie has a circle");
    if (matches_[base] == kUnseen) return enter(base, ending);
    count(path_.back(), matches_[base], ending);
  }

  void enter(uint32_t base, int8_t ending = 0) {
    matches_[base] = kOnPath;
    path_.push_back({.base = base, .ending = ending});
  }

  void leave() {
    const Step step = path_.back();
    path_.pop_back();
    matches_[step.base] = step.matches;
    if (!path_.empty()) count(path_.back(), step.matches, step.ending);
  }

  static void count(Step& step, int8_t after, int8_t ending) {
    step.matches = std::max(step.matches, static_cast<int8_t>(after + ending));
    if (step.matches > kMostMatches) fail("too many of its rules begin alike");
  }

  void check_replacement(uint32_t at) const {
    if (at >= replacements_.size() || (at > 0 && replacements_[at - 1] != '\0'))
      fail("a rule points outside its replacements");
    if (replacements_.substr(at, kLongestReplacement + 1).find('\0') == replacements_.npos)
      fail(fmt::format("a replacement has more than {} bytes", kLongestReplacement));
  }

  size_t n_units_;
  std::vector<Unit> units_;
  std::vector<int8_t> matches_;  // of each base, once it is known
  std::vector<Step> path_;
  std::string_view replacements_;
};

}  // namespace

void check_charsmap(std::string_view charsmap) {
  if (charsmap.size() > kLargest) fail(fmt::format("it has more than {} MiB", kLargest >> 20));
  uint32_t trie_size = 0;
  if (charsmap.size() <= sizeof trie_size) fail("it has no trie");
  std::memcpy(&trie_size, charsmap.data(), sizeof trie_size);
  charsmap.remove_prefix(sizeof trie_size);
  if (trie_size == 0 || trie_size % 4 != 0 || trie_size >= charsmap.size())
    fail(fmt::format("a trie of {} bytes does not fit", trie_size));
  const auto replacements = charsmap.substr(trie_size);
  if (replacements.back() != '\0') fail("its last replacement does not end");
  if (find_invalid_utf8(replacements)) fail("its replacements are not UTF-8");
  Trie(charsmap.substr(0, trie_size), replacements).check();
}

}  // namespace zoo
