# FindTorch: a shared LibTorch (the PyTorch wheel, an unpacked LibTorch) as the imported target `torch`, with its OpenMP
# runtime, and
#   torch_cuda                           a target with its libraries for CUDA, if it was built for CUDA
#   Torch_VERSION, TORCH_INSTALL_PREFIX  its version and its folder
# Installed packages bring this module, too, so that they name no path of LibTorch.
# This module replaces LibTorch's own package file. If LibTorch was built for CUDA, as PyPI's wheels for Linux are, that
# file requires a CUDA toolkit and compiler of the same version and a CMake newer than 3.25.1. A program without CUDA code
# of its own needs none of them.
include(FindPackageHandleStandardArgs)

find_path(TORCH_INCLUDE_DIR torch/headeronly/version.h HINTS "${Torch_DIR}/../../../include")
get_filename_component(TORCH_INSTALL_PREFIX "${TORCH_INCLUDE_DIR}" DIRECTORY)
foreach(name torch torch_cpu c10 torch_cuda c10_cuda)
  string(TOUPPER "${name}_LIBRARY" variable)
  find_library(${variable} ${name} PATHS "${TORCH_INSTALL_PREFIX}/lib" NO_DEFAULT_PATH)
  mark_as_advanced(${variable})
endforeach()
mark_as_advanced(TORCH_INCLUDE_DIR)

if(TORCH_INCLUDE_DIR)
  file(READ "${TORCH_INCLUDE_DIR}/torch/headeronly/version.h" content)
  string(REGEX MATCH "define TORCH_VERSION_MAJOR ([0-9]+).*define TORCH_VERSION_MINOR ([0-9]+).*define TORCH_VERSION_PATCH ([0-9]+)"
    content "${content}")
  set(Torch_VERSION "${CMAKE_MATCH_1}.${CMAKE_MATCH_2}.${CMAKE_MATCH_3}")
endif()
find_package_handle_standard_args(Torch REQUIRED_VARS TORCH_LIBRARY TORCH_CPU_LIBRARY C10_LIBRARY TORCH_INCLUDE_DIR
  VERSION_VAR Torch_VERSION)

if(Torch_FOUND AND NOT TARGET torch)
  # LibTorch's own OpenMP runtime if it ships one. at::parallel_for in our code must use the same runtime, because each
  # runtime only knows its own parallel regions and would start more threads inside a region of the other.
  file(GLOB torch_openmp "${TORCH_INSTALL_PREFIX}/lib/libgomp*.so*")
  if(NOT torch_openmp)
    set(torch_openmp -fopenmp)
  endif()
  add_library(torch INTERFACE IMPORTED)
  set_target_properties(torch PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${TORCH_INCLUDE_DIR};${TORCH_INCLUDE_DIR}/torch/csrc/api/include"
    INTERFACE_COMPILE_OPTIONS -fopenmp
    INTERFACE_LINK_LIBRARIES "${TORCH_CPU_LIBRARY};${C10_LIBRARY};${torch_openmp}")
  if(TORCH_CUDA_LIBRARY)
    # No symbol refers to this library, so the linker would drop it. It registers itself with LibTorch when it is loaded.
    set_property(TARGET torch APPEND PROPERTY INTERFACE_LINK_LIBRARIES
      "-Wl,--push-state,--no-as-needed \"${TORCH_CUDA_LIBRARY}\" -Wl,--pop-state")
    add_library(torch_cuda INTERFACE IMPORTED)
    set_target_properties(torch_cuda PROPERTIES INTERFACE_LINK_LIBRARIES "${TORCH_CUDA_LIBRARY};${C10_CUDA_LIBRARY}")
  endif()
endif()
