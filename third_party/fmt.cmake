# LibTorch ships fmt's headers without its library; fmt.cpp makes a library from the headers. If fmt.cpp does not suit the
# version of fmt, each source compiles fmt by itself, which gives the same program but costs three seconds per source.
if(NOT DEFINED ZOO_FMT_LIBRARY)
  try_compile(ZOO_FMT_LIBRARY "${PROJECT_BINARY_DIR}/fmt" SOURCES "${CMAKE_CURRENT_LIST_DIR}/fmt.cpp"
    "${CMAKE_CURRENT_LIST_DIR}/fmt_check.cpp" CMAKE_FLAGS "-DINCLUDE_DIRECTORIES=${zoo_torch_includes}"
    CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON)
endif()
if(ZOO_FMT_LIBRARY)
  add_library(zoo_fmt STATIC "${CMAKE_CURRENT_LIST_DIR}/fmt.cpp")
  target_compile_features(zoo_fmt PRIVATE cxx_std_20)
  target_include_directories(zoo_fmt SYSTEM PRIVATE "${zoo_torch_includes}")
else()
  add_library(zoo_fmt INTERFACE)
  target_compile_definitions(zoo_fmt INTERFACE FMT_HEADER_ONLY=1)
endif()
