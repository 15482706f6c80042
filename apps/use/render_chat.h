#pragma once

namespace CLI {
class App;
}

namespace zoo {

/// zoo tokenizer chat: the text, or the tokens, that a model sees of a conversation.
void add_render_chat(CLI::App& app);

}  // namespace zoo
