# Writes OUTPUT, a source with the commit of the repository SOURCE: "1a2b3c4d5e6f", with "-dirty" where files of the
# repository have been changed since, or "" where SOURCE is not the top of a repository. An equal file is left alone.
cmake_minimum_required(VERSION 3.25)
find_package(Git QUIET)
set(commit "")
if(GIT_FOUND)
  execute_process(COMMAND ${GIT_EXECUTABLE} -C "${SOURCE}" rev-parse --show-toplevel
    OUTPUT_VARIABLE top OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  file(REAL_PATH "${SOURCE}" source)
  if("${top}" STREQUAL "${source}")
    execute_process(COMMAND ${GIT_EXECUTABLE} -C "${SOURCE}" describe --always --exclude=* --dirty --abbrev=12
      OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
endif()
file(CONFIGURE OUTPUT "${OUTPUT}" @ONLY CONTENT "// The commit of the sources that this library was built from.
namespace zoo::embedded {
extern const char commit[];
const char commit[] = \"@commit@\";
}  // namespace zoo::embedded
")
