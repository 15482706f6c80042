#pragma once
// Regular expressions: a subset of Python's module re.
//
//   characters, . (all but a line break), [a-z_] [^…], \d \D \w \W \s \S, \n \t \r \f \v \xhh \uhhhh
//   \Uhhhhhhhh,
//   \ before a character that is no letter or digit; groups (…) and (?:…); | * + ? {m} {m,} {,n} {m,n};
//   ^ at the beginning and $ at the end of the expression or of one of its alternatives
//
// \d, \w and \s are the characters of ASCII, and \D, \W and \S those that belong to no script's digits, words
// or blanks. So what matches here matches in Python with and without re.ASCII.

#include <string_view>

#include "generation/constraints/expression.h"

namespace zoo {

/// What an expression matches: a whole text (re.fullmatch), or something in a text unless ^ and $ say
/// otherwise (re.search, as in a JSON schema).
enum class Matches { whole_text, part_of_text };

/// Throws DataError: what is wrong or not supported, and at which character, counted from 1.
Expression parse_regular_expression(std::string_view expression, Matches matches = Matches::whole_text);

}  // namespace zoo
