// A service in a program: docs/serving.md quotes it.

#include <iostream>

#include <zoo/base/error.h>
#include <zoo/serving/service.h>

int main(int argc, char** argv) try {
  zoo::Service service(
      {.models = {{.id = "writer", .path = argc > 1 ? argv[1] : "runs/shakespeare-char-cpu"}}});
  zoo::CompletionRequest request{.prompts = {"ROMEO:", "First Citizen:"}};
  request.options = {.max_new_tokens = 20, .temperature = 0.8, .seed = 7};
  const auto answer = service.complete("writer", request);
  for (const auto& output : answer.outputs) std::cout << output.text << '\n';
  std::cout << answer.usage.output_tokens << " tokens\n";
} catch (const zoo::Error& error) {
  std::cerr << error.what() << '\n';
  return error.exit_code();
}
