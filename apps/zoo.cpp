// The program `zoo`: one file per subcommand, this one for what they share: errors become one line and an
// exit code.

#include <fcntl.h>

#include <csignal>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include "apps/commands.h"
#include "base/cpu_allocator.h"
#include "base/error.h"
#include "base/text.h"
#include "training/parallel/launcher.h"
#include "training/parallel/process_group.h"

namespace {

constexpr int kFailure = 1;
constexpr int kBadInput = 2;

// The first line of a message that may carry a stack trace.
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

int report(std::string_view message, int code) {
  constexpr size_t most = 4096;  // one line, whatever names and values the message quotes
  std::cerr << "zoo: " << zoo::excerpt(message, most) << '\n';
  return code;
}

// A stream that is closed stays so: else the next file that is opened would take its number, and with it all
// that is printed.
void reserve_standard_streams() {
  for (const int stream : {0, 1, 2}) {
    if (::fcntl(stream, F_GETFD) < 0) ::open("/dev/null", stream == 0 ? O_WRONLY : O_RDONLY);
  }
}

// CLI11's words for what is wrong with the command line, but for a command that does not exist: it only says
// that it misses one.
std::string usage_problem(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* command = &app;
  std::string path = app.get_name();
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    path += " " + command->get_name();
  }
  std::string problem = error.what();
  const auto unexpected = app.remaining(/*recurse=*/true);
  if (command->get_require_subcommand_min() > 0 && !unexpected.empty()) {
    const auto& word = unexpected.front();
    std::vector<std::string> names;
    for (const auto* known : command->get_subcommands(nullptr)) names.push_back(known->get_name());
    problem = fmt::format("unknown {} '{}'", word.starts_with('-') ? "option" : "command", word);
    if (const auto name = zoo::nearest(word, names)) problem += fmt::format("; did you mean '{}'?", *name);
  }
  return fmt::format("{} (see {} --help)", problem, path);
}

}  // namespace

// Outside of the try block only a mistake in the options themselves throws.
// NOLINTNEXTLINE(bugprone-exception-escape)
int main(int argc, char** argv) {
  reserve_standard_streams();
  std::signal(SIGXFSZ, SIG_IGN);  // a file size limit is an error of write(), not the end of the process

  zoo::use_caching_cpu_allocator();

  CLI::App app{"Train, generate from and compare transformers.", "zoo"};
  app.require_subcommand(1);
  app.get_formatter()->label("REQUIRED", "(required)");
  app.get_formatter()->label("Excludes", "not with");
  bool debug = false;
  app.add_flag("--debug", debug, "On an error, show everything that is known about it");
  app.fallthrough();  // --debug may stand behind the command, too
  zoo::add_train(app);
  zoo::add_generate(app);
  zoo::add_evaluate(app);
  zoo::add_average(app);
  zoo::add_compare(app);
  zoo::add_inspect(app);
  zoo::add_bench(app);
  zoo::add_attention(app);
  zoo::add_config(app);
  zoo::add_tokenizer(app);
  app.set_help_all_flag("--help-all", "Help of every command");  // last, so that the commands lack it

  try {
    try {
      app.parse(argc, argv);
    } catch (const CLI::Success& help) {
      app.exit(help);
    }
    std::cout.flush();
    return std::cout ? EXIT_SUCCESS : report("cannot write to standard output", kFailure);
  } catch (const CLI::ParseError& error) {
    return report(usage_problem(app, error), kBadInput);
  } catch (const zoo::AlreadyReported& earlier) {
    return earlier.exit_code;
  } catch (const zoo::PeerError& error) {
    // Threads that wait for a process that is gone may never end.
    std::_Exit(zoo::is_launched() ? error.exit_code() : report(error.what(), error.exit_code()));
  } catch (const zoo::Error& error) {
    return report(error.what(), error.exit_code());
  } catch (const c10::OutOfMemoryError& error) {
    return report(first_line(error.what_without_backtrace()) + "; use a smaller batch or model", kFailure);
  } catch (const c10::Error& error) {
    if (debug) std::cerr << error.what() << '\n';
    return report(first_line(error.what_without_backtrace()) + (debug ? "" : " (--debug shows where)"),
                  kFailure);
  } catch (const std::bad_alloc&) {
    return report("out of memory; use a smaller batch or model", kFailure);
  } catch (const std::exception& error) {
    return report(error.what(), kFailure);
  }
}
