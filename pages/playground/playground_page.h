#pragma once
// The page of `zoo serve`, in which a person uses the models that a server holds: it continues texts and
// shows how likely each token was, compares two models, chats, fills masks, classifies, translates, looks at
// pictures, listens to recordings, and draws attention.

#include <string>

namespace zoo {

/// The page needs nothing but the server that it came from. Its address says behind the # what is shown, so
/// a link restores a view.
struct PlaygroundPage {
  std::string html;
  /// The value of the header Content-Security-Policy: the page's one script and one style by their SHA-256,
  /// pictures and recordings that the reader chose, requests to the page's own server, and nothing else.
  std::string content_security_policy;
};

const PlaygroundPage& playground_page();

}  // namespace zoo
