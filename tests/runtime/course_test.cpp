#include "runtime/train/course.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

namespace sheaf::rt {
namespace {

TrainingStep step(int64_t number, double loss, bool changed = true, int64_t instances = 2) {
  TrainingStep result;
  result.number = number;
  result.loss = loss;
  result.instances = instances;
  result.changed = changed;
  result.skipped = !changed;
  return result;
}

TEST(Course, BestAndPatience) {
  Course course;
  EXPECT_FALSE(course.loss());
  course.add(step(0, 3));
  course.add(step(1, 1, false, 1));
  EXPECT_DOUBLE_EQ(*course.loss(), 7.0 / 3);
  EXPECT_EQ(course.steps, 2);
  EXPECT_EQ(course.skipped, 1);
  EXPECT_EQ(course.epochChanges, 1);
  EXPECT_TRUE(course.endEpoch(-2));
  EXPECT_FALSE(course.loss());
  EXPECT_FALSE(course.endEpoch(-2)); // as good is no better
  EXPECT_FALSE(course.endEpoch({}));
  EXPECT_FALSE(course.endEpoch(std::nan("")));
  EXPECT_EQ(course.epochsSinceBest, 3);
  EXPECT_FALSE(course.measure);
  EXPECT_TRUE(course.endEpoch(0.5));
  EXPECT_EQ(course.epochsSinceBest, 0);
  EXPECT_EQ(course.best, 0.5);
  EXPECT_EQ(course.measure, 0.5);
  course.add(step(2, 1));
  EXPECT_FALSE(course.measure);
  EXPECT_EQ(course.changes, 2);
}

TEST(Course, Divergence) {
  auto diverges = [](double first, double now) {
    Course course;
    course.add(step(0, first));
    course.endEpoch(0);
    course.add(step(1, now));
    return course.diverges();
  };
  EXPECT_FALSE(diverges(1.6, 5) || diverges(1e-6, 2) || diverges(-3, 20) || diverges(100, 1000));
  EXPECT_TRUE(diverges(1.6, 30) && diverges(100, 1200) && diverges(1, std::nan("")));
  EXPECT_TRUE(diverges(1, std::numeric_limits<double>::infinity()));
  // A first step without a loss is no first loss.
  EXPECT_TRUE(diverges(std::nan(""), std::nan("")));
  EXPECT_FALSE(diverges(std::nan(""), 1e6));
  Course failed;
  failed.add(step(0, 0, false, 0));
  EXPECT_FALSE(failed.diverges());
}

} // namespace
} // namespace sheaf::rt
