// Decoding gives the same logits as one pass over each sequence without a state: for any number of new tokens
// per row, for rows of unequal length, and after rows are truncated, reordered, joined and dropped.

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/support/small_models.h"

namespace zoo {
namespace {

using namespace testing;  // NOLINT: the helpers of these tests

constexpr double kTolerance = 1e-5;

using Ids = std::vector<int64_t>;

TokenBatch padded(const std::vector<Ids>& rows) {
  size_t longest = 1;
  for (const auto& row : rows) longest = std::max(longest, row.size());
  auto ids = torch::zeros({std::ssize(rows), static_cast<int64_t>(longest)}, torch::kInt64);
  Ids lengths;
  for (size_t b = 0; b < rows.size(); ++b) {
    std::ranges::copy(rows[b], ids[static_cast<int64_t>(b)].data_ptr<int64_t>());
    lengths.push_back(std::ssize(rows[b]));
  }
  return {.ids = ids, .lengths = torch::tensor(lengths, torch::kInt64)};
}

/// A row of a state: its prompt, and the tokens that it has read (in a decoder including the prompt).
struct Row {
  Ids source, read;
};

/// Logits (n, V) after each token that the row has read, in one pass without a state.
torch::Tensor expected_logits(Model& model, const Row& row) {
  const auto tensor = [](const Ids& ids) { return torch::tensor(ids, torch::kInt64).unsqueeze(0); };
  Batch batch;
  if (row.source.empty()) {
    batch.input.ids = tensor(row.read);
  } else {
    batch.input.ids = tensor(row.source);
    batch.decoder.ids = tensor(row.read);
  }
  return model.logits(model.features(batch));
}

torch::Tensor expected_last(Model& model, const Row& row) { return expected_logits(model, row)[-1]; }

/// A model with a state, and the rows that this state must have.
class Session {
 public:
  Session(Model& model, bool has_encoder) : model_(model), has_encoder_(has_encoder) {}

  GenerativeModel& generative() { return *model_.generative(); }
  DecodingState& state() { return state_; }
  std::vector<Row>& rows() { return rows_; }

  /// Begins with prompts; a decoder reads them, an encoder-decoder its start token.
  void begin(const std::vector<Ids>& prompts) {
    rows_.clear();
    for (const auto& prompt : prompts)
      rows_.push_back(has_encoder_ ? Row{prompt, {kStartToken}} : Row{{}, prompt});
    const auto logits = generative().prefill({.input = padded(prompts)}, state_);
    for (size_t b = 0; b < rows_.size(); ++b) check(logits[static_cast<int64_t>(b)], b);
    check_lengths();
  }

  /// Reads further tokens, differently many per row, and checks the logits after the last of each row.
  void read(const std::vector<Ids>& tokens) {
    for (size_t b = 0; b < rows_.size(); ++b)
      rows_[b].read.insert(rows_[b].read.end(), tokens[b].begin(), tokens[b].end());
    const auto logits = generative().forward(padded(tokens), state_);
    for (size_t b = 0; b < rows_.size(); ++b)
      if (!tokens[b].empty()) check(logits[static_cast<int64_t>(b)], b);
    check_lengths();
  }

  void truncate(const Ids& lengths) {
    for (size_t b = 0; b < rows_.size(); ++b) rows_[b].read.resize(static_cast<size_t>(lengths[b]));
    state_.truncate(lengths);
    check_lengths();
  }

  void reorder(const Ids& picked) {
    std::vector<Row> rows;
    for (const auto row : picked) rows.push_back(rows_[static_cast<size_t>(row)]);
    rows_ = std::move(rows);
    state_.reorder(picked);
    check_lengths();
  }

  void join(Session other) {
    rows_.insert(rows_.end(), other.rows_.begin(), other.rows_.end());
    state_.join(std::move(other.state_));
    check_lengths();
  }

