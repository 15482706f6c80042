# LibTorch from $LIBTORCH or CMAKE_PREFIX_PATH if the user sets one, else from the wheel that scripts/setup.sh has
# installed into .venv.
if(NOT Torch_DIR)
  file(GLOB wheel_torch "${PROJECT_SOURCE_DIR}/.venv/lib/python3.*/site-packages/torch")
  foreach(candidate "$ENV{LIBTORCH}" "${wheel_torch}")
    if(candidate AND EXISTS "${candidate}/share/cmake/Torch")
      list(APPEND CMAKE_PREFIX_PATH "${candidate}")
    endif()
  endforeach()
endif()
find_package(Torch 2.11 QUIET)  # by cmake/FindTorch.cmake
if(NOT Torch_FOUND)
  message(FATAL_ERROR "LibTorch 2.11 or newer was not found: run scripts/setup.sh, or set LIBTORCH to an unpacked LibTorch.")
endif()
set(ZOO_TORCH_PREFIX "${TORCH_INSTALL_PREFIX}" CACHE INTERNAL "The LibTorch that this build uses")
set(ZOO_TORCH_VERSION "${Torch_VERSION}" CACHE INTERNAL "Its version")
message(STATUS "LibTorch ${Torch_VERSION} in ${TORCH_INSTALL_PREFIX}")

add_library(zoo_torch INTERFACE)
target_link_libraries(zoo_torch INTERFACE torch)
get_target_property(zoo_torch_includes torch INTERFACE_INCLUDE_DIRECTORIES)
target_include_directories(zoo_torch SYSTEM INTERFACE "$<BUILD_INTERFACE:${zoo_torch_includes}>")
include(${CMAKE_CURRENT_LIST_DIR}/fmt.cmake)
target_link_libraries(zoo_torch INTERFACE zoo_fmt)
