#pragma once
// Student's distribution (Student 1908), also where the true mean is not 0.

namespace zoo {

/// P(T <= t) for Student's t with `degrees` > 0 degrees of freedom, which need not be whole.
double student_t_cdf(double t, double degrees);
/// P(|T| >= |t|), also accurate where it is tiny.
double student_t_tails(double t, double degrees);
/// The t with student_t_cdf(t) = p. Throws std::invalid_argument unless 0 < p < 1.
double student_t_quantile(double p, double degrees);

/// P(F >= f) for f >= 0 and Fisher's F with `above` and `below` degrees of freedom.
double f_tail(double f, double above, double below);

/// P(|T| >= t) for t >= 0 and the noncentral T = (Z + shift) / S: Z is standard normal, S² is chi-squared
/// with `degrees` >= 1 divided by them. With shift = √n · (true mean / deviation) it is the probability that
/// a t-test of n values finds the mean. To 1e-6.
double noncentral_t_tails(double t, double degrees, double shift);

}  // namespace zoo
