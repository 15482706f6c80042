# Install rules: libraries, headers, the program, and a package for find_package(TransformerZoo).
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/TransformerZoo")
# CMake omits folders in the source tree from the link path, and .venv is one of them.
set_target_properties(zoo_program PROPERTIES INSTALL_RPATH "${ZOO_TORCH_PREFIX}/lib" INSTALL_RPATH_USE_LINK_PATH ON)
install(TARGETS zoo_program RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
install(TARGETS zoo ${ZOO_LIBRARIES} zoo_options zoo_torch zoo_fmt zoo_yaml zoo_json zoo_sentencepiece
  EXPORT TransformerZooTargets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(EXPORT TransformerZooTargets NAMESPACE zoo:: DESTINATION "${package_dir}")

foreach(library IN LISTS ZOO_LIBRARIES)
  string(REPLACE "zoo_" "" folder "${library}")
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/${folder}/*.h")
  foreach(header IN LISTS headers)
    get_filename_component(directory "${header}" DIRECTORY)
    install(FILES "${PROJECT_SOURCE_DIR}/${header}" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/transformer-zoo/${directory}")
  endforeach()
endforeach()

configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/TransformerZooConfig.cmake.in" "${PROJECT_BINARY_DIR}/TransformerZooConfig.cmake"
  INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/TransformerZooConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/TransformerZooConfig.cmake" "${PROJECT_BINARY_DIR}/TransformerZooConfigVersion.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/FindTorch.cmake"
  DESTINATION "${package_dir}")
