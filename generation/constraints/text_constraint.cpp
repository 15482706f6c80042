#include "generation/constraints/text_constraint.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "tokenizers/unicode/characters.h"

namespace zoo {
namespace {

constexpr size_t kMostMaskBytes = size_t{32} << 20;
constexpr size_t kMostKeptEntries = size_t{2} << 20;  // of the automaton
constexpr int64_t kStepsToBegin = 100'000'000;

std::vector<size_t> shared_beginnings(const std::vector<std::pair<std::string, int64_t>>& sorted) {
  std::vector<size_t> result(sorted.size(), 0);
  for (size_t i = 1; i < sorted.size(); ++i) {
    const auto& a = sorted[i - 1].first;
    const auto& b = sorted[i].first;
    result[i] = static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
  }
  return result;
}

}  // namespace

TextConstraint::TextConstraint(const Expression& expression, const Tokenizer& tokenizer,
                               const TokenIds& unused, const ShownTokens& shown)
    : tokenizer_(tokenizer),
      ends_(end_tokens(tokenizer_.special())),
      automaton_(make_automaton(expression, unused, shown)) {
  WorkLimit work(kStepsToBegin);
  const auto start = automaton_.start();
  if (start == Automaton::kDead)
    throw DataError("no text matches that this vocabulary can write: it lacks characters, or there is none");
  for (const auto place : {Place::begins_text, Place::within_text}) {
    const auto& allowed = allowed_at({start, place}, work);
    if (!leads_on(allowed)) throw DataError("no token of this vocabulary begins a text that matches");
  }
}

Automaton TextConstraint::make_automaton(const Expression& expression, const TokenIds& unused,
                                         const ShownTokens& shown) {
  read_texts(unused, shown);
  return {expression, alphabet()};
}

/// Whether a token may follow.
bool TextConstraint::leads_on(const Allowed& allowed) const {
  return allowed.has_text || (allowed.accepts && !ends_.empty());
}

void TextConstraint::read_texts(const TokenIds& unused, const ShownTokens& shown) {
  const auto n = static_cast<size_t>(tokenizer_.vocab_size());
  texts_.resize(n);
  std::vector<bool> is_left_out(n);
  for (const auto& ids : {unused, ends_}) {
    for (const int64_t id : ids) is_left_out.at(static_cast<size_t>(id)) = true;
  }
  for (size_t id = 0; id < n; ++id) {
    const auto token = static_cast<int64_t>(id);
    if (is_left_out[id]) continue;
    const auto own = std::ranges::find(shown, token, &ShownToken::id);
    texts_[id] = own == shown.end() ? tokenizer_.token_text(token) : TokenText{own->text, own->text};
    if (!texts_[id].first.empty()) first_.sorted.emplace_back(texts_[id].first, token);
    if (!texts_[id].later.empty()) later_.sorted.emplace_back(texts_[id].later, token);
  }
  for (auto* const texts : {&first_, &later_}) {
    std::ranges::sort(texts->sorted);
    texts->n_shared = shared_beginnings(texts->sorted);
  }
}

/// The characters that can be written wherever they are wanted.
CodePoints TextConstraint::alphabet() const {
  std::array<bool, 256> has_byte{};
  std::vector<CodeRange> characters;
  for (const auto& [text, id] : later_.sorted) {
    if (text.size() == 1) has_byte[static_cast<uint8_t>(text.front())] = true;
    if (find_invalid_utf8(text)) continue;
    size_t at = 0;
    const char32_t c = next_code_point(text, at);
    if (at == text.size()) characters.push_back({c, c});
  }
  bool has_all = true;  // that UTF-8 uses
  for (size_t byte = 0; byte <= 0xF4; ++byte)
    has_all = has_all && (has_byte[byte] || byte == 0xC0 || byte == 0xC1);
  return has_all ? CodePoints::all() : CodePoints(std::move(characters));
}

TextConstraint::Place TextConstraint::place_after(int64_t token) const {
  return tokenizer_.begins_text_after(token) ? Place::begins_text : Place::within_text;
}

Automaton::State TextConstraint::next(Automaton::State state, char byte, WorkLimit& work) const {
  const int64_t before = automaton_.n_steps();
  const auto result = automaton_.next(state, static_cast<uint8_t>(byte));
  work.spend(1 + automaton_.n_steps() - before);
  return result;
}

TextConstraint::Place TextConstraint::place_behind(std::span<const int64_t> prompt) const {
  constexpr size_t context = 8;  // as a ContinuationDecoder has it
  const auto before = prompt.last(std::min(prompt.size(), context));
  const bool has_text = !before.empty() && !tokenizer_.decode(before).empty();
  return has_text ? place_after(before.back()) : Place::begins_text;
}

TextConstraint::Point TextConstraint::point(std::span<const int64_t> prompt, std::span<const int64_t> ids,
                                            WorkLimit& work) const {
  Point result{automaton_.start(), place_behind(prompt)};
  for (const int64_t id : ids) {
    const auto& text = texts_.at(static_cast<size_t>(id));
    const auto& bytes = result.place == Place::begins_text ? text.first : text.later;
    if (bytes.empty()) return {Automaton::kDead, Place::within_text};  // an end token, or not allowed
    for (const char byte : bytes) result.state = next(result.state, byte, work);
    if (result.state == Automaton::kDead) return result;
    result.place = place_after(id);
  }
  return result;
}

const TextConstraint::Allowed& TextConstraint::allowed_at(const Point& point, WorkLimit& work) const {
  const auto key = std::pair(point.state, point.place);
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  if ((known_.size() + 1) * texts_.size() > kMostMaskBytes) known_.clear();
  auto tokens = torch::zeros({static_cast<int64_t>(texts_.size())}, torch::kBool);
  auto* const is_allowed = tokens.mutable_data_ptr<bool>();
  bool has_text = false;
  const auto& texts = point.place == Place::begins_text ? first_ : later_;
  work.spend(std::ssize(texts.sorted));
  // states[n]: after the first n bytes of the text before, as far as they keep the automaton alive.
  std::vector<Automaton::State> states = {point.state};
  for (size_t i = 0; i < texts.sorted.size(); ++i) {
    const auto& [text, id] = texts.sorted[i];
    if (texts.n_shared[i] >= states.size()) continue;  // it begins with what led nowhere
    states.resize(texts.n_shared[i] + 1);
    while (states.size() <= text.size()) {
      const auto reached = next(states.back(), text[states.size() - 1], work);
      if (reached == Automaton::kDead) break;
      states.push_back(reached);
    }
    if (states.size() <= text.size()) continue;
    is_allowed[id] = has_text = true;
  }
  const bool accepts = automaton_.accepts(point.state);
  for (const int64_t end : ends_) is_allowed[end] = accepts;
  return known_.insert_or_assign(key, Allowed{tokens, has_text, accepts}).first->second;
}

torch::Tensor TextConstraint::allowed_from(const Point& at, WorkLimit& work) const {
  const auto everything = [&] { return torch::ones({static_cast<int64_t>(texts_.size())}, torch::kBool); };
  if (at.state == Automaton::kDead) return everything();
  const auto& found = allowed_at(at, work);
  if (!leads_on(found) && found.accepts) return everything();  // is_complete()
  if (!leads_on(found)) throw DataError("no token of this vocabulary leads on to a text that matches");
  return found.tokens;
}

void TextConstraint::forget_much() const {
  if (automaton_.n_entries() <= kMostKeptEntries) return;
  automaton_.forget();
  known_.clear();
}

torch::Tensor TextConstraint::allowed(std::span<const int64_t> prompt, std::span<const int64_t> ids,
                                      WorkLimit& work) const {
  const std::scoped_lock lock(mutex_);
  forget_much();
  return allowed_from(point(prompt, ids, work), work);
}

torch::Tensor TextConstraint::allowed_after(std::string_view begun, std::span<const int64_t> prompt,
                                            std::span<const int64_t> ids, WorkLimit& work) const {
  const std::scoped_lock lock(mutex_);
  forget_much();
  Point at{automaton_.start(), ids.empty() ? place_behind(prompt) : place_after(ids.back())};
  for (const char byte : begun) {
    if (at.state != Automaton::kDead) at.state = next(at.state, byte, work);
  }
  return allowed_from(at, work);
}

TextConstraint::Reached TextConstraint::reached(std::string_view text, WorkLimit& work) const {
  const std::scoped_lock lock(mutex_);
  forget_much();
  Reached result{.end = End::none};
  auto state = automaton_.start();
  for (size_t i = 0; i < text.size() && state != Automaton::kDead; ++i) {
    state = next(state, text[i], work);
    if (result.n_to_end == text.npos && state != Automaton::kDead && automaton_.accepts(state))
      result.n_to_end = i + 1;
  }
  if (state != Automaton::kDead) result.end = automaton_.accepts(state) ? End::text : End::open;
  return result;
}

std::string TextConstraint::text(std::span<const int64_t> prompt, std::span<const int64_t> ids) const {
  std::string result;
  auto place = place_behind(prompt);
  for (const int64_t id : ids) {
    if (id < 0 || id >= vocab_size()) continue;
    const auto& text = texts_[static_cast<size_t>(id)];
    result += place == Place::begins_text ? text.first : text.later;
    if (!text.later.empty()) place = place_after(id);
  }
  return result;
}

bool TextConstraint::is_complete(std::span<const int64_t> prompt, std::span<const int64_t> ids,
                                 WorkLimit& work) const {
  const std::scoped_lock lock(mutex_);
  const auto at = point(prompt, ids, work);
  if (at.state == Automaton::kDead || !automaton_.accepts(at.state)) return false;
  return !allowed_at(at, work).has_text;
}

}  // namespace zoo
