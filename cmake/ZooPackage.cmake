# Packages of the program for people who do not build it: `cpack -G DEB` makes a package for Debian, and `cpack -G TGZ` a
# folder that runs wherever it is put. Both bring LibTorch along in lib/transformer-zoo; the folder also brings the other
# libraries, except those of the C library. scripts/check_packages.sh makes and tries both.
set(private_dir "lib/transformer-zoo")

# The program finds the libraries beside it, also those that libraries need (--disable-new-dtags, apps/CMakeLists.txt).
install(PROGRAMS "$<TARGET_FILE:zoo_program>" DESTINATION bin COMPONENT package EXCLUDE_FROM_ALL)
install(CODE "file(RPATH_SET FILE \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/bin/zoo\" NEW_RPATH \"\\\$ORIGIN/../${private_dir}\")"
  COMPONENT package EXCLUDE_FROM_ALL)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/configs" DESTINATION share/transformer-zoo COMPONENT package EXCLUDE_FROM_ALL)
install(FILES "${PROJECT_SOURCE_DIR}/README.md" DESTINATION share/doc/transformer-zoo COMPONENT package EXCLUDE_FROM_ALL)

# zoo_install_libraries(COMPONENT INCLUDE|EXCLUDE): the libraries that the program loads from the system's folders, or from others.
function(zoo_install_libraries component mode)
  install(CODE "
    file(GET_RUNTIME_DEPENDENCIES EXECUTABLES \"$<TARGET_FILE:zoo_program>\" RESOLVED_DEPENDENCIES_VAR found
      POST_EXCLUDE_REGEXES [[/(ld-linux[^/]*|lib(c|m|dl|rt|pthread|resolv|util))[.]so[^/]*$]])
    list(FILTER found ${mode} REGEX [[^/(usr/)?lib(32|64)?/]])
    foreach(library IN LISTS found)
      file(INSTALL \"\${library}\" DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${private_dir}\" FOLLOW_SYMLINK_CHAIN)
    endforeach()" COMPONENT ${component} EXCLUDE_FROM_ALL)
endfunction()
zoo_install_libraries(package EXCLUDE)
zoo_install_libraries(libraries INCLUDE)

set(CPACK_PACKAGE_NAME transformer-zoo)
set(CPACK_PACKAGE_VERSION "${PROJECT_VERSION}")
set(CPACK_PACKAGE_VENDOR "transformer-zoo")
set(CPACK_PACKAGE_CONTACT "the authors of transformer-zoo <transformer-zoo@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Train, generate from and compare transformers")
set(CPACK_PACKAGE_DIRECTORY "${PROJECT_BINARY_DIR}/packages")
set(CPACK_PACKAGE_FILE_NAME "transformer-zoo-${PROJECT_VERSION}-${CMAKE_SYSTEM_PROCESSOR}")
set(CPACK_COMPONENTS_ALL package)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_PACKAGING_INSTALL_PREFIX "/usr")
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${ZOO_TORCH_PREFIX}/lib" "${ZOO_ARROW_DIRECTORY}")
set(CPACK_PROJECT_CONFIG_FILE "${PROJECT_SOURCE_DIR}/cmake/package_options.cmake")
include(CPack)
