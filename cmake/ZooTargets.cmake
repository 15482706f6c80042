# How every target of this project is compiled, and two functions that declare targets.

add_library(zoo_options INTERFACE)
target_include_directories(zoo_options INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(zoo_options INTERFACE cxx_std_20)

add_library(zoo_warnings INTERFACE)
target_compile_options(zoo_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
  # g++ 12 reports overflows in std::string's own code that do not exist (GCC bugs 105329, 105651).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow -Wno-array-bounds -Wno-restrict>
  $<$<BOOL:${ZOO_WARNINGS_AS_ERRORS}>:-Werror>)

if(ZOO_SANITIZE)
  # With the sanitizers' code g++ reports values as unset that are set, and that TSan knows no fences.
  target_compile_options(zoo_warnings INTERFACE -Wno-maybe-uninitialized $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)
  add_compile_options(-fsanitize=${ZOO_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  add_link_options(-fsanitize=${ZOO_SANITIZE})
endif()

# LibTorch's headers fill more memory than g++ fills before it first looks for garbage, which then takes a tenth of the time.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(--param=ggc-min-heapsize=2000000)
endif()

find_program(ZOO_CCACHE ccache)
if(ZOO_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # ccache can only cache a precompiled header if its time stamp is not part of the key.
  set(CMAKE_CXX_COMPILER_LAUNCHER
    ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    ${ZOO_CCACHE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-fpch-preprocess)
  endif()
endif()

# The precompiled headers hold what nearly every source of a folder uses: the standard library and the libraries of which
# many sources use templates; those of folders that compute with tensors also LibTorch; those of the tests also the tests'
# headers. They leave out <torch/torch.h>, because its templates cost every source four more seconds. Folders without
# tensors do without LibTorch, because its headers cost each of their units ten seconds.
set(ZOO_PRECOMPILED_TEXT <nlohmann/json.hpp> <fmt/format.h> <fmt/ranges.h> <algorithm> <array> <filesystem> <fstream>
  <functional> <map> <optional> <set> <span> <sstream> <string> <unordered_map> <vector>)
set(ZOO_PRECOMPILED <torch/types.h> <torch/utils.h> <torch/nn/module.h> <torch/nn/pimpl.h> <torch/nn/init.h>
  <torch/nn/modules/linear.h> <torch/nn/modules/embedding.h> <torch/nn/modules/container/modulelist.h>
  ${ZOO_PRECOMPILED_TEXT})
# zoo_precompile(NAME LINKS HEADERS...): a target whose precompiled header other targets reuse.
function(zoo_precompile name links)
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/${name}.cpp" CONTENT "// Carrier of a precompiled header.\n")
  add_library(${name} OBJECT "${PROJECT_BINARY_DIR}/${name}.cpp")
  target_link_libraries(${name} PRIVATE zoo_options zoo_warnings ${links})
  target_precompile_headers(${name} PRIVATE ${ARGN})
endfunction()
zoo_precompile(zoo_text_pch "zoo_torch;zoo_json;zoo_fmt" ${ZOO_PRECOMPILED_TEXT})
zoo_precompile(zoo_pch "zoo_torch;zoo_json;zoo_fmt" ${ZOO_PRECOMPILED})

# Most time passes in LibTorch and in the folders that compute over many numbers or characters themselves. The others are
# compiled with less optimisation, which takes a fifth less time.
set(ZOO_LESS_OPTIMISED $<$<CONFIG:Release>:-O1>)
zoo_precompile(zoo_less_optimised_pch "zoo_torch;zoo_json;zoo_fmt" ${ZOO_PRECOMPILED})
target_compile_options(zoo_less_optimised_pch PRIVATE ${ZOO_LESS_OPTIMISED})

# zoo_library(FOLDER [LESS_OPTIMISED] [WITHOUT_TENSORS] LINKS ...): the static library of every source below FOLDER.
function(zoo_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "LESS_OPTIMISED;WITHOUT_TENSORS" "" "LINKS")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${name}/*.cpp")
  add_library(zoo_${name} STATIC ${sources})
  set_target_properties(zoo_${name} PROPERTIES EXPORT_NAME ${name})
  target_link_libraries(zoo_${name} PUBLIC zoo_options ${arg_LINKS} PRIVATE $<BUILD_INTERFACE:zoo_warnings>)
  set(precompiled zoo_pch)
  if(arg_WITHOUT_TENSORS)
    set(precompiled zoo_text_pch)
  elseif(arg_LESS_OPTIMISED)
    target_compile_options(zoo_${name} PRIVATE ${ZOO_LESS_OPTIMISED})
    set(precompiled zoo_less_optimised_pch)
  endif()
  target_precompile_headers(zoo_${name} REUSE_FROM ${precompiled})
  list(APPEND ZOO_LIBRARIES zoo_${name})
  set(ZOO_LIBRARIES ${ZOO_LIBRARIES} PARENT_SCOPE)
endfunction()
