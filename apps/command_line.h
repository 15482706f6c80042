#pragma once
// The program as a function, so that other programs can offer its subcommands for their own types:
//
//     int main(int argc, char** argv) {
//       zoo::task_types().add(my_task());
//       return zoo::command_line(argc, argv);
//     }

namespace zoo {

/// Runs the command line of `zoo`. `argc` and `argv` are those of main(). Prints to standard output and
/// standard error. Returns the exit code: 0 for success, 1 if the machine failed, 2 for bad input. Call it
/// once, after registering all types and before starting threads.
int command_line(int argc, char** argv);

}  // namespace zoo
