#include "layers/attention_pooling.h"

#include "layers/weights/construction.h"
#include "layers/weights/description.h"

namespace zoo {

AttentionPoolingImpl::AttentionPoolingImpl(const AttentionPoolingOptions& options_) : options(options_) {
  query = register_parameter("query", torch::zeros({1, options.attention().d_model()}, parameter_options()));
  attention = register_module("attention", Attention(options.attention()));
  norm = register_module("norm", Norm(options.norm()));
  feed_forward = register_module("feed_forward", FeedForward(options.feed_forward()));
}

torch::Tensor AttentionPoolingImpl::forward(const torch::Tensor& x) {
  const auto queries = query.to(x.scalar_type()).expand({x.size(0), 1, x.size(2)});
  const auto found = attention(queries, {.memory = x}).squeeze(1);
  return found + feed_forward(norm(found));
}

void AttentionPoolingImpl::visit_weights(const WeightVisitor& visit) const {
  visit({query, 0, query.size(0), WeightUse::table});
}

void AttentionPoolingImpl::pretty_print(std::ostream& stream) const {
  stream << Description("AttentionPooling")
                .add("d_model", options.attention().d_model())
                .add("n_heads", options.attention().n_heads());
}

void count_attention_pooling(CostAccount& account, const std::string& name,
                             const AttentionPoolingOptions& options, int64_t batch_size, int64_t n_vectors) {
  const auto n_rows = static_cast<double>(batch_size);
  count_attention(account, account.path(name, "attention"), "cross-attention", options.attention(),
                  {.batch_size = batch_size, .n_queries = 1, .n_keys = n_vectors});
  count_norms(account, account.path(name, "norm"), options.norm(), 1, n_rows);
  count_feed_forward(account, account.path(name, "feed_forward"), options.feed_forward(), n_rows);
}

}  // namespace zoo
