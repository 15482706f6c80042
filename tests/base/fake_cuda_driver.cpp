// A library in place of libcuda.so.1, with two GPUs. $FAKE_CUDA_ERROR is what cuInit() returns (default 0).

#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kNoDevice = 100, kBadValue = 1, kGpus = 2;

int init_error() {
  const char* const text = std::getenv("FAKE_CUDA_ERROR");
  return text == nullptr ? 0 : std::atoi(text);
}

}  // namespace

extern "C" {

int cuInit(unsigned) { return init_error(); }

int cuDriverGetVersion(int* version) {
  *version = 12040;
  return 0;
}

int cuGetErrorString(int error, const char** text) {
  *text = error == kNoDevice ? "no CUDA-capable device is detected" : nullptr;
  return error == kNoDevice ? 0 : kBadValue;
}

int cuDeviceGetCount(int* count) {
  *count = kGpus;
  return init_error();
}

int cuDeviceGet(int* device, int ordinal) {
  *device = 7 + ordinal;
  return 0;
}

int cuDeviceGetName(char* name, int size, int device) {
  std::strncpy(name, device == 7 ? "Made-up GPU" : "Another GPU", static_cast<size_t>(size));
  return 0;
}

int cuDeviceTotalMem_v2(size_t* bytes, int) {
  *bytes = size_t{24} << 30;
  return 0;
}

int cuDeviceGetAttribute(int* value, int attribute, int device) {
  *value = attribute == 75 ? 8 : attribute == 76 ? device - 1 : -1;
  return 0;
}
}
