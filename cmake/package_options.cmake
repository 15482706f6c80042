# What differs between the kinds of packages; CPack reads it before it makes one.
if(CPACK_GENERATOR STREQUAL "TGZ")
  list(APPEND CPACK_COMPONENTS_ALL libraries)
  set(CPACK_PACKAGING_INSTALL_PREFIX "/")
endif()