 private:
  void check(const torch::Tensor& logits, size_t row) {
    EXPECT_TRUE(close(logits, expected_last(model_, rows_[row]), kTolerance))
        << "row " << row << " of " << rows_.size() << " after " << rows_[row].read.size()
        << " tokens, off by " << (logits - expected_last(model_, rows_[row])).abs().max().item<float>();
  }
  void check_lengths() {
    ASSERT_EQ(state_.n_rows(), std::ssize(rows_));
    for (size_t b = 0; b < rows_.size(); ++b) EXPECT_EQ(state_.lengths()[b], std::ssize(rows_[b].read));
  }

  Model& model_;
  bool has_encoder_;
  DecodingState state_;
  std::vector<Row> rows_;
};

Ids random_ids(CounterRandom& random, int64_t n) {
  Ids ids;
  for (int64_t i = 0; i < n; ++i) ids.push_back(random.below(kVocabulary));
  return ids;
}

bool has_encoder(const ModelConfig& config) { return config.architecture == Architecture::encoder_decoder; }

TEST(Decoding, ManyTokensInOneCallEqualOneTokenInEachOfManyCalls) {
  for_each_model(kGenerativeArchitectures, [&](const ModelConfig&, Model& model) {
    auto& generative = *model.generative();
    const TokenBatch prompts{tokens(3, 4), {}};
    const auto more = tokens(3, 6);
    DecodingState at_once, one_by_one;
    generative.prefill({.input = prompts}, at_once);
    generative.prefill({.input = prompts}, one_by_one);
    const auto all = generative.forward({.ids = more}, at_once, LogitsAt::every_token()).view({3, 6, -1});
    for (int64_t t = 0; t < 6; ++t) {
      const auto logits = generative.forward({.ids = more.narrow(1, t, 1)}, one_by_one);
      EXPECT_TRUE(close(logits, all.select(1, t), kTolerance)) << "token " << t;
    }
    EXPECT_EQ(at_once.lengths(), one_by_one.lengths());
  });
}

TEST(Decoding, LogitsComeFromThePositionsThatAreAskedFor) {
  for_each_model(kGenerativeArchitectures, [&](const ModelConfig&, Model& model) {
    auto& generative = *model.generative();
    const TokenBatch prompts{tokens(2, 3), {}};
    const TokenBatch more{tokens(2, 5), torch::tensor({5, 2})};
    DecodingState a;
    generative.prefill({.input = prompts}, a);
    auto b = a.copy(), c = a.copy();
    const auto every = generative.forward(more, a, LogitsAt::every_token());  // (2·5, V)
    const auto some = generative.forward(more, b, LogitsAt::positions(torch::tensor({6, 0, 4})));
    const auto last = generative.forward(more, c);
    EXPECT_TRUE(close(some, every.index_select(0, torch::tensor({6, 0, 4})), kTolerance));
    EXPECT_TRUE(close(last, every.index_select(0, torch::tensor({4, 6})), kTolerance));
  });
}

TEST(Decoding, RowsReadDifferentlyManyTokens) {
  for_each_model(kGenerativeArchitectures, [&](const ModelConfig& config, Model& model) {
    CounterRandom random({1});
    Session session(model, has_encoder(config));
    session.begin(
        {random_ids(random, 3), random_ids(random, 7), random_ids(random, 1), random_ids(random, 5)});
    for (int call = 0; call < 5; ++call) {
      std::vector<Ids> reads;
      for (int row = 0; row < 4; ++row) reads.push_back(random_ids(random, random.below(4)));  // also none
      session.read(reads);
    }
  });
}

TEST(Decoding, RowsThatWereCutBackGoOnAsIfTheyHadNeverReadMore) {
  for_each_model(kGenerativeArchitectures, [&](const ModelConfig& config, Model& model) {
    if (forgets_tokens(config)) return;
    CounterRandom random({2});
    Session session(model, has_encoder(config));
    session.begin({random_ids(random, 4), random_ids(random, 4), random_ids(random, 6)});
    session.read({random_ids(random, 3), random_ids(random, 3), random_ids(random, 3)});
    session.truncate({2, session.state().lengths()[1], 1});
    session.read({random_ids(random, 2), {}, random_ids(random, 1)});
    session.truncate({0, 1, 2});  // all of a row
    session.read({random_ids(random, 1), random_ids(random, 2), random_ids(random, 1)});
  });
}

// Beams: rows are copied, dropped and mixed between calls.
TEST(Decoding, ReorderedRowsGoOnFromWhatTheyBecame) {
  for_each_model(kGenerativeArchitectures, [&](const ModelConfig& config, Model& model) {
    CounterRandom random({3});
    Session session(model, has_encoder(config));
    const auto step = [&] {
      std::vector<Ids> reads;
      for (size_t b = 0; b < session.rows().size(); ++b) reads.push_back(random_ids(random, 1));
      session.read(reads);
    };
    session.begin({random_ids(random, 6), random_ids(random, 2), random_ids(random, 4)});
    for (const auto& rows : {Ids{0, 0, 1, 1, 2, 2}, Ids{1, 0, 2, 3, 5, 4}, Ids{0, 1, 4, 5}, Ids{2, 2, 3},
                             Ids{2, 0, 2, 1, 2}, Ids{4}}) {
      session.reorder(rows);
      step();
    }
  });
}

TEST(Decoding, RowsJoinAndLeave) {
  for_each_model(kGenerativeArchitectures, [&](const ModelConfig& config, Model& model) {
    CounterRandom random({4});
    const auto begun = [&](std::initializer_list<int64_t> lengths) {
      std::vector<Ids> prompts;
      for (const auto length : lengths) prompts.push_back(random_ids(random, length));
      Session session(model, has_encoder(config));
      session.begin(prompts);
      return session;
    };
    auto session = begun({5, 2});
    session.reorder({0, 0, 1, 1});  // an encoder-decoder's memories serve two rows each
    session.read({random_ids(random, 2), random_ids(random, 1), {}, random_ids(random, 1)});
    session.join(begun({7, 1, 3}));
    session.read({{},
                  random_ids(random, 1),
                  random_ids(random, 2),
                  {},
                  random_ids(random, 1),
                  random_ids(random, 3),
                  random_ids(random, 1)});
    session.reorder({1, 4, 6});  // the others have left
    session.read({random_ids(random, 1), random_ids(random, 1), random_ids(random, 1)});
    session.join(begun({2}));
    session.read({random_ids(random, 1), {}, random_ids(random, 2), random_ids(random, 1)});
  });
}

// A request that has only been accepted joins others that are being answered.
TEST(Decoding, RowsThatHaveReadNothingJoin) {
  for_each_model(kGenerativeArchitectures, [&](const ModelConfig& config, Model& model) {
    auto& generative = *model.generative();
    const TokenBatch first{tokens(2, 4), {}}, second{tokens(1, 3), {}};
    for (const bool read_first : {true, false}) {
      DecodingState a = generative.begin({.input = first}), b = generative.begin({.input = second});
      auto& reads = read_first ? a : b;
      const auto& prompts = read_first ? first : second;
      generative.forward(generative.first_tokens(prompts), reads);
      a.join(std::move(b));
      ASSERT_EQ(a.n_rows(), 3);
      // Everybody reads what is left to read, and one token more.
      const auto more = tokens(3, 1);
      const auto prompt = [&](const TokenBatch& from, int64_t row) {
        const auto ids = generative.first_tokens(from).ids[row];
        return Ids(ids.data_ptr<int64_t>(), ids.data_ptr<int64_t>() + ids.numel());
      };
      std::vector<Ids> left;
      for (int64_t row = 0; row < 3; ++row) {
        const bool has_read = read_first == (row < 2);
        left.push_back(has_read ? Ids{} : row < 2 ? prompt(first, row) : prompt(second, 0));
        left.back().push_back(more[row].item<int64_t>());
      }
      const auto logits = generative.forward(padded(left), a);
      for (int64_t row = 0; row < 3; ++row) {
        const auto& from = row < 2 ? first : second;
        const int64_t i = row < 2 ? row : 0;
        Row expected{has_encoder(config) ? Ids(from.ids[i].data_ptr<int64_t>(),
                                               from.ids[i].data_ptr<int64_t>() + from.length())
                                         : Ids{},
                     prompt(from, i)};
        expected.read.push_back(more[row].item<int64_t>());
        EXPECT_TRUE(close(logits[row], expected_last(model, expected), kTolerance)) << "row " << row;
      }
    }
  });
}

/// Random operations in random order, as a scheduler of many requests makes them.
TEST(Decoding, AnySequenceOfOperations) {
  for_each_model(kGenerativeArchitectures, [&](const ModelConfig& config, Model& model) {
    CounterRandom random({5});
    Session session(model, has_encoder(config));
    session.begin({random_ids(random, 2), random_ids(random, 3)});
    for (int i = 0; i < 30; ++i) {
      auto& rows = session.rows();
      const auto n = std::ssize(rows);
      switch (random.below(5)) {
        case 0: {
          Ids lengths;
          for (const auto& row : rows) {
            const auto n_read = std::ssize(row.read);
            lengths.push_back(forgets_tokens(config) ? random.below(2) * n_read : random.below(n_read + 1));
          }
          session.truncate(lengths);
          break;
        }
        case 1: {
          Ids picked;
          for (int64_t j = 0, most = 1 + random.below(4); j < most; ++j) picked.push_back(random.below(n));
          session.reorder(picked);
          break;
        }
        case 2: {
          if (n > 5) break;
          Session other(model, has_encoder(config));
          other.begin({random_ids(random, 1 + random.below(5))});
          session.join(std::move(other));
          break;
        }
        default: {
          std::vector<Ids> reads;
          for (const auto& row : rows) {
            const int64_t room = config.max_positions - std::ssize(row.read);
            reads.push_back(random_ids(random, random.below(std::min<int64_t>(room, 3) + 1)));
          }
          session.read(reads);
        }
      }
    }
  });
}

// A window's state cannot be cut back over tokens that it has overwritten.
TEST(Decoding, ALayerSaysThatItHasForgotten) {
  auto config = small_config(Architecture::decoder);
  config.attention = {Selection("window", WindowConfig{.size = 3})};
  const auto model = random_model(config);
  DecodingState state;
  model->generative()->prefill({.input = {.ids = tokens(1, 12)}}, state);
  auto copy = state.copy();
  EXPECT_THROW(state.truncate({11}), c10::Error);
  copy.truncate({0});
  EXPECT_EQ(copy.lengths(), Ids{0});
}

// Memory stops growing: a window of 3 tokens with itself, and of 2 + 2·2 + 1 tokens, of 2 heads of 6 numbers.
TEST(Decoding, AWindowRemembersItsWindowOnly) {
  auto config = small_config(Architecture::decoder, Position::rotary);
  config.n_kv_heads = 2;
  config.attention = {
      Selection("window", WindowConfig{.size = 3}),
      Selection("window",
                WindowConfig{.size = 2, .dilation = 2, .global = GlobalTokens::first, .n_global = 2})};
  const auto model = random_model(config);
  const torch::NoGradGuard no_grad;
  DecodingState state;
  model->generative()->prefill({.input = {.ids = tokens(1, 12)}}, state);
  for (int i = 0; i < 5; ++i) {
    constexpr int64_t bytes_of_a_token = 2 * 2 * 6 * 4;
    EXPECT_EQ(state.bytes(), (4 + 7) * bytes_of_a_token);
    model->generative()->forward({tokens(1, 1), {}}, state);
  }
}

TEST(Decoding, ACopyGoesOnApart) {
  for_each_model(kGenerativeArchitectures, [&](const ModelConfig&, Model& model) {
    auto& generative = *model.generative();
    DecodingState state;
    generative.prefill({.input = {.ids = tokens(2, 4)}}, state);
    const auto more = tokens(2, 2), other = tokens(2, 2);
    auto copy = state.copy();
    const auto expected = generative.forward({.ids = more}, state);
    auto second = copy.copy();
    generative.forward({.ids = other}, copy);
    EXPECT_TRUE(torch::equal(generative.forward({.ids = more}, second), expected));
  });
}

// Several rows of a memory stay with it in a copy, whatever becomes of the rows.
TEST(Decoding, ACopyOfBeamsKeepsTheirSources) {
  const torch::NoGradGuard no_grad;
  const auto model = random_model(small_config(Architecture::encoder_decoder));
  auto& generative = *model->generative();
  const auto more = tokens(4, 2);
  for (const auto& rows : {Ids{3, 1, 0, 2}, Ids{0, 1, 2, 3}, Ids{1, 0, 3, 3}}) {
    DecodingState state;
    generative.prefill({.input = {.ids = tokens(2, 5)}}, state);
    state.reorder({0, 0, 1, 1});
    auto copy = state.copy();
    state.reorder(rows);
    copy.reorder(rows);
    const auto expected = generative.forward({.ids = more}, state);
    EXPECT_TRUE(torch::equal(generative.forward({.ids = more}, copy), expected));
    EXPECT_EQ(copy.memory(0)->n_memories(), state.memory(0)->n_memories());
  }
}

TEST(Decoding, EncoderDecoderReadsItsSourceOnce) {
  const torch::NoGradGuard no_grad;
  const auto model = random_model(small_config(Architecture::encoder_decoder));
  DecodingState state;
  model->generative()->prefill({.input = {.ids = tokens(2, 6)}}, state);
  ASSERT_NE(state.memory(1), nullptr);
  const auto* keys = state.memory(0)->together().keys.data_ptr();
  EXPECT_EQ(state.memory(0)->n_columns(), 6);
  model->generative()->forward({.ids = tokens(2, 1)}, state);
  EXPECT_EQ(state.lengths(), (Ids{2, 2}));
  EXPECT_EQ(state.memory(0)->together().keys.data_ptr(), keys);
}

// Beams of a source share its memory, and reordering the beams does not copy it.
TEST(Decoding, BeamsOfASourceShareItsMemory) {
  const torch::NoGradGuard no_grad;
  const auto model = random_model(small_config(Architecture::encoder_decoder));
  DecodingState state;
  model->generative()->prefill({.input = {.ids = tokens(2, 6)}}, state);
  const auto* keys = state.memory(0)->together().keys.data_ptr();
  for (const auto& rows : {Ids{0, 0, 0, 1, 1, 1}, Ids{2, 0, 0, 4, 5, 3}}) {
    state.reorder(rows);
    model->generative()->forward({.ids = tokens(6, 1)}, state);
    EXPECT_EQ(state.memory(0)->together().keys.data_ptr(), keys);
  }
  state.reorder({3, 4, 5});  // the first source is finished
  EXPECT_EQ(state.memory(0)->n_memories(), 1);
}

TEST(Decoding, AStateRefusesWhatItCannotDo) {
  const torch::NoGradGuard no_grad;
  const auto model = random_model(small_config(Architecture::decoder));
  DecodingState state;
  model->generative()->prefill({.input = {.ids = tokens(2, 4)}}, state);
  EXPECT_THROW(state.truncate({4}), c10::Error);
  EXPECT_THROW(state.truncate({5, 4}), c10::Error);
  EXPECT_THROW(model->generative()->forward({.ids = tokens(3, 1)}, state), c10::Error);
}

}  // namespace
}  // namespace zoo
