# Installs the build into a temporary prefix, runs the program there, and builds and runs the consumer against it.
#   cmake -DBUILD=… -DSOURCE=… -DWORK=… -P test.cmake
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${ARGN} failed:\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE "${WORK}")
run(${CMAKE_COMMAND} --install "${BUILD}" --prefix "${WORK}/prefix")
run("${WORK}/prefix/bin/zoo" --help)
if(NOT output MATCHES "compare")
  message(FATAL_ERROR "unexpected output: ${output}")
endif()
run(${CMAKE_COMMAND} -S "${SOURCE}" -B "${WORK}/build" -G Ninja -DCMAKE_BUILD_TYPE=Debug
  "-DCMAKE_PREFIX_PATH=${WORK}/prefix")
run(${CMAKE_COMMAND} --build "${WORK}/build")
run("${WORK}/build/consumer")
if(NOT output MATCHES "consumer \\[1, 3, 8\\] \\[1, 2, 3, 3\\]")
  message(FATAL_ERROR "unexpected output: ${output}")
endif()
file(REMOVE_RECURSE "${WORK}")
