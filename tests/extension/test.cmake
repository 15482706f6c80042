# Installs the build into a temporary prefix, builds the program against it, and trains, resumes, evaluates,
# compares and generates with types that the library does not know.
#   cmake -DBUILD=… -DSOURCE=… -DWORK=… -P test.cmake
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE errors
    WORKING_DIRECTORY "${WORK}")
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${ARGN} failed:\n${output}${errors}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()
function(refuse expected)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE errors
    WORKING_DIRECTORY "${WORK}")
  if(NOT result EQUAL 2 OR NOT errors MATCHES "${expected}")
    message(FATAL_ERROR "${ARGN}: exit code ${result}, and not '${expected}' but:\n${errors}")
  endif()
endfunction()
function(expect pattern)
  if(NOT output MATCHES "${pattern}")
    message(FATAL_ERROR "no '${pattern}' in:\n${output}")
  endif()
endfunction()

file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}/datasets")
string(REPEAT "the sun and the moon and the stars and the sea\n" 40 text)
file(WRITE "${WORK}/datasets/text.txt" "${text}")
set(ENV{ZOO_DATA} "${WORK}/datasets")
set(ENV{ZOO_CACHE} "${WORK}/cache")
set(ENV{OMP_NUM_THREADS} 1)

run(${CMAKE_COMMAND} --install "${BUILD}" --prefix "${WORK}/prefix")
run(${CMAKE_COMMAND} -S "${SOURCE}" -B "${WORK}/build" -G Ninja -DCMAKE_BUILD_TYPE=Debug
  "-DCMAKE_PREFIX_PATH=${WORK}/prefix")
run(${CMAKE_COMMAND} --build "${WORK}/build")
set(zoo "${WORK}/build/my-zoo")

# Each is trained, and trained in two sittings: the same weights and metrics to the last bit.
foreach(name find-bump running-mean own-parts)
  set(config "${SOURCE}/${name}.yaml")
  run("${zoo}" train "${config}" --out whole/${name})
  run("${zoo}" train "${config}" --out parts/${name} --set training.steps=10)
  run("${zoo}" train "${config}" --out parts/${name} --resume)
  foreach(file model.safetensors checkpoints/step-20/model.safetensors checkpoints/step-20/optimizer.safetensors)
    run(${CMAKE_COMMAND} -E compare_files whole/${name}/${file} parts/${name}/${file})
  endforeach()
  run("${zoo}" inspect "${config}")
  run("${zoo}" bench whole/${name} --seconds 0.2)
  run("${zoo}" config whole/${name}/config.yaml)
endforeach()

file(READ "${WORK}/whole/own-parts/metrics.jsonl" metrics)
foreach(number largest_weight loss_by_weight weight_norm_decoder gradient_norm_decoder valid_median_perplexity
    valid_worst_decile)
  if(NOT metrics MATCHES "\"${number}\": [0-9.e-]+")
    message(FATAL_ERROR "no ${number} in metrics.jsonl:\n${metrics}")
  endif()
endforeach()
run(${CMAKE_COMMAND} -E cat whole/own-parts/largest.txt)
expect("^20 ")
run("${zoo}" generate whole/own-parts --prompt "the sun" --max-new-tokens 60)
if(output MATCHES "(nn|ee|ss|tt|hh|oo|aa|dd|mm)")
  message(FATAL_ERROR "a token follows itself in:\n${output}")
endif()
run("${zoo}" evaluate whole/own-parts --json)
expect("median_perplexity")

# Positions that a family gives to every layer also reach a layer that is computed again in the backward pass.
run("${zoo}" train "${SOURCE}/find-bump.yaml" --out recomputed --set training.activation_checkpointing=every_layer)
run(${CMAKE_COMMAND} -E compare_files whole/find-bump/checkpoints/step-20/model.safetensors
  recomputed/checkpoints/step-20/model.safetensors)

# The subcommands know what the task, the mixer and the family declare.
run("${zoo}" evaluate whole/find-bump --json)
expect("\"distance\":0\\.[0-9]+")
run("${zoo}" inspect "${SOURCE}/find-bump.yaml")
expect("embedder.projection")
run("${zoo}" evaluate whole/running-mean --json)
expect("bits_per_byte")
run("${zoo}" generate whole/running-mean --prompt "the sun" --max-new-tokens 60)  # beyond max_positions
run("${zoo}" embed whole/running-mean --text "the sun" --pooling mean)
run("${zoo}" attention whole/running-mean --text "the moon" --out attention.html)
run("${zoo}" config)
expect("running_mean")
expect("find_bump")
expect("delta: 0\\.2")
run("${zoo}" compare whole/find-bump parts/find-bump --out compared)
expect("distance")
run("${zoo}" compare "${SOURCE}/find-bump.yaml" --budget steps=6 --seeds 1 --out trained)  # by this program
expect("distance")

refuse("model.attention running_mean sees the past alone" "${zoo}" train "${SOURCE}/running-mean.yaml"
  --set model.architecture=encoder --set task=masked_language_modeling)
refuse("model.architecture must be decoder or encoder_decoder" "${zoo}" inspect "${SOURCE}/find-bump.yaml"
  --set task=language_modeling --set model.vocab_size=9 --set training.best_by=loss)
run("${zoo}" probe "attention={type: running_mean, decay: 0.7}" --no-costs --json)
expect("\"reason\": \"model.attention: running_mean sees the past alone")
foreach(part norm=dynamic_tanh activation=squared_relu position=log_distance)
  run("${zoo}" probe ${part} --no-costs)
  expect("causal     holds")
endforeach()

refuse("unknown key 'dekay' of the type running_mean" "${zoo}" inspect "${SOURCE}/running-mean.yaml"
  --set "model.attention={type: running_mean, dekay: 1}")
refuse("whole/find-bump: the task find_bump has no labels to predict\n" "${zoo}" predict whole/find-bump --text sun)
refuse("the task find_bump has no texts: they cannot be embedded" "${zoo}" embed whole/find-bump --text sun)
refuse("d_model must be even" "${zoo}" inspect "${SOURCE}/find-bump.yaml" --set model.d_model=15 --set model.n_heads=1)
file(REMOVE_RECURSE "${WORK}")
