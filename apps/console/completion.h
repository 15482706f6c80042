#pragma once

namespace CLI {
class App;
}

namespace zoo {

/// Declares `zoo completion`, which knows the commands and options that `app` has when it is called.
void add_completion(CLI::App& app);

}  // namespace zoo
