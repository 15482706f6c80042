// Student's t and what is built on it, against numerical integration in thirty digits.

#include "base/student_t.h"
#include "statistics/paired_test.h"
#include "statistics/power_law.h"
#include "tests/parity/reference.h"

namespace zoo::testing {
namespace {

class StatisticsParity : public ReferenceTest {
 protected:
  StatisticsParity() : ReferenceTest("reference_statistics.py") {}

  static std::vector<double> values(const torch::Tensor& tensor) {
    const auto* data = tensor.const_data_ptr<double>();
    return {data, data + tensor.numel()};
  }
  static void expect_relative(double actual, double expected, double tolerance) {
    EXPECT_NEAR(actual, expected, tolerance * std::abs(expected));
  }
};

TEST_F(StatisticsParity, StudentT) {
  for (const char* degrees_name : {"1", "2", "4", "7.5", "29", "250"}) {
    SCOPED_TRACE(std::string(degrees_name) + " degrees");
    ReferenceCase reference(file(std::string("student_t_") + degrees_name));
    const double degrees = values(reference.input("degrees")).front();
    const auto times = values(reference.input("t")), tails = values(reference.output("tails"));
    for (size_t i = 0; i < times.size(); ++i) {
      SCOPED_TRACE(::testing::Message() << "t = " << times[i]);
      expect_relative(student_t_tails(times[i], degrees), tails[i], 1e-12);
      EXPECT_NEAR(student_t_cdf(times[i], degrees), 1 - tails[i] / 2, 1e-13);
      EXPECT_NEAR(student_t_cdf(-times[i], degrees), tails[i] / 2, 1e-13);
    }
    const auto p = values(reference.input("p")), quantiles = values(reference.output("quantile"));
    for (size_t i = 0; i < p.size(); ++i) {
      SCOPED_TRACE(::testing::Message() << "p = " << p[i]);
      expect_relative(student_t_quantile(p[i], degrees), quantiles[i], 1e-11);
    }
  }
}

TEST_F(StatisticsParity, IntervalsAndPairedTests) {
  for (const char* n : {"2", "3", "5", "12"}) {
    SCOPED_TRACE(std::string(n) + " pairs");
    ReferenceCase reference(file(std::string("paired_") + n));
    const auto measured = values(reference.input("values")), baseline = values(reference.input("baseline"));
    const auto expected = values(reference.output("interval"));
    const auto interval = mean_interval(measured);
    expect_relative(interval.mean, expected[0], 1e-12);
    expect_relative(*interval.low, expected[1], 1e-10);
    expect_relative(*interval.high, expected[2], 1e-10);
    expect_relative(*interval.deviation, expected[3], 1e-12);

    const auto difference = values(reference.output("difference"));
    const auto test = paired_t_test(measured, baseline);
    expect_relative(test.difference, difference[0], 1e-10);
    expect_relative(*test.low, difference[1], 1e-10);
    expect_relative(*test.high, difference[2], 1e-10);
    expect_relative(*test.p, values(reference.output("p")).front(), 1e-10);
  }
}

TEST_F(StatisticsParity, NoncentralT) {
  for (const char* degrees_name : {"1", "2", "5", "30"}) {
    ReferenceCase reference(file(std::string("noncentral_") + degrees_name));
    const double degrees = values(reference.input("degrees")).front();
    const auto expected = values(reference.output("tails"));
    size_t i = 0;
    for (const double t : values(reference.input("t"))) {
      for (const double shift : values(reference.input("shift"))) {
        EXPECT_NEAR(noncentral_t_tails(t, degrees, shift), expected[i++], 1e-6)
            << degrees << " degrees, t = " << t << ", shift = " << shift;
      }
    }
  }
}

TEST_F(StatisticsParity, FisherF) {
  ReferenceCase reference(file("fisher"));
  const auto f = values(reference.input("f")), above = values(reference.input("above"));
  const auto below = values(reference.input("below")), tail = values(reference.output("tail"));
  for (size_t i = 0; i < f.size(); ++i) expect_relative(f_tail(f[i], above[i], below[i]), tail[i], 1e-11);
}

// Fits of few points, where the degrees of freedom matter most.
TEST_F(StatisticsParity, PowerLaws) {
  for (const char* name : {"4", "5", "6", "6_of_3", "7"}) {
    SCOPED_TRACE(name);
    ReferenceCase reference(file(std::string("power_law_") + name));
    const auto variants = values(reference.input("variant")), flops = values(reference.input("flops")),
               loss = values(reference.input("loss"));
    std::vector<LossPoint> points;
    for (size_t i = 0; i < loss.size(); ++i)
      points.push_back({.variant = std::llround(variants[i]), .flops = flops[i], .loss = loss[i]});
    const auto n_variants = std::llround(variants.back()) + 1;
    const auto fit = fit_scaling(points, n_variants);

    const auto expect_number = [](std::optional<double> actual, double expected, const char* what) {
      SCOPED_TRACE(what);
      ASSERT_EQ(actual.has_value(), !std::isnan(expected));
      if (actual) expect_relative(*actual, expected, 1e-7);
    };
    const auto expect_estimate = [&](const Estimate& actual, const std::vector<double>& expected, size_t i) {
      expect_number(actual.value, expected[3 * i], "value");
      expect_number(actual.low, expected[3 * i + 1], "low");
      expect_number(actual.high, expected[3 * i + 2], "high");
    };
    const auto own = values(reference.output("own")), scales = values(reference.output("scales")),
               ratios = values(reference.output("ratios"));
    ASSERT_EQ(std::ssize(fit.own), n_variants);
    for (size_t i = 0; i < fit.own.size(); ++i) {
      SCOPED_TRACE(::testing::Message() << "variant " << i);
      expect_estimate(fit.own[i].exponent, own, i);
      expect_relative(fit.own[i].scale, scales[i], 1e-7);
      expect_estimate(fit.compute_ratios[i], ratios, i);
    }
    expect_estimate(fit.shared_exponent, values(reference.output("shared")), 0);
    expect_number(fit.p_equal_exponents, values(reference.output("p_equal")).front(), "p");
  }
}

TEST_F(StatisticsParity, Holm) {
  for (const char* m : {"1", "2", "6", "15"}) {
    SCOPED_TRACE(std::string(m) + " tests");
    ReferenceCase reference(file(std::string("holm_") + m));
    const auto corrected = holm_corrected(values(reference.input("p")));
    const auto expected = values(reference.output("corrected"));
    ASSERT_EQ(corrected.size(), expected.size());
    for (size_t i = 0; i < corrected.size(); ++i) EXPECT_DOUBLE_EQ(corrected[i], expected[i]);
  }
}

}  // namespace
}  // namespace zoo::testing
