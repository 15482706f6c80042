# zoo_pages(FOLDER GENERATOR NAME...): makes each page NAME of FOLDER one string in the folder's library, a whole HTML file
# without its title and data (pages/page_template.h):
#   namespace zoo::embedded { extern const char report_page[]; }
# pages/page.html is the frame of NAME.html. NAME.js and NAME.css name what they need with `import`, and esbuild joins all
# of that. It is one program without a runtime, needs no network, and refuses an import that is not there. Minified, a page
# is 100 KB smaller.
find_program(ZOO_ESBUILD esbuild)
function(zoo_pages folder generator)
  if(NOT ZOO_ESBUILD)
    message(FATAL_ERROR "esbuild is missing, which joins the pages' JavaScript: scripts/setup.sh installs it")
  endif()
  string(REGEX REPLACE "/.*" "" library "${folder}")
  set(frame "${PROJECT_SOURCE_DIR}/${library}/page.html")
  set(joined "${PROJECT_BINARY_DIR}/embedded/${folder}")
  file(GLOB sources CONFIGURE_DEPENDS "${library}/*.js" "${library}/*.css" "${folder}/*.js" "${folder}/*.css" "${folder}/*.html")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${sources} "${frame}")
  foreach(name IN LISTS ARGN)
    execute_process(COMMAND "${ZOO_ESBUILD}" --bundle --minify --format=esm --charset=utf8 --log-level=warning
      "${folder}/${name}.js" "${folder}/${name}.css" "--outdir=${joined}"
      WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}" COMMAND_ERROR_IS_FATAL ANY)
    file(READ "${frame}" page)
    file(READ "${PROJECT_SOURCE_DIR}/${folder}/${name}.html" body)
    file(READ "${joined}/${name}.css" style)
    file(READ "${joined}/${name}.js" script)
    foreach(part generator style body script)
      string(REPLACE "{{${part}}}" "${${part}}" page "${page}")
    endforeach()
    file(CONFIGURE OUTPUT "${joined}/${name}.cpp" @ONLY CONTENT "// Made from @folder@/@name@.html, .css and .js.
namespace zoo::embedded {
extern const char @name@[];
const char @name@[] = R\"embedded(@page@)embedded\";
}  // namespace zoo::embedded
")
    target_sources(zoo_${library} PRIVATE "${joined}/${name}.cpp")
  endforeach()
endfunction()

# zoo_embed_text(LIBRARY FILE NAME): a text file as a string in the library:
#   namespace zoo::embedded { extern const char NAME[]; }
function(zoo_embed_text library file name)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${file}")
  file(READ "${PROJECT_SOURCE_DIR}/${file}" text)
  set(output "${PROJECT_BINARY_DIR}/embedded/${file}.cpp")
  file(CONFIGURE OUTPUT "${output}" @ONLY CONTENT "// Made from @file@.
namespace zoo::embedded {
extern const char @name@[];
const char @name@[] = R\"embedded(@text@)embedded\";
}  // namespace zoo::embedded
")
  target_sources(zoo_${library} PRIVATE "${output}")
endfunction()

# zoo_embed_commit(LIBRARY): the commit of the sources as a string in the library, "" outside a repository:
#   namespace zoo::embedded { extern const char commit[]; }
# Each build looks for the commit. A new one compiles a single small file again.
function(zoo_embed_commit library)
  set(output "${PROJECT_BINARY_DIR}/embedded/commit.cpp")
  add_custom_target(zoo_commit BYPRODUCTS "${output}" COMMAND ${CMAKE_COMMAND} "-DSOURCE=${PROJECT_SOURCE_DIR}"
    "-DOUTPUT=${output}" -P "${PROJECT_SOURCE_DIR}/cmake/embed_commit.cmake" COMMENT "Looking for the commit" VERBATIM)
  set_source_files_properties("${output}" PROPERTIES GENERATED ON SKIP_UNITY_BUILD_INCLUSION ON
    SKIP_PRECOMPILE_HEADERS ON)
  target_sources(zoo_${library} PRIVATE "${output}")
  add_dependencies(zoo_${library} zoo_commit)
endfunction()
