#pragma once
// Declares `zoo contacts`: which residues of a protein touch.

namespace CLI {
class App;
}

namespace zoo {

void add_contacts(CLI::App& app);

}  // namespace zoo
