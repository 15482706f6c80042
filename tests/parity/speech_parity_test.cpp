// CTC against PyTorch, and Whisper against transformers: logits, loss and gradients, greedy and beam search.

#include "generation/beam_search.h"
#include "models/families/families.h"
#include "models/families/whisper.h"
#include "tasks/ctc.h"
#include "tasks/token_cross_entropy.h"
#include "tests/parity/reference.h"
#include "tests/support/requests.h"

namespace zoo::testing {
namespace {

class SpeechParity : public ReferenceTest {
 protected:
  SpeechParity() : ReferenceTest("reference_speech.py") {}
};

TEST_F(SpeechParity, Ctc) {
  for (const char* const name : {"ctc", "ctc_at_length"}) {
    SCOPED_TRACE(name);
    ReferenceCase reference(file(name));
    const auto logits = reference.input("logits");
    const auto loss = ctc_loss_sum(logits, reference.input("lengths"), reference.input("transcripts"));
    expect_close(loss.to(torch::kFloat64), reference.output("loss").to(torch::kFloat64), "loss");
    reference.backward({{"loss", loss}});
    reference.expect_gradients();
  }
}

/// The tokens of a row up to the padding.
TokenIds tokens_of_row(const torch::Tensor& row) {
  const auto real = row.masked_select(row >= 0).contiguous();
  return {real.const_data_ptr<int64_t>(), real.const_data_ptr<int64_t>() + real.numel()};
}

TEST_F(SpeechParity, Whisper) {
  constexpr int64_t n_mels = 6, n_frames = 26, vocab_size = 31, start_token = 1;
  ModelConfig config;
  config.d_model = 24;
  config.n_layers = 2;
  config.n_heads = 4;
  config.d_ff = 40;
  config.max_positions = 32;
  config.dropout = 0;
  config.architecture = Selection("whisper", WhisperConfig{.max_frames = n_frames});
  config.n_decoder_layers = 3;
  config.key_bias = false;
  const auto model =
      initialized_model(config, {.vocab_size = vocab_size, .start_token = start_token, .n_mels = n_mels});
  model->train();  // every dropout is 0: this must change nothing
  ReferenceCase reference(file("whisper"));
  reference.load(*model);
  expect_close(model->named_buffers()["encoder_embedder.positions"], reference.input("positions"),
               "positions");

  Batch batch;
  const auto spectrograms = reference.input("spectrograms");
  batch.fields = {{fields::kSpectrograms, spectrograms}};
  batch.decoder.ids = reference.input("decoder_ids");
  batch.targets = reference.input("targets").flatten();
  const auto expected = reference.output("logits");
  reference.expect_output("logits", model->logits(model->features(batch)).view_as(expected));
  const auto loss = TokenCrossEntropy().loss(*model, batch) / static_cast<double>(batch.n_targets());
  reference.expect_output("loss", loss);
  loss.backward();
  reference.expect_gradients(model.get());

  // FORCED, SUPPRESSED, SUPPRESSED_FIRST and END of reference_speech.py.
  model->eval();
  const torch::NoGradGuard no_grad;
  const TokenIds prompt = {5, 9};
  const SearchLimits limits{.max_new_tokens = 9, .ends = {2}};
  const auto rules = [&] {
    LogitsProcessors list;
    list.push_back(std::make_unique<SuppressTokens>(TokenIds{3, 11}, vocab_size, torch::kCPU));
    list.push_back(std::make_unique<ForbiddenTokens>(
        TokenIds{2, 7}, [](const SequenceView& row) { return row.generated.empty(); }));
    return list;
  };
  const auto n_rows = spectrograms.size(0);
  auto asked = requests(std::vector<TokenIds>(static_cast<size_t>(n_rows), prompt), limits, greedy(rules()));
  for (int64_t i = 0; i < n_rows; ++i)
    asked[static_cast<size_t>(i)].fields = take_rows({.fields = batch.fields}, i, 1).fields;
  const auto outputs = written(*model->generative(), asked);
  const auto beams = beam_search(*model->generative(), torch::kCPU,
                                 std::vector<TokenIds>(static_cast<size_t>(n_rows), prompt), rules(), limits,
                                 {.beams = 4}, batch.fields);
  for (int64_t i = 0; i < n_rows; ++i) {
    EXPECT_EQ(outputs[static_cast<size_t>(i)].ids, tokens_of_row(reference.output("greedy")[i])) << i;
    EXPECT_EQ(beams[static_cast<size_t>(i)].front().ids, tokens_of_row(reference.output("beams")[i])) << i;
  }
}

}  // namespace
}  // namespace zoo::testing
