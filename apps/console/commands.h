#pragma once
// The subcommands of `zoo`. Each function declares one: its options, and a callback that runs it. Where a
// command can fail without an error that is still to be told, the callback sets `exit_code`.

namespace CLI {
class App;
}

namespace zoo {

void add_train(CLI::App& app, int& exit_code);
void add_generate(CLI::App& app);
void add_predict(CLI::App& app, int& exit_code);
void add_embed(CLI::App& app);
void add_score(CLI::App& app);
void add_serve(CLI::App& app);
void add_evaluate(CLI::App& app);
void add_average(CLI::App& app);
void add_import(CLI::App& app);
void add_export(CLI::App& app);
void add_merge(CLI::App& app);
void add_compare(CLI::App& app, int& exit_code);
void add_runs(CLI::App& app);
void add_verify(CLI::App& app, int& exit_code);
void add_inspect(CLI::App& app);
void add_bench(CLI::App& app);
void add_attention(CLI::App& app);
void add_lens(CLI::App& app);
void add_probe(CLI::App& app, int& exit_code);
void add_heads(CLI::App& app);
void add_ablate(CLI::App& app);
void add_attribute(CLI::App& app);
void add_patch(CLI::App& app);
void add_contacts(CLI::App& app);
void add_structure(CLI::App& app);
void add_config(CLI::App& app);
void add_tokenizer(CLI::App& app);
void add_doctor(CLI::App& app, int& exit_code);

}  // namespace zoo
