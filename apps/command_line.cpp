// The program `zoo`. Each subcommand has its own file. This file has the part that they share: it turns
// errors into one line and an exit code.

#include "apps/command_line.h"

#include <fcntl.h>

#include <csignal>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <string>

#include <CLI/CLI.hpp>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <torch/version.h>

#include "apps/console/commands.h"
#include "apps/console/completion.h"
#include "apps/console/help.h"
#include "apps/console/show_error.h"
#include "apps/console/usage_problem.h"
#include "base/adaptive_waits.h"
#include "base/cpu_allocator.h"
#include "base/device.h"
#include "base/error.h"
#include "base/tensor_memory.h"
#include "base/version.h"
#include "io/terminal_guard.h"
#include "parallel/launcher.h"
#include "parallel/process_group.h"
#include "parallel/threads.h"

namespace zoo {
namespace {

constexpr int kFailure = 1;
constexpr int kBadInput = 2;

std::string too_little_memory(const std::string& shortage) {
  return fmt::format("there is too little memory{}: take a smaller batch or model, or --weights bf16",
                     shortage);
}

// The first line of a message that may contain a stack trace.
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// Opens /dev/null in place of a closed standard stream, in a mode in which every use fails. Otherwise the
// next opened file would get the stream's number and everything that is printed.
void reserve_standard_streams() {
  for (const int stream : {0, 1, 2}) {
    if (::fcntl(stream, F_GETFD) < 0) ::open("/dev/null", stream == 0 ? O_WRONLY : O_RDONLY);
  }
}

}  // namespace

// Outside the try block, only a mistake in the option declarations throws.
// NOLINTNEXTLINE(bugprone-exception-escape)
int command_line(int argc, char** argv) {
  reserve_standard_streams();
  std::signal(SIGXFSZ, SIG_IGN);  // at a file size limit, write() fails and no signal ends the process

  const TerminalGuard guard;
  use_caching_cpu_allocator();
  set_float_products(FloatProducts::fp32);
  flush_denormals();
  const AdaptiveWaits adaptive_waits;

  const std::string name = argc > 0 ? std::filesystem::path(argv[0]).filename().string() : "zoo";
  CLI::App app{"Train, generate from and compare transformers.", name};
  app.require_subcommand(1);
  wrap_help(app);
  app.get_formatter()->label("REQUIRED", "(required)");
  app.get_formatter()->label("Excludes", "not with");
  bool debug = false;
  int exit_code = EXIT_SUCCESS;
  app.add_flag("--debug", debug, "Show all details of an error");
  app.fallthrough();  // --debug may also follow the command
  add_train(app, exit_code);
  add_generate(app);
  add_predict(app, exit_code);
  add_embed(app);
  add_score(app);
  add_serve(app);
  add_evaluate(app);
  add_average(app);
  add_import(app);
  add_export(app);
  add_merge(app);
  add_compare(app, exit_code);
  add_runs(app);
  add_verify(app, exit_code);
  add_inspect(app);
  add_bench(app);
  add_probe(app, exit_code);
  add_attention(app);
  add_lens(app);
  add_heads(app);
  add_ablate(app);
  add_patch(app);
  add_attribute(app);
  add_contacts(app);
  add_structure(app);
  add_config(app);
  add_tokenizer(app);
  add_doctor(app, exit_code);
  add_completion(app);
  const auto versions = fmt::format("transformer-zoo {} (LibTorch {})", version(), TORCH_VERSION);
  add_help(app, versions);
  // The last two are declared last, so that commands do not inherit them.
  app.set_help_all_flag("--help-all", "Help of every command");
  app.set_version_flag("--version", versions, "The versions of this program and of LibTorch");
  refuse_values_of_flags(app);

  const auto report = [&debug](const std::string& message, int code) {
    show_error(message, debug ? ErrorLength::whole : ErrorLength::one_line);
    return code;
  };
  try {
    try {
      if (argc <= 1) throw CLI::CallForHelp();
      app.parse(argc, argv);
    } catch (const CLI::Success& help) {
      app.exit(help);
    }
    std::cout.flush();
    return std::cout ? exit_code : report("cannot write to standard output", kFailure);
  } catch (const CLI::ParseError& error) {
    return report(usage_problem(app, error), kBadInput);
  } catch (const PeerError& error) {
    // Threads that wait for a lost process may never end.
    std::_Exit(is_launched() ? error.exit_code() : report(error.what(), error.exit_code()));
  } catch (const Error& error) {
    return report(error.what(), error.exit_code());
  } catch (const c10::Error& error) {
    if (const auto shortage = memory_shortage(error)) return report(too_little_memory(*shortage), kFailure);
    if (debug) std::cerr << error.what() << '\n';
    return report(first_line(error.what_without_backtrace()) + (debug ? "" : " (--debug shows where)"),
                  kFailure);
  } catch (const std::exception& error) {
    const auto shortage = memory_shortage(error);
    return report(shortage ? too_little_memory(*shortage) : error.what(), kFailure);
  }
}

}  // namespace zoo
