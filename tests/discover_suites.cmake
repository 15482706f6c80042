# Makes a ctest entry for each suite of a test program. Runs after each build of the program:
#   cmake -DPROGRAM=… -DNAME=layers -DPROPERTIES=… -DFIRST=… -DFOLDER=… -DOUTPUT=… -P discover_suites.cmake
# PROPERTIES: of each entry. FIRST: a suite that runs before the others, which need what it makes; may be empty. FOLDER: in
# which the tests run. OUTPUT: the file with the entries, which ctest reads.
execute_process(COMMAND "${PROGRAM}" --gtest_list_tests WORKING_DIRECTORY "${FOLDER}" OUTPUT_VARIABLE listed
  ERROR_VARIABLE problem RESULT_VARIABLE result)
if(problem MATCHES "error while loading shared libraries")  # of CUDA, on a machine that only builds
  string(STRIP "${problem}" problem)
  message("${NAME}_tests cannot be started here: ${problem}")
  file(WRITE "${OUTPUT}" "add_test([==[${NAME}_CANNOT_START]==] [==[${PROGRAM}]==])\n")
  return()
elseif(NOT result EQUAL 0)
  message(FATAL_ERROR "${PROGRAM}: ${problem}")
endif()
# Suites begin a line and end with a dot; tests are indented.
string(REGEX MATCHALL "\n[^ \n]+\\." suites "\n${listed}")
# Only a suite in which every test was skipped counts as skipped. ctest would take a failed one for skipped, too.
set(all_skipped "\\[  PASSED  \\] 0 tests\\.\n(\\[  SKIPPED \\][^\n]*\n)+$")
set(content "")
foreach(suite IN LISTS suites)
  string(REGEX REPLACE "^\n(.*)\\.$" "\\1" suite "${suite}")
  set(fixture "")
  if(FIRST)
    set(fixture FIXTURES_REQUIRED "${NAME}")
    if(suite STREQUAL FIRST)
      set(fixture FIXTURES_SETUP "${NAME}")
    endif()
  endif()
  set(properties "")
  foreach(argument IN LISTS PROPERTIES fixture)
    string(APPEND properties " [==[${argument}]==]")
  endforeach()
  string(APPEND content "add_test([==[${NAME}.${suite}]==] [==[${PROGRAM}]==] [==[--gtest_filter=${suite}.*]==])\n"
    "set_tests_properties([==[${NAME}.${suite}]==] PROPERTIES WORKING_DIRECTORY [==[${FOLDER}]==]"
    " SKIP_REGULAR_EXPRESSION [==[${all_skipped}]==]${properties})\n")
endforeach()
file(WRITE "${OUTPUT}" "${content}")
