# Finds PCRE2 (8 bit) and utf8proc, whose packages in Debian have no CMake files. Makes the target
# UnicodeLibraries::UnicodeLibraries.
find_path(PCRE2_INCLUDE_DIR pcre2.h)
find_library(PCRE2_LIBRARY pcre2-8)
find_path(UTF8PROC_INCLUDE_DIR utf8proc.h)
find_library(UTF8PROC_LIBRARY utf8proc)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(UnicodeLibraries
  REQUIRED_VARS PCRE2_LIBRARY PCRE2_INCLUDE_DIR UTF8PROC_LIBRARY UTF8PROC_INCLUDE_DIR)
if(UnicodeLibraries_FOUND AND NOT TARGET UnicodeLibraries::UnicodeLibraries)
  add_library(UnicodeLibraries::UnicodeLibraries INTERFACE IMPORTED)
  set_target_properties(UnicodeLibraries::UnicodeLibraries PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${PCRE2_INCLUDE_DIR};${UTF8PROC_INCLUDE_DIR}"
    INTERFACE_LINK_LIBRARIES "${PCRE2_LIBRARY};${UTF8PROC_LIBRARY}")
endif()
mark_as_advanced(PCRE2_INCLUDE_DIR PCRE2_LIBRARY UTF8PROC_INCLUDE_DIR UTF8PROC_LIBRARY)
