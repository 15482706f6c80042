#include "parallel/process_group.h"

#include <charconv>
#include <cstdlib>
#include <exception>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <torch/types.h>
#ifdef USE_C10D_NCCL
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#endif

namespace zoo {
namespace {

using Milliseconds = std::chrono::milliseconds;

std::optional<std::string_view> variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr && *value != '\0' ? std::optional<std::string_view>(value) : std::nullopt;
}

int64_t number(const char* name, int64_t least, int64_t most) {
  const auto text = variable(name);
  if (!text)
    throw UsageError(fmt::format("WORLD_SIZE is set, but not {}: start with torchrun or launch()", name));
  int64_t value = 0;
  const auto result = std::from_chars(text->data(), text->data() + text->size(), value);
  if (result.ec != std::errc() || result.ptr != text->data() + text->size() || value < least ||
      value > most) {
    throw UsageError(fmt::format("{}={}: must be a number from {} to {}", name, *text, least, most));
  }
  return value;
}

int64_t number_or(const char* name, int64_t otherwise, int64_t least, int64_t most) {
  return variable(name) ? number(name, least, most) : otherwise;
}

bool is_loopback(std::string_view host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

[[noreturn]] void fail(const ProcessPlace& place, const char* reason) {
  const std::string_view text = reason;
  throw PeerError(
      fmt::format("rank {} of {}: another process of this training is gone or does not answer ({}); "
                  "ExistingRun::resume goes on from the last checkpoint",
                  place.rank, place.size, text.substr(0, text.find('\n'))));
}

c10::intrusive_ptr<c10d::TCPStore> make_store(const ProcessPlace& place,
                                              const c10d::TCPStoreOptions& options) {
  try {
    return c10::make_intrusive<c10d::TCPStore>(place.host, options);
  } catch (const std::exception& error) {
    if (!options.isServer || std::string_view(error.what()).find("EADDRINUSE") == std::string_view::npos)
      throw;
    throw SystemError(fmt::format(
        "port {} is in use by another program: set MASTER_PORT to a free port in every process", place.port));
  }
}

c10::intrusive_ptr<c10d::Store> connect(const ProcessPlace& place, Milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = place.port;
  options.isServer = place.store == ProcessPlace::Store::of_first_rank && place.rank == 0;
  options.numWorkers = place.size;
  options.waitWorkers = false;
  options.timeout = timeout;
  auto store = make_store(place, options);
  return c10::make_intrusive<c10d::PrefixStore>(fmt::format("zoo/{}", place.attempt), std::move(store));
}

c10::intrusive_ptr<c10d::Backend> make_gloo(const ProcessPlace& place,
                                            const c10::intrusive_ptr<c10d::Store>& store,
                                            Milliseconds timeout) {
  using Gloo = c10d::ProcessGroupGloo;
  auto options = Gloo::Options::create(timeout);
  const auto interface = variable("GLOO_SOCKET_IFNAME");
  options->devices.push_back(interface ? Gloo::createDeviceForInterface(std::string(*interface))
                             : is_loopback(place.host) ? Gloo::createDeviceForHostname("127.0.0.1")
                                                       : Gloo::createDefaultDevice());
  return c10::make_intrusive<Gloo>(c10::make_intrusive<c10d::PrefixStore>("gloo", store),
                                   static_cast<int>(place.rank), static_cast<int>(place.size),
                                   std::move(options));
}

c10::intrusive_ptr<c10d::Backend> make_nccl([[maybe_unused]] const ProcessPlace& place,
                                            [[maybe_unused]] const c10::intrusive_ptr<c10d::Store>& store,
                                            [[maybe_unused]] Milliseconds timeout) {
#ifdef USE_C10D_NCCL
  using Nccl = c10d::ProcessGroupNCCL;
  auto options = Nccl::Options::create();
  options->timeout = timeout;
  return c10::make_intrusive<Nccl>(c10::make_intrusive<c10d::PrefixStore>("nccl", store),
                                   static_cast<int>(place.rank), static_cast<int>(place.size),
                                   std::move(options));
#else
  throw UsageError("this program was built without NCCL: train on one GPU, or with TrainOptions::device cpu");
#endif
}

/// Gloo reads the host's memory, and NCCL that of GPUs. A tensor on another device is exchanged as a copy.
torch::Tensor readable(const torch::Tensor& tensor) {
  return tensor.is_cpu() || tensor.is_cuda() ? tensor : tensor.to(torch::kCPU);
}

}  // namespace

std::optional<ProcessPlace> place_from_environment() {
  constexpr int64_t most = 1 << 20;
  if (!variable("WORLD_SIZE")) return std::nullopt;
  ProcessPlace place;
  place.size = number("WORLD_SIZE", 1, most);
  place.rank = number("RANK", 0, place.size - 1);
  place.local_size = number_or("LOCAL_WORLD_SIZE", place.size, 1, place.size);
  place.local_rank = number_or("LOCAL_RANK", place.rank, 0, place.local_size - 1);
  place.host = variable("MASTER_ADDR").value_or(place.host);
  place.port = static_cast<uint16_t>(number_or("MASTER_PORT", place.port, 1, 65535));
  if (variable("TORCHELASTIC_USE_AGENT_STORE") == "True") place.store = ProcessPlace::Store::of_launcher;
  place.attempt = number_or("TORCHELASTIC_RESTART_COUNT", 0, 0, most);
  return place;
}

struct ProcessGroup::Backends {
  c10::intrusive_ptr<c10d::Store> store;
  c10::intrusive_ptr<c10d::Backend> cpu, cuda;  // cuda: null if the model is on the CPU
};

ProcessGroup::ProcessGroup() = default;

ProcessGroup::ProcessGroup(const ProcessPlace& place, torch::Device device, Milliseconds timeout)
    : place_(place) {
  if (is_alone()) return;
  backends_ = std::make_unique<Backends>();
  try {
    backends_->store = connect(place_, timeout);
    backends_->cpu = make_gloo(place_, backends_->store, timeout);
    if (device.is_cuda()) backends_->cuda = make_nccl(place_, backends_->store, timeout);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    fail(place_, error.what());
  }
}

ProcessGroup::~ProcessGroup() {
  // After a failure the connections stay open until the process ends: closing them would wait for operations
  // that never end.
  if (std::uncaught_exceptions() > 0) static_cast<void>(backends_.release());
}

template <class Start>
ProcessGroup::Work ProcessGroup::start(torch::Tensor tensor, const Start& start) const {
  if (!backends_) return {};
  bytes_exchanged_ += static_cast<int64_t>(tensor.nbytes());
  try {
    const auto& backend = tensor.is_cuda() ? backends_->cuda : backends_->cpu;
    std::vector<torch::Tensor> tensors = {readable(tensor)};
    auto work = start(*backend, tensors);
    return Work([this, work = std::move(work), tensor = std::move(tensor), exchanged = tensors.front()] {
      try {
        work->wait();
        if (!exchanged.is_same(tensor)) tensor.copy_(exchanged);
      } catch (const std::exception& error) {
        fail(place_, error.what());
      }
    });
  } catch (const std::exception& error) {
    fail(place_, error.what());
  }
}

ProcessGroup::Work ProcessGroup::all_reduce(torch::Tensor tensor) const {
  return start(std::move(tensor), [](auto& backend, auto& tensors) { return backend.allreduce(tensors); });
}

ProcessGroup::Work ProcessGroup::reduce(torch::Tensor tensor, int64_t root) const {
  c10d::ReduceOptions options;
  options.rootRank = root;
  return start(std::move(tensor),
               [&](auto& backend, auto& tensors) { return backend.reduce(tensors, options); });
}

ProcessGroup::Work ProcessGroup::broadcast(torch::Tensor tensor, int64_t root) const {
  c10d::BroadcastOptions options;
  options.rootRank = root;
  return start(std::move(tensor),
               [&](auto& backend, auto& tensors) { return backend.broadcast(tensors, options); });
}

ProcessGroup::Work ProcessGroup::all_to_all(torch::Tensor to, const torch::Tensor& from,
                                            const std::vector<int64_t>& received,
                                            const std::vector<int64_t>& sent) const {
  if (is_alone()) to.copy_(from);
  return start(std::move(to), [&](auto& backend, auto& tensors) {
    auto input = readable(from);
    auto in_rows = sent, out_rows = received;
    return backend.alltoall_base(tensors.front(), input, out_rows, in_rows);
  });
}

void ProcessGroup::send(torch::Tensor tensor, int64_t to) const {
  start(std::move(tensor), [&](auto& backend, auto& tensors) {
    return backend.send(tensors, static_cast<int>(to), /*tag=*/0);
  }).wait();
}

void ProcessGroup::recv(torch::Tensor tensor, int64_t from) const {
  start(std::move(tensor), [&](auto& backend, auto& tensors) {
    return backend.recv(tensors, static_cast<int>(from), /*tag=*/0);
  }).wait();
}

void ProcessGroup::run_or_fail_together(const std::function<void()>& function,
                                        std::optional<Milliseconds> timeout) const {
  if (is_alone()) return function();
  std::exception_ptr failure;
  try {
    function();
  } catch (...) {
    failure = std::current_exception();
  }
  const auto failures = torch::full({}, failure ? 1 : 0, torch::kLong);
  try {
    start(failures, [&](auto& backend, auto& tensors) {
      c10d::AllreduceOptions options;
      if (timeout) options.timeout = *timeout;
      return backend.allreduce(tensors, options);
    }).wait();
  } catch (const PeerError&) {
    if (!failure) throw;  // otherwise this process's own error says more
  }
  if (failure) std::rethrow_exception(failure);
  if (failures.item<int64_t>() > 0) {
    throw PeerError(
        fmt::format("rank {} of {}: another process of this training failed; its message says why",
                    place_.rank, place_.size));
  }
}

}  // namespace zoo
