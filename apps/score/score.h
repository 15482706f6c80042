#pragma once
// Declares `zoo score`: how likely texts are to a trained model that writes.

namespace CLI {
class App;
}

namespace zoo {

void add_score(CLI::App& app);

}  // namespace zoo
