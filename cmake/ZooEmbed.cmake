# zoo_embed(FOLDER FILE...): makes each file of FOLDER, e.g. attention_page.css, a string in the folder's library:
#   namespace zoo::embedded { extern const char attention_page_css[]; }
# The files stay readable in their own language, and the library needs no file at run time.
function(zoo_embed folder)
  string(REGEX REPLACE "/.*" "" library "${folder}")
  foreach(name IN LISTS ARGN)
    set(source "${PROJECT_SOURCE_DIR}/${folder}/${name}")
    set(output "${PROJECT_BINARY_DIR}/embedded/${folder}/${name}.cpp")
    string(MAKE_C_IDENTIFIER "${name}" symbol)
    file(READ "${source}" content)
    file(CONFIGURE OUTPUT "${output}" @ONLY CONTENT "// Made from @folder@/@name@.
namespace zoo::embedded {
extern const char @symbol@[];
const char @symbol@[] = R\"embedded(@content@)embedded\";
}  // namespace zoo::embedded
")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${source}")
    target_sources(zoo_${library} PRIVATE "${output}")
  endforeach()
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
