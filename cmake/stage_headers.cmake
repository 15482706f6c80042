# Copies zoo.h and the headers of each folder of FOLDERS from SOURCE to STAGE/zoo. There they include each other as a
# program that uses them does: "io/files.h" becomes <zoo/io/files.h>. A program may therefore have an io/files.h of its own.
file(REMOVE_RECURSE "${STAGE}")
set(headers zoo.h)
foreach(folder IN LISTS FOLDERS)
  file(GLOB_RECURSE found RELATIVE "${SOURCE}" "${SOURCE}/${folder}/*.h")
  list(APPEND headers ${found})
endforeach()
foreach(header IN LISTS headers)
  file(READ "${SOURCE}/${header}" content)
  string(REGEX REPLACE "(^|\n)#include \"([^\"\n]+)\"" "\\1#include <zoo/\\2>" content "${content}")
  file(WRITE "${STAGE}/zoo/${header}" "${content}")
endforeach()
