#include "training/gradient_reducer.h"

#include <algorithm>
#include <map>

#include <torch/types.h>

namespace zoo {

GradientReducer::GradientReducer(const ProcessGroup& processes, std::vector<torch::Tensor> parameters,
                                 const ReducerOptions& options)
    : processes_(processes),
      parameters_(std::move(parameters)),
      places_(parameters_.size()),
      waits_for_end_(std::ranges::count(options.owners, ReducerOptions::kOwn) > 0) {
  fill_buckets(options);
  for (size_t b = 0; b < buckets_.size(); ++b) allocate(b);
}

/// A backward pass makes the gradients of the last layers first, so the buckets begin with the last
/// parameters.
void GradientReducer::fill_buckets(const ReducerOptions& options) {
  std::map<int64_t, std::unique_ptr<Bucket>> open;  // by owner
  std::map<int64_t, int64_t> bytes;
  const auto close = [&](int64_t owner) {
    buckets_.push_back(std::move(open.at(owner)));
    open.erase(owner);
    bytes.erase(owner);
  };
  for (size_t i = parameters_.size(); i-- > 0;) {
    const int64_t owner = options.owners.empty() ? ReducerOptions::kEvery : options.owners[i];
    auto& bucket = open[owner];
    // NOLINTNEXTLINE(modernize-make-unique): an atomic cannot be moved into its place
    if (!bucket) bucket.reset(new Bucket{.owner = owner, .members = {}, .values = {}});
    bucket->members.push_back(i);
    bytes[owner] += static_cast<int64_t>(parameters_[i].nbytes());
    if (bytes[owner] >= (buckets_.empty() ? options.first_bucket_bytes : options.bucket_bytes)) close(owner);
  }
  while (!open.empty()) close(open.begin()->first);
}

void GradientReducer::allocate(size_t index) {
  auto& bucket = *buckets_[index];
  int64_t size = 0;
  for (const size_t i : bucket.members) size += parameters_[i].numel();
  const auto n_members = static_cast<int64_t>(bucket.members.size());
  bucket.values = torch::zeros({size + n_members}, parameters_[bucket.members.front()].options());
  int64_t offset = 0;
  for (int64_t k = 0; k < n_members; ++k) {
    const size_t i = bucket.members[static_cast<size_t>(k)];
    const int64_t count = parameters_[i].numel();
    places_[i].bucket = index;
    places_[i].gradient = bucket.values.narrow(0, offset, count).view(parameters_[i].sizes());
    places_[i].presence = bucket.values.narrow(0, size + k, 1);
    offset += count;
  }
}

void GradientReducer::begin() {
  for (auto& bucket : buckets_) {
    bucket->n_missing = bucket->members.size();
    bucket->lacks_some = false;
  }
  n_started_ = 0;
}

void GradientReducer::mark_ready(size_t i, const torch::Tensor& gradient) {
  const torch::NoGradGuard no_grad;
  const auto& place = places_[i];
  if (gradient.defined()) {
    place.gradient.copy_(gradient);
  } else {
    place.gradient.zero_();
  }
  place.presence.fill_(gradient.defined() ? 1 : 0);
  if (!gradient.defined()) buckets_[place.bucket]->lacks_some = true;
  if (--buckets_[place.bucket]->n_missing == 0 && !waits_for_end_) start_complete_buckets();
}

/// A complete bucket waits for those before it: the order must be the same in all processes.
void GradientReducer::start_complete_buckets() {
  const std::lock_guard lock(starting_);
  while (n_started_ < buckets_.size() && buckets_[n_started_]->n_missing == 0) {
    auto& bucket = *buckets_[n_started_++];
    if (bucket.owner == ReducerOptions::kOwn) continue;
    bucket.work = bucket.owner == ReducerOptions::kEvery ? processes_.all_reduce(bucket.values)
                                                         : processes_.reduce(bucket.values, bucket.owner);
  }
}

void GradientReducer::finish() {
  if (waits_for_end_) start_complete_buckets();
  for (auto& bucket : buckets_) {
    bucket->work.wait();
    bucket->work = {};
    const bool is_here = bucket->owner < 0 || bucket->owner == processes_.rank();
    const auto n_members = static_cast<int64_t>(bucket->members.size());
    // What this process has, some process has: only for what it lacks does it wait for the device.
    const bool asks = is_here && bucket->lacks_some;
    const auto presence =
        asks ? bucket->values.narrow(0, bucket->values.numel() - n_members, n_members).to(torch::kCPU)
             : torch::Tensor();
    for (int64_t k = 0; k < n_members; ++k) {
      const size_t i = bucket->members[static_cast<size_t>(k)];
      auto& gradient = parameters_[i].mutable_grad();
      if (is_here && (!asks || presence[k].item<double>() > 0)) {
        gradient = places_[i].gradient;
      } else {
        gradient.reset();
      }
    }
  }
}

}  // namespace zoo
