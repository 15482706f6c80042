#pragma once

namespace CLI {
class App;
}

namespace zoo {

/// zoo serve: trained models over HTTP.
void add_serve(CLI::App& app);

}  // namespace zoo
