# Install rules: libraries, headers, the program, its configurations, and a package for find_package(TransformerZoo). The
# folder that they are installed to can be moved: nothing in it names that folder or the build.
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/TransformerZoo")
# CMake omits folders in the source tree from the link path, and .venv is one of them.
set_target_properties(zoo_program PROPERTIES INSTALL_RPATH "${ZOO_TORCH_PREFIX}/lib;${ZOO_ARROW_DIRECTORY}" INSTALL_RPATH_USE_LINK_PATH ON)
install(TARGETS zoo_program RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
install(TARGETS zoo ${ZOO_LIBRARIES} zoo_options zoo_torch zoo_fmt zoo_yaml zoo_json zoo_sentencepiece zoo_image_files zoo_audio_files zoo_parquet
  zoo_unicode
  EXPORT TransformerZooTargets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(EXPORT TransformerZooTargets NAMESPACE zoo:: DESTINATION "${package_dir}")

list(TRANSFORM ZOO_LIBRARIES REPLACE "^zoo_" "" OUTPUT_VARIABLE folders)
install(CODE "
  set(SOURCE \"${PROJECT_SOURCE_DIR}\")
  set(FOLDERS \"${folders}\")
  set(STAGE \"${PROJECT_BINARY_DIR}/installed_headers\")
  include(\"${PROJECT_SOURCE_DIR}/cmake/stage_headers.cmake\")")
install(DIRECTORY "${PROJECT_BINARY_DIR}/installed_headers/zoo" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")

# The program looks for its configurations in ../share and share (io/config/find_config.h). In a build tree they are those
# of the sources.
install(DIRECTORY "${PROJECT_SOURCE_DIR}/configs" DESTINATION share/transformer-zoo)
file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/share/transformer-zoo")
file(CREATE_LINK "${PROJECT_SOURCE_DIR}/configs" "${PROJECT_BINARY_DIR}/share/transformer-zoo/configs" SYMBOLIC)

configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/TransformerZooConfig.cmake.in" "${PROJECT_BINARY_DIR}/TransformerZooConfig.cmake"
  INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/TransformerZooConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/TransformerZooConfig.cmake" "${PROJECT_BINARY_DIR}/TransformerZooConfigVersion.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/FindTorch.cmake" "${PROJECT_SOURCE_DIR}/cmake/FindSentencePiece.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/FindGD.cmake" "${PROJECT_SOURCE_DIR}/cmake/FindUnicodeLibraries.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/FindWebP.cmake" "${PROJECT_SOURCE_DIR}/cmake/FindSndFile.cmake" "${PROJECT_SOURCE_DIR}/cmake/FindArrowParquet.cmake"
  DESTINATION "${package_dir}")
