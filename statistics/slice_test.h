#pragma once
// Tests of whether two models differ on slices of the texts of a data set.

#include <optional>
#include <vector>

#include "statistics/example_test.h"
#include "statistics/paired_test.h"

namespace zoo {

/// For each slice the difference of Σ values / Σ weights between two models on the same examples, whose
/// weights may differ: its interval by a paired bootstrap over the examples (Efron & Tibshirani 1993), and p
/// by approximate randomisation, which exchanges value and weight of single examples at random (Noreen 1989).
/// PairedTest::n counts the examples that have the slice in both. The same values give the same result;
/// where all examples are equal, p is 1. Nothing for a slice of fewer than two examples. Examples of one of
/// the `documents` (ExampleValues::documents) count as one. Throws std::invalid_argument for models of
/// unequal numbers of slices or examples.
std::vector<std::optional<PairedTest>> test_on_slices(const std::vector<SliceValues>& slices,
                                                      const std::vector<SliceValues>& baseline,
                                                      const std::vector<int64_t>& documents = {});

}  // namespace zoo
