#include "staging/copy/lanes/monitor.hpp"

#include <gtest/gtest.h>

#include "base/result.hpp"

namespace spark::staging {
namespace {

std::string bottleneck_of_reads(CopyPhase phase) {
  std::string last;
  const ProgressSink sink = [&](const CopyProgress& now) { last = now.bottleneck; };
  Monitor monitor(sink);
  const auto read = [&] {
    monitor.counters.spent(Activity::Source, std::chrono::seconds(1));
    return Result<>();
  };
  EXPECT_TRUE(monitor.during(phase, read));
  return last;
}

TEST(Monitor, ReadsOfACopyAreLimitedByTheSourceAndThoseOfAVerificationByTheLocalDrive) {
  EXPECT_EQ(bottleneck_of_reads(CopyPhase::Copying), "source");
  EXPECT_EQ(bottleneck_of_reads(CopyPhase::Verifying), "local drive");
}

}  // namespace
}  // namespace spark::staging
