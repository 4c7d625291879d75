#include "plan/estimator.h"

#include <limits>

namespace pallas::plan {
namespace {

TEST(Ewma, the_first_sample_is_the_estimate) {
  Ewma ewma(0.3);
  EXPECT_FALSE(ewma.value());
  ewma.sample(100);
  EXPECT_EQ(ewma.value(), 100);
}

TEST(Ewma, later_samples_weigh_as_configured) {
  Ewma ewma(0.25);
  ewma.sample(100);
  ewma.sample(200);
  EXPECT_DOUBLE_EQ(*ewma.value(), 125);
  Ewma latest(1);
  latest.sample(100);
  latest.sample(200);
  EXPECT_DOUBLE_EQ(*latest.value(), 200);
}

TEST(Ewma, nonsense_is_ignored) {
  Ewma ewma(0.5);
  ewma.sample(100);
  for (const double bad : {0.0, -5.0, std::numeric_limits<double>::quiet_NaN(),
                           std::numeric_limits<double>::infinity()}) {
    ewma.sample(bad);
    ewma.sample_lower_bound(bad);
  }
  EXPECT_EQ(ewma.value(), 100);
}

TEST(Ewma, a_lower_bound_only_raises) {
  Ewma ewma(0.5);
  ewma.sample_lower_bound(10);
  EXPECT_FALSE(ewma.value());
  ewma.sample(100);
  ewma.sample_lower_bound(50);
  EXPECT_EQ(ewma.value(), 100);
  ewma.sample_lower_bound(200);
  EXPECT_DOUBLE_EQ(*ewma.value(), 150);
}

TEST(Ewma, reset_sets_the_estimate) {
  Ewma ewma(0.5);
  ewma.reset(7);
  EXPECT_EQ(ewma.value(), 7);
}

}  // namespace
}  // namespace pallas::plan
