#pragma once
// `precompiled_charsmap` of a SentencePiece model: the rules by which text is normalised.
//
//   uint32 size of the trie in bytes | the trie | replacements, each with a zero byte at its end
//
// The trie is a double array of Darts-clone (https://github.com/s-yata/darts-clone). The library walks
// through it without asking where it ends, and writes what it finds on the way into an array of 32.

#include <string_view>

namespace zoo {

/// Checks that the library stays within `charsmap`, whatever text it normalises: every unit that a key can
/// reach, every replacement, and the number of rules that match at one place. Throws DataError.
void check_charsmap(std::string_view charsmap);

}  // namespace zoo
