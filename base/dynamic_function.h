#pragma once
// Functions of libraries that are loaded while the program runs.

#include <dlfcn.h>

namespace zoo {

/// Sets `function` to the one with this name, or to null. Returns whether there is one.
template <class Function>
bool find_function(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

}  // namespace zoo
