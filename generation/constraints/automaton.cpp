#include "generation/constraints/automaton.h"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"

namespace zoo {
namespace {

[[noreturn]] void fail_too_many() {
  throw DataError("the expression is too large: too many places in it can be reached at once");
}

}  // namespace

Automaton::Automaton(const Expression& expression, const CodePoints& alphabet) : alphabet_(alphabet) {
  add_node();  // kEnd
  first_ = add(expression, kEnd);
  bytes_.clear();
  seen_.resize(nodes_.size());
  drop_dead_ends();
  find_byte_classes();
}

int32_t Automaton::add_node() {
  if (nodes_.size() == kMostStates) {
    throw DataError(fmt::format(
        "the expression is too large: its automaton has more than {} states; use smaller repetitions",
        kMostStates));
  }
  nodes_.emplace_back();
  return static_cast<int32_t>(nodes_.size() - 1);
}

/// The node from which the texts of `expression` lead to `to`.
int32_t Automaton::add(const Expression& expression, int32_t to) {
  constexpr int64_t most_steps = 4'000'000;  // an empty part that is repeated adds no node
  if (++n_steps_ > most_steps)
    throw DataError("the expression is too large: it repeats too much; use smaller repetitions");
  switch (expression.kind) {
    case Expression::Kind::characters:
      return add_characters(bytes_of(expression), to);
    case Expression::Kind::sequence:
      for (size_t i = expression.parts.size(); i-- > 0;) to = add(expression.parts[i], to);
      return to;
    case Expression::Kind::alternatives: {
      if (expression.parts.size() == 1) return add(expression.parts.front(), to);
      const int32_t node = add_node();
      for (const auto& part : expression.parts) {
        const int32_t begin = add(part, to);
        nodes_[static_cast<size_t>(node)].same.push_back(begin);
      }
      return node;
    }
    case Expression::Kind::repetition:
      return add_repetition(expression, to);
  }
  return to;
}

const Automaton::ByteRanges& Automaton::bytes_of(const Expression& characters) {
  const auto [found, is_new] = bytes_.try_emplace(&characters);
  if (is_new) found->second = utf8_ranges(characters.characters.shared(alphabet_));
  n_steps_ += std::ssize(found->second);
  return found->second;
}

int32_t Automaton::add_characters(const ByteRanges& lists, int32_t to) {
  // Characters with equal first bytes share nodes, and so do those with equal last bytes.
  std::map<ByteRanges, int32_t> shared;
  const auto node_of = [&](const auto& self, ByteRanges rest) -> int32_t {
    if (rest.size() == 1 && rest.front().empty()) return to;
    if (const auto found = shared.find(rest); found != shared.end()) return found->second;
    const int32_t node = add_node();
    std::vector<Edge> edges;
    for (size_t begin = 0, end = 0; begin < rest.size(); begin = end) {
      const auto bytes = rest[begin].front();
      ByteRanges after;
      for (; end < rest.size() && rest[end].front() == bytes; ++end)
        after.emplace_back(rest[end].begin() + 1, rest[end].end());
      edges.push_back({bytes, self(self, std::move(after))});
    }
    nodes_[static_cast<size_t>(node)].edges = std::move(edges);
    shared.emplace(std::move(rest), node);
    return node;
  };
  return lists.empty() ? add_node() : node_of(node_of, lists);
}

int32_t Automaton::add_repetition(const Expression& expression, int32_t to) {
  const auto& part = expression.parts.front();
  int32_t node = to;
  if (expression.most == Expression::kNoLimit) {
    node = add_node();
    const int32_t again = add(part, node);
    nodes_[static_cast<size_t>(node)].same = {again, to};
  } else {
    for (int64_t i = expression.least; i < expression.most; ++i) {
      const int32_t one_more = add(part, node);
      node = add_node();
      nodes_[static_cast<size_t>(node)].same = {one_more, to};
    }
  }
  for (int64_t i = 0; i < expression.least; ++i) node = add(part, node);
  return node;
}

/// Drops what leads to nodes from which no text is complete.
void Automaton::drop_dead_ends() {
  std::vector<std::vector<int32_t>> sources(nodes_.size());
  for (size_t from = 0; from < nodes_.size(); ++from) {
    for (const auto& edge : nodes_[from].edges)
      sources[static_cast<size_t>(edge.to)].push_back(static_cast<int32_t>(from));
    for (const int32_t to : nodes_[from].same)
      sources[static_cast<size_t>(to)].push_back(static_cast<int32_t>(from));
  }
  std::vector<char> leads_on(nodes_.size(), 0);
  std::vector<int32_t> open = {kEnd};
  leads_on[kEnd] = 1;
  while (!open.empty()) {
    const auto node = static_cast<size_t>(open.back());
    open.pop_back();
    for (const int32_t source : sources[node]) {
      if (std::exchange(leads_on[static_cast<size_t>(source)], 1) == 0) open.push_back(source);
    }
  }
  const auto is_dead = [&](int32_t node) { return leads_on[static_cast<size_t>(node)] == 0; };
  for (auto& node : nodes_) {
    std::erase_if(node.edges, [&](const Edge& edge) { return is_dead(edge.to); });
    std::erase_if(node.same, is_dead);
  }
  is_empty_ = is_dead(first_);
}

void Automaton::find_byte_classes() {
  std::array<bool, 257> begins{};
  for (const auto& node : nodes_) {
    for (const auto& edge : node.edges) begins[edge.bytes.first] = begins[edge.bytes.last + 1U] = true;
  }
  size_t number = 0;
  for (size_t byte = 0; byte < class_of_.size(); ++byte) {
    if (byte > 0 && begins[byte]) ++number;
    class_of_[byte] = static_cast<uint8_t>(number);
  }
  n_classes_ = number + 1;
}

/// The deterministic state of nodes and of those that they reach without a byte.
Automaton::State Automaton::state_of(std::vector<int32_t> nodes) {
  ++n_made_;
  size_t n_together = 0;
  std::vector<int32_t> kept;
  while (!nodes.empty()) {
    const int32_t node = nodes.back();
    nodes.pop_back();
    ++n_steps_;
    if (std::exchange(seen_[static_cast<size_t>(node)], n_made_) == n_made_) continue;
    if (++n_together > kMostTogether) fail_too_many();
    const auto& same = nodes_[static_cast<size_t>(node)].same;
    nodes.insert(nodes.end(), same.begin(), same.end());
    if (node == kEnd || !nodes_[static_cast<size_t>(node)].edges.empty()) kept.push_back(node);
  }
  if (kept.empty()) return kDead;
  n_steps_ += 4 * std::ssize(kept);  // to sort and to compare them
  std::ranges::sort(kept);
  const auto [found, is_new] = known_.emplace(std::move(kept), static_cast<State>(states_.size()));
  if (is_new) {
    n_entries_ += 2 * found->first.size() + n_classes_;
    if (n_entries_ > kMostEntries) fail_too_many();
    states_.push_back({.nodes = found->first,
                       .next = std::vector<State>(n_classes_, kUnknown),
                       .accepts = found->first.front() == kEnd});
  }
  return found->second;
}

Automaton::State Automaton::start() { return is_empty_ ? kDead : state_of({first_}); }

Automaton::State Automaton::next(State state, uint8_t byte) {
  if (state == kDead) return kDead;
  const size_t number = class_of_[byte];
  const State known = states_[static_cast<size_t>(state)].next[number];
  if (known != kUnknown) return known;
  std::vector<int32_t> reached;
  for (const int32_t node : states_[static_cast<size_t>(state)].nodes) {
    n_steps_ += std::ssize(nodes_[static_cast<size_t>(node)].edges);
    for (const auto& edge : nodes_[static_cast<size_t>(node)].edges) {
      if (edge.bytes.first <= byte && byte <= edge.bytes.last) reached.push_back(edge.to);
    }
  }
  const State result = state_of(std::move(reached));
  states_[static_cast<size_t>(state)].next[number] = result;
  return result;
}

void Automaton::forget() {
  states_.clear();
  known_.clear();
  n_entries_ = 0;
}

}  // namespace zoo
