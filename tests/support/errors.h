#pragma once
// The messages of errors.

#include <string>

#include <gtest/gtest.h>

namespace zoo::testing {

/// The message of the error of type E that `action` raises, which must be one line; "no error" if it raises
/// none.
template <class E, class Action>
std::string message_of(const Action& action) {
  try {
    action();
  } catch (const E& error) {
    const std::string message = error.what();
    EXPECT_EQ(message.find('\n'), message.npos) << message;
    return message;
  }
  return "no error";
}

}  // namespace zoo::testing
