#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "apps/console/commands.h"
#include "apps/console/options.h"
#include "apps/doctor/gather_report.h"
#include "apps/doctor/judge.h"
#include "apps/doctor/show_report.h"
#include "io/json_document.h"

namespace zoo {
namespace {

struct DoctorArguments {
  bool json = false;
  std::string device = "auto";
};

int examine(const DoctorArguments& arguments) {
  const auto report = gather_report(arguments.device);
  const auto findings = judge(report);
  std::cout << (arguments.json ? shown_json(to_json(report, findings), 2) + "\n" : to_text(report, findings))
            << std::flush;
  return findings.problems.empty() ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace

void add_doctor(CLI::App& app, int& exit_code) {
  const auto arguments = std::make_shared<DoctorArguments>();
  auto* command = app.add_subcommand("doctor",
                                     "Check this machine and this program: versions, speed, GPUs, folders, "
                                     "and whether a tiny model learns; exit code 1 if something is wrong");
  add_device(*command, arguments->device);
  add_json(*command, arguments->json);
  command->callback([arguments, &exit_code] { exit_code = examine(*arguments); });
}

}  // namespace zoo
