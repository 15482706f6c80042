# c10d, LibTorch's library for processes that train together. LibTorch contains Gloo and NCCL but lacks their
# headers, which its own headers include. Gloo's are in Debian's libgloo-dev. NCCL's come with CUDA and are used if found.
find_path(ZOO_GLOO_INCLUDE gloo/config.h)
if(NOT ZOO_GLOO_INCLUDE)
  message(FATAL_ERROR "The headers of Gloo were not found: run scripts/setup.sh, or install libgloo-dev.")
endif()
add_library(zoo_c10d INTERFACE)
target_include_directories(zoo_c10d SYSTEM INTERFACE "$<BUILD_INTERFACE:${ZOO_GLOO_INCLUDE}>")
set(ZOO_C10D_DEFINITIONS USE_C10D_GLOO)
if(TARGET torch_cuda)
  # The wheel has its own CUDA headers; an unpacked LibTorch uses the machine's.
  file(GLOB zoo_cuda_includes "${TORCH_INSTALL_PREFIX}/../nvidia/*/include")
  find_path(ZOO_NCCL_INCLUDE nccl.h HINTS ${zoo_cuda_includes} PATHS "$ENV{CUDA_HOME}/include" /usr/local/cuda/include)
  find_path(ZOO_CUDA_INCLUDE cuda_runtime_api.h HINTS ${zoo_cuda_includes}
    PATHS "$ENV{CUDA_HOME}/include" /usr/local/cuda/include)
  if(ZOO_NCCL_INCLUDE AND ZOO_CUDA_INCLUDE)
    target_include_directories(zoo_c10d SYSTEM INTERFACE
      "$<BUILD_INTERFACE:${ZOO_NCCL_INCLUDE};${ZOO_CUDA_INCLUDE}>")
    target_link_libraries(zoo_torch INTERFACE torch_cuda)
    list(APPEND ZOO_C10D_DEFINITIONS USE_C10D_NCCL)
  else()
    message(STATUS "The headers of NCCL or CUDA were not found: no training on several GPUs")
  endif()
endif()
set(ZOO_C10D_DEFINITIONS ${ZOO_C10D_DEFINITIONS} PARENT_SCOPE)
