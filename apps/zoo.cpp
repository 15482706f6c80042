// The program `zoo`: one file per subcommand, this one for what they share: errors become one line and an
// exit code.

#include <csignal>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <new>
#include <string>

#include <CLI/CLI.hpp>
#include <c10/util/Exception.h>

#include "apps/commands.h"
#include "io/error.h"

namespace {

constexpr int kFailure = 1;
constexpr int kBadInput = 2;

// The first line of a message that may carry a stack trace.
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

int report(const std::string& message, int code) {
  std::cerr << "zoo: " << message << '\n';
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file size limit is an error of write(), not the end of the process

  CLI::App app{"Train, generate from and compare transformers.", "zoo"};
  app.require_subcommand(1);
  app.set_help_all_flag("--help-all", "Help of every command");
  bool debug = false;
  app.add_flag("--debug", debug, "On an error, show everything that is known about it");
  app.fallthrough();  // --debug may stand behind the command, too
  zoo::add_train(app);
  zoo::add_generate(app);
  zoo::add_evaluate(app);
  zoo::add_inspect(app);
  zoo::add_attention(app);
  zoo::add_config(app);
  zoo::add_tokenizer(app);

  try {
    app.parse(argc, argv);
    std::cout.flush();
    return std::cout ? EXIT_SUCCESS : report("cannot write to standard output", kFailure);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return app.exit(error);  // --help
    return report(std::string(error.what()) + " (see zoo --help)", kBadInput);
  } catch (const zoo::Error& error) {
    return report(error.what(), error.exit_code());
  } catch (const c10::OutOfMemoryError& error) {
    return report(first_line(error.what_without_backtrace()) + "; use a smaller batch or model", kFailure);
  } catch (const c10::Error& error) {
    return report(
        debug ? error.what() : first_line(error.what_without_backtrace()) + " (--debug shows where)",
        kFailure);
  } catch (const std::bad_alloc&) {
    return report("out of memory; use a smaller batch or model", kFailure);
  } catch (const std::exception& error) {
    return report(error.what(), kFailure);
  }
}
