find_package(SentencePiece QUIET)  # by cmake/FindSentencePiece.cmake
if(NOT SentencePiece_FOUND)
  message(FATAL_ERROR "SentencePiece was not found: run scripts/setup.sh, or install libsentencepiece-dev.")
endif()
add_library(zoo_sentencepiece INTERFACE)
target_link_libraries(zoo_sentencepiece INTERFACE sentencepiece)
