#pragma once
// Code for instructions that not every processor has:
//
//   ZOO_BEGIN_TARGET("avx2,fma")
//   …
//   ZOO_END_TARGET
//
// Standard headers belong before it. Functions in it should have internal linkage: the linker could otherwise
// choose them for other sources.

#define ZOO_PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define ZOO_BEGIN_TARGET(instructions) \
  ZOO_PRAGMA(clang attribute push(__attribute__((target(instructions))), apply_to = function))
#define ZOO_END_TARGET ZOO_PRAGMA(clang attribute pop)
#else
#define ZOO_BEGIN_TARGET(instructions) ZOO_PRAGMA(GCC push_options) ZOO_PRAGMA(GCC target(instructions))
#define ZOO_END_TARGET ZOO_PRAGMA(GCC pop_options)
#endif
