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
  # CUDA's headers from the wheels beside LibTorch's, from a toolkit, or the toolkit's where the wheels lack some: the first
  # that compile. LibTorch's own headers of NCCL and of graphs include them; nothing else here needs them.
  file(GLOB zoo_wheel_includes "${TORCH_INSTALL_PREFIX}/../nvidia/*/include")
  set(zoo_toolkit_includes "")
  foreach(folder "$ENV{CUDA_HOME}/include" /usr/local/cuda/include)
    if(EXISTS "${folder}/cuda_runtime_api.h")
      list(APPEND zoo_toolkit_includes "${folder}")
    endif()
  endforeach()
  set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
  foreach(candidate "${zoo_wheel_includes}" "${zoo_toolkit_includes}" "${zoo_toolkit_includes};${zoo_wheel_includes}")
    if(NOT candidate OR candidate STREQUAL ";" OR ZOO_CUDA_HEADERS_WORK)
      continue()
    endif()
    unset(ZOO_CUDA_HEADERS_WORK CACHE)
    try_compile(ZOO_CUDA_HEADERS_WORK
      SOURCE_FROM_CONTENT cuda_headers.cpp "#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>\nint main() {}\n"
      CMAKE_FLAGS "-DINCLUDE_DIRECTORIES=${candidate};${zoo_torch_includes}"
      COMPILE_DEFINITIONS -DUSE_C10D_NCCL CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON)
    set(ZOO_CUDA_INCLUDES "${candidate}" CACHE INTERNAL "The headers of CUDA and NCCL, if they compile")
  endforeach()
  unset(CMAKE_TRY_COMPILE_TARGET_TYPE)
  if(ZOO_CUDA_HEADERS_WORK)
    target_include_directories(zoo_c10d SYSTEM INTERFACE "$<BUILD_INTERFACE:${ZOO_CUDA_INCLUDES}>")
    target_link_libraries(zoo_torch INTERFACE torch_cuda)
    list(APPEND ZOO_C10D_DEFINITIONS USE_C10D_NCCL)
  else()
    message(STATUS "LibTorch's headers of NCCL do not compile here (scripts/setup.sh installs what they need with PyPI's "
      "wheel): no training on several GPUs")
  endif()
endif()
set(ZOO_C10D_DEFINITIONS ${ZOO_C10D_DEFINITIONS} PARENT_SCOPE)
set(ZOO_HAS_CUDA_HEADERS ${ZOO_CUDA_HEADERS_WORK} PARENT_SCOPE)
