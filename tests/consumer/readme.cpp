#include <iostream>
#include <vector>

#include <torch/types.h>

#include <zoo/checkpoints/run.h>
#include <zoo/experiments/load_experiment.h>
#include <zoo/generation/generator.h>
#include <zoo/layers/attention/attention.h>
#include <zoo/training/trainer.h>

int main() try {
  // One layer by hand, with its weights. A call with maps takes the explicit path.
  zoo::Attention attention(zoo::AttentionOptions(/*d_model=*/512, /*n_heads=*/8).dropout(0.1));
  std::vector<torch::Tensor> maps;
  const auto y = attention(torch::randn({2, 10, 512}), {.mask = zoo::Mask::causal(), .maps = &maps});
  std::cout << attention << '\n' << y.sizes() << ' ' << maps[0].sizes() << '\n';  // (B, T, D), (B, H, T, S)

  // Train, then write. Another call goes on with the run; a run that is finished stays as it is.
  const auto experiment = zoo::load_experiment("shakespeare-char-cpu", {"training.steps=200"});
  const auto result = zoo::train(experiment, {.existing = zoo::ExistingRun::resume,
                                              .on_progress = zoo::progress_on_stderr(experiment.name)});
  const auto run = zoo::Run::open(result.run_dir);
  const zoo::Generator writer(run.model(), run.tokenizer());
  for (const auto& piece : writer.stream("ROMEO:", {.temperature = 0.8, .top_k = 40})) std::cout << piece;
  std::cout << '\n';
} catch (const zoo::Error& error) {
  std::cerr << error.what() << '\n';
  return error.exit_code();
}
