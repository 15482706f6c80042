#pragma once

namespace CLI {
class App;
}

namespace zoo {

/// zoo doctor: whether this machine and this program work.
void add_doctor(CLI::App& app);

}  // namespace zoo
