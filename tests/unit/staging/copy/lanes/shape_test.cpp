#include "staging/copy/lanes/shape.hpp"

#include <gtest/gtest.h>

namespace spark::staging {
namespace {

TEST(Shape, FollowsTheOptions) {
  CopyOptions options;
  options.threads = 1;
  EXPECT_EQ(shape_of(options), (Shape{1, 1, 4 * kMiB, 0}));
  options.threads = 2;
  options.depth = 32;
  options.chunk = 100'000;
  const Shape shape = shape_of(options);
  EXPECT_EQ(shape, (Shape{2, 16, 128 * kKiB, shape.openers}));
  EXPECT_GE(shape.openers, 2U);
}

TEST(Shape, AGivenNumberOfThreadsForSmallFilesIsFixed) {
  CopyOptions options;
  options.threads = 6;
  EXPECT_EQ(small_file_threads(options), (ThreadRange{6, 6, 6}));
}

}  // namespace
}  // namespace spark::staging
