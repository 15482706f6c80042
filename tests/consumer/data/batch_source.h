#pragma once
// This project's own batches: the library has a data/batch_source.h, too.

struct BatchSource {
  int n_batches = 3;
};
