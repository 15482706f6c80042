#pragma once
// Errors that a user can act on. Each reaches the command line as one line; what() says what is wrong, where,
// and what to do.

#include <stdexcept>
#include <string>

namespace zoo {

/// Base of every error that this library raises on purpose. Messages name options of the library, such as
/// ExistingRun::resume; the program zoo names its own in their place (apps/command_line.cpp).
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  /// The program's exit code: 2 for bad input, 1 for a failure of the machine.
  virtual int exit_code() const { return 2; }
};

/// The configuration is wrong: an unknown key, a wrong type, a value out of range, a contradiction.
class ConfigError : public Error {
 public:
  using Error::Error;
};

/// A corpus or a text is missing, empty or damaged.
class DataError : public Error {
 public:
  using Error::Error;
};

/// A text has a character, or a row has a label, that did not occur in training. A caller that knows the file
/// adds its name to the message.
class UnknownSymbolError : public DataError {
 public:
  using DataError::DataError;
};

/// A checkpoint, a run directory or a tensor file is missing, damaged or of another architecture.
class CheckpointError : public Error {
 public:
  using Error::Error;
};

/// A call or a command line is wrong: it asks for what cannot be done, such as writing over a run.
class UsageError : public Error {
 public:
  using Error::Error;
};

/// Too much of this kind is under way in this process: ask again later.
class BusyError : public Error {
 public:
  using Error::Error;
  int exit_code() const override { return 1; }
};

/// The machine failed: disk full, no permission, a missing device.
class SystemError : public Error {
 public:
  using Error::Error;
  int exit_code() const override { return 1; }
};

/// Training cannot continue: the loss is not a number.
class TrainingError : public Error {
 public:
  using Error::Error;
  int exit_code() const override { return 1; }
};

}  // namespace zoo
