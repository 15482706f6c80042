"""Mistakes that are planted to find what no test notices (scripts/plant.py). Each is one that a person could make.

A mistake replaces the text `right`, which occurs once in its file. An expression becomes a choice between both, and so do
statements, which end with ; or }. One that no test can notice, because it changes no behaviour, does not belong here.
"""

from typing import NamedTuple


class Mistake(NamedTuple):
    file: str
    right: str
    wrong: str


MISTAKES = [
    # ---- serving/http
    Mistake("serving/http/connection.cpp", 'if (method_ != "HEAD") bytes += response.body;', "bytes += response.body;"),
    Mistake("serving/http/connection.cpp", 'coding != "chunked"', 'coding.find("chunked") == coding.npos'),
    Mistake("serving/http/connection.cpp", "keeps_alive_ = keeps_alive_ && parser_->is_done();", "static_cast<void>(keeps_alive_);"),
    Mistake("serving/http/connection.cpp", 'queue("0\\r\\n\\r\\n");', 'queue("0\\r\\n");'),
    Mistake("serving/http/connection.cpp", "n_unsent_ > network_.options.limits.unsent_bytes", "unsent_.size() > network_.options.limits.unsent_bytes"),
    Mistake("serving/http/http_server.cpp", "n_refused_ -= connection->is_turned_away() ? 1 : 0;", "static_cast<void>(connection);"),
    Mistake("serving/http/http_server.cpp", "all <= options.limits.all_bodies_bytes", "connections_.size() < 2 || all <= 2 * options.limits.all_bodies_bytes"),
    Mistake("serving/http/connection.cpp", "parser_->chunked() ? network_.options.limits.body_bytes : parser_->content_length().value_or(0)", "parser_->content_length().value_or(0)"),
    Mistake("serving/http/form.cpp", "n_bytes += end;", "n_bytes = end;"),
    Mistake("serving/http/form.cpp", 'body != "--" && body != "--\\r\\n"', '!body.starts_with("--")'),
    # ---- serving
    Mistake("serving/model_worker.cpp", "!client.empty() && own > 0 && own + n > share_of_client(most)", "!client.empty() && own + n > share_of_client(most)"),
    Mistake("serving/model_worker.cpp", "counts_.waiting_or_running -= n;", "counts_.waiting_or_running -= 1;"),
    Mistake("serving/model_worker.cpp", "(own->second -= n) == 0", "(own->second -= 1) == 0"),
    Mistake("serving/model_worker.cpp", "if (!next || next->cancellation->requested()) return;", "if (!next) return;"),
    Mistake("serving/model_worker.cpp", "job.client != last_client_", "job.client == last_client_"),
    Mistake("serving/model_worker.cpp", "piece.tokens[i + 1].logprob = scored[0][i].logprob;", "piece.tokens[i].logprob = scored[0][i].logprob;"),
    Mistake("serving/service.cpp", "entry.last_used < oldest->last_used", "entry.last_used > oldest->last_used"),
    Mistake("serving/service.cpp", "n_loaded + bytes <= *options_.memory_limit", "bytes <= *options_.memory_limit"),
    Mistake("serving/api/response_store.cpp", "entry.id == id && entry.owner == owner", "entry.id == id"),
    Mistake("serving/api/response_store.cpp", "n_bytes_ -= place->bytes();", "n_bytes_ -= place->response.document.size();"),
    Mistake("serving/api/completion_answer.cpp", "calls_json(calls, choice.calls.size() - calls.size())", "calls_json(calls, 0)"),
    Mistake("serving/api/token_json.cpp", "if (!top.contains(text)) top[text] = entry[\"logprob\"];", "top[text] = entry[\"logprob\"];"),
    Mistake("serving/api/token_json.cpp", "goes_on ? std::max<int64_t>(offset - 1, 0) : offset", "offset"),
    Mistake("serving/api/api.cpp", "rest.find_first_not_of(\"0123456789\", 1) == rest.npos", "rest.size() > 1"),
    Mistake("serving/api/api.cpp", 'head.header("sec-fetch-site") != "same-origin"', 'head.header("sec-fetch-site") == "cross-site"'),
    Mistake("serving/api/texts/response_answer.cpp", "is_cut ? \"incomplete\" : \"completed\"", "\"completed\""),
    # ---- checkpoints
    Mistake("checkpoints/weight_average.cpp", "std::min(decay_, (1 + t) / (10 + t))", "decay_"),
    Mistake("checkpoints/weight_average.cpp", "static_cast<double>(files.size() + 1)", "static_cast<double>(files.size())"),
    Mistake("checkpoints/checkpoint.cpp", "*step_of(old) % kept.every == 0 && others-- > 0", "others-- > 0"),
    Mistake("checkpoints/checkpoint.cpp", "*step_of(a) > *step_of(b)", "a.filename().string() > b.filename().string()"),
    Mistake("checkpoints/checkpoint.cpp", "step && *step != state.step", "step && *step < state.step"),
    Mistake("checkpoints/run_directory.cpp", "fs::remove(replaced_ / kLockFile, error);", "static_cast<void>(error);"),
    Mistake("checkpoints/initial_weights.cpp", "is_classifier(name) && !same_classes", "is_classifier(name)"),
    # ---- tasks
    Mistake("tasks/label_loss.cpp", "targets * (1 - label_smoothing) + label_smoothing / 2", "targets * (1 - label_smoothing) + label_smoothing"),
    Mistake("tasks/labels.cpp", "labels.size() == 1 ? share_in(field) : std::nullopt", "share_in(field)"),
    Mistake("tasks/evaluation.cpp", "std::min(all, options.max_batches.value_or(all))", "options.max_batches.value_or(all)"),
    Mistake("tasks/evaluation.cpp", "a * n_classes + p", "p * n_classes + a"),
    Mistake("tasks/ctc.cpp", "s % 2 == 1 && symbols_[s] != symbols_[s - 2]", "s % 2 == 1"),
    Mistake("tasks/metrics/entity_metrics.cpp", "next.prefix == 'B' || next.prefix == 'S' || next.prefix == 'O'", "next.prefix == 'B' || next.prefix == 'O'"),
    Mistake("tasks/metrics/label_metrics.cpp", "static_cast<double>(begin + end - 1) / 2", "static_cast<double>(begin)"),
    Mistake("tasks/metrics/detection_metrics.cpp", "if (taken[m] && !marked[m]->is_crowd) continue;", "if (taken[m]) continue;"),
    Mistake("tasks/text/text_to_text.cpp", "bytes += static_cast<double>(size + 1);", "bytes += static_cast<double>(size);"),
    Mistake("tasks/text/label_likelihood.cpp", "source.resize(std::min(source.size(), static_cast<size_t>(source_length_ - 1)));", "source.resize(std::min(source.size(), static_cast<size_t>(source_length_)));"),
    # ---- models
    Mistake("models/stack.cpp", "RotaryScaling::none", "config.rotary.scaling"),
    Mistake("models/stack.cpp", "static_cast<double>(layer) / static_cast<double>(last)", "static_cast<double>(layer + 1) / static_cast<double>(last + 1)"),
    Mistake("models/lora.cpp", "for (auto& parameter : model.parameters()) parameter.requires_grad_(true);", "static_cast<void>(n_adapters);"),
    Mistake("models/trained_adapters.cpp", "row += part.n_outputs;", "row += 1;"),
    Mistake("models/heads.cpp", "dropout(pooled, is_training() ? config_.dropout : 0.0)", "dropout(pooled, config_.dropout)"),
    # ---- generation
    Mistake("generation/constraints/automaton.cpp", "for (int64_t i = 0; i < expression.least; ++i) node = add(part, node);", "for (int64_t i = 1; i < expression.least; ++i) node = add(part, node);"),
    Mistake("generation/constraints/automaton.cpp", "begins[edge.bytes.first] = begins[edge.bytes.last + 1U] = true;", "begins[edge.bytes.first] = begins[edge.bytes.last] = true;"),
    Mistake("generation/constraints/regular_expression.cpp", "lower ? c - U'a' : c - U'A'", "c - U'a'"),
    Mistake("generation/constraints/regular_expression.cpp", "text_[at_ + 1] != U']'", "text_[at_ + 1] != U'-'"),
    Mistake("generation/constraints/json_values.cpp", "std::max<int64_t>(-most, 1)", "std::max<int64_t>(-most, 0)"),
    Mistake("generation/constraints/json_values.cpp", "least.value + 1 < most.value", "least.value + 2 < most.value"),
    Mistake("generation/rules/logits_processors.cpp", "std::get<0>(logits.topk(k_, 1)).select(1, k_ - 1)", "std::get<0>(logits.topk(k_, 1)).select(1, 0)"),
    Mistake("generation/rules/repetition.cpp", "scores - presence_ - frequency_ * counts", "scores - (presence_ + frequency_) * counts"),
    Mistake("generation/rules/repetition.cpp", "torch::where(scores < 0, scores * penalty_, scores / penalty_)", "scores / penalty_"),
    Mistake("generation/scheduler.cpp", "std::tuple(priority(waiting), places.of_client[asked.client], waiting.request)", "std::tuple(priority(waiting) * 0, places.of_client[asked.client], waiting.request)"),
    # ---- comparison
    Mistake("statistics/paired_test.cpp", "order.size() - rank", "order.size() - std::min(rank, size_t{1})"),
    Mistake("statistics/paired_test.cpp", "is_lower == (better == Better::lower)", "is_lower"),
    Mistake("statistics/power_law.cpp", "n - variants - 1", "n - 2"),
    Mistake("comparison/tuning.cpp", "outcomes[i].values.size() < n_seeds", "outcomes[i].values.empty()"),
    Mistake("comparison/tuning.cpp", "own && numbers.size() > 1 && (*own == *numbers.begin() || *own == *numbers.rbegin())", "own && numbers.size() > 1 && *own == *numbers.rbegin()"),
    Mistake("comparison/planning/budget.cpp", "budget.amount - used(before) < used(after) - budget.amount", "used(before) < budget.amount"),
    Mistake("comparison/findings/findings.cpp", "if (twin.seed != seed.seed) continue;", "if (twin.seed > seed.seed) continue;"),
    # ---- interop and formats
    Mistake("interop/gguf/gguf_config.cpp", "keys.number(rotary + \"scale_linear\", 0)", "0.0"),
    Mistake("interop/gguf/gguf_tensors.cpp", "is_query ? n_heads.get<int64_t>() : config.value(\"num_key_value_heads\", n_heads).get<int64_t>()", "n_heads.get<int64_t>()"),
    Mistake("interop/gguf/gguf_tensors.cpp", "way_ == Way::to_file ? 1 : -1", "way_ == Way::to_file ? -1 : 1"),
    Mistake("io/formats/gguf_file.cpp", "(reader.position() + step - 1) / step * step", "reader.position() / step * step + step"),
    Mistake("io/formats/gguf_file.cpp", "ranges[i].first < ranges[i - 1].second", "ranges[i].first + 1 < ranges[i - 1].second"),
    Mistake("io/formats/gguf_file.cpp", "static_cast<uint64_t>(begin / type.elements) * type.bytes", "static_cast<uint64_t>(begin) * type.bytes"),
    Mistake("interop/foreign_export.cpp", "c10::isFloatingType(stored) ? type_ : stored", "type_"),
    # ---- data, text, tokenizers
    Mistake("data/epoch_plan.cpp", "rows > most.rows || rows * longest > most.tokens", "rows > most.rows"),
    Mistake("data/epoch_plan.cpp", "longest = lengths[static_cast<size_t>(plan.examples[i])];", "static_cast<void>(longest);"),
    Mistake("data/class_split.cpp", "are_classes && hashes[i] == largest.at(rows[i].label)", "false"),
    Mistake("data/batch.cpp", "batch.positions.index_select(0, here) - begin", "batch.positions.index_select(0, here)"),
    Mistake("text/conversations.cpp", "from == \"human\"", "from == \"user\""),
    Mistake("text/conversations.cpp", "more.empty() ? \"\" : \"\\n\\n\" + more", "\"\\n\\n\" + more"),
    Mistake("tokenizers/subwords/bpe.cpp", "best && best->rank <= merge->rank", "best && best->rank < merge->rank"),
    Mistake("tokenizers/subwords/bpe.cpp", "owes_unk && fuse_unk_ ? unk_size + size : size", "size"),
    # ---- layers
    Mistake("layers/attention/position_bias.cpp", "i += 2", "i += 1"),
    Mistake("layers/attention/mask.cpp", "torch::minimum(ends_, other.ends_)", "ends_"),
    Mistake("layers/attention/window_state.cpp", "latest.masked_fill(latest.ge(lengths), -1)", "latest"),
    Mistake("layers/attention/rotary.cpp", "std::pow(options.factor(), width / (width - 2.0))", "options.factor()"),
    Mistake("layers/residual.cpp", "is_training() && options.stochastic_depth() > 0", "options.stochastic_depth() > 0"),
    # ---- tool calls
    Mistake("generation/constraints/part_constraint.cpp", "text.substr(first).starts_with(mark_) ? first : text.npos", "text.starts_with(mark_) ? 0 : text.npos"),
    Mistake("generation/constraints/part_constraint.cpp", "from = begin + (has_ended ? reached.n_to_end : mark_.size());", "from = begin + mark_.size();"),
    Mistake("generation/constraints/part_constraint.cpp", "if (!std::string_view(mark_).starts_with(text)) return {};", "static_cast<void>(text);"),
    Mistake("generation/generator_forms.cpp", "parts.form->name", "parts.form->mark"),
    Mistake("generation/generator_forms.cpp", "if (id >= 0 && id < tokenizer_.vocab_size()) result.push_back(id);", "static_cast<void>(id);"),
    Mistake("serving/api/tools.cpp", '"#" + place + value.get<std::string>().substr(1)', '"#" + value.get<std::string>().substr(1)'),
    Mistake("serving/api/tools.cpp", "open == held_.npos ? std::min(held_.size(), kOpen.size() - 1) : 0", "size_t{0}"),
    Mistake("serving/api/tools.cpp", "n_calls_ > 0 || !found.calls.empty()", "!found.calls.empty()"),
    Mistake("serving/api/tools.cpp", "found.calls.resize(1 - n_calls_);", "found.calls.resize(1);"),
    Mistake("serving/api/tools.cpp", "std::min(arguments, text.find(kId))", "arguments"),
    Mistake("serving/api/texts/chat_call.cpp", "options.regex.empty() && options.json_schema.empty() && !options.ignore_eos", "options.regex.empty() && options.json_schema.empty()"),
    Mistake("serving/api/texts/chat_call.cpp", "std::clamp<int64_t>(room, 1, most_tokens)", "std::min<int64_t>(room, most_tokens)"),
    Mistake("serving/api/texts/response_answer.cpp", "end_ == OutputEnd::length || end_ == OutputEnd::time", "end_ == OutputEnd::length"),
    Mistake("serving/api/texts/response_routes.cpp", 'messages.empty() || messages.back()["role"] != "assistant"', "messages.empty()"),
    # ---- drafts
    Mistake("serving/served_model.cpp", "card.generation.prompt_lookup = 0;", "static_cast<void>(card);"),
    Mistake("serving/served_model.cpp", "require_same_vocabulary(*draft_, run_);", "static_cast<void>(run_);"),
    Mistake("generation/speculation.cpp", "most = std::min(most, model_.max_length() - std::ssize(ids));", "static_cast<void>(most);"),
    Mistake("generation/speculation.cpp", "at.position += static_cast<uint64_t>(i);", "static_cast<void>(i);"),
    Mistake("generation/scheduler.cpp", "std::min(n_added, tokens.size() - 1)", "tokens.size() - 1"),
    # ---- structures
    Mistake("tasks/structures/backbone_scores.cpp", "near.triu(beyond + 1)", "near.triu(beyond)"),
    Mistake("tasks/structures/backbone_scores.cpp", "apart.any(0).logical_or(apart.any(1))", "apart.any(0)"),
    Mistake("tasks/structures/flow.cpp", "static_cast<uint64_t>(seed.first_row + b)", "static_cast<uint64_t>(b)"),
    Mistake("tasks/structures/structure_loss.cpp", "flow_.late_lddt * (points.times - 0.5).clamp_min(0)", "flow_.late_lddt * (points.times - 0.5)"),
    Mistake("tasks/structures/structure_loss.cpp", "left.clamp_min(least_time_left)", "left"),
    Mistake("tasks/structures/structure_loss.cpp", "known.narrow(2, 0, 3).prod(2)", "known.select(2, kCaPlace)"),
    Mistake("tasks/structures/structure_prediction.cpp", "chain.length() > config.longest_scored", "chain.length() >= config.longest_scored"),
    Mistake("tasks/structures/structure_prediction.cpp", "static_cast<uint64_t>(number[b])", "static_cast<uint64_t>(b)"),
    Mistake("layers/folding/structure_losses.cpp", "counted.diagonal(0, 1, 2).zero_();", "static_cast<void>(counted);"),
    Mistake("layers/folding/structure_losses.cpp", "right < radius", "distances(predicted) < radius"),
    Mistake("layers/folding/structure_losses.cpp", "signs.select(1, 2).copy_(at::linalg_det(u.matmul(vh)));", "static_cast<void>(vh);"),
    Mistake("models/folding_model.cpp", "(hidden * mask).sum(1) / mask.sum(1)", "(hidden * mask).mean(1)"),
    Mistake("data/structures/backbone_batches.cpp", "(places - centre) * mask.unsqueeze(-1)", "places - centre"),
    Mistake("data/structures/backbone_batches.cpp", "batch.tokens += count * copies;", "batch.tokens += count;"),
    Mistake("data/structures/backbone_batches.cpp", "static_cast<uint64_t>(epoch)", "uint64_t{0}"),
    Mistake("data/structures/backbones.cpp", "residue.parent.empty() || !residue.atom(kAtoms[kCaPlace])", "residue.parent.empty()"),
    Mistake("data/structures/backbones.cpp", "add(chain.positions);", "static_cast<void>(chain);"),
    # ---- scores of examples
    Mistake("tasks/examples.cpp", "(batch.decoder.defined() ? batch.decoder : batch.input).length()", "batch.input.length()"),
    Mistake("tasks/examples.cpp", "example.n_right == example.n_answers", "example.n_right > 0"),
    Mistake("statistics/example_test.cpp", "std::abs(exchanged) >= as_large", "exchanged >= as_large"),
    Mistake("statistics/example_test.cpp", "static_cast<double>(n_as_large + 1)", "static_cast<double>(n_as_large)"),
    Mistake("statistics/example_test.cpp", "nearest_quantile(drawn, (1 + kConfidence) / 2)", "nearest_quantile(drawn, kConfidence)"),
]
