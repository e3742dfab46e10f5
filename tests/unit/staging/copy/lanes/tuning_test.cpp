#include "staging/copy/lanes/tuning.hpp"

#include <gtest/gtest.h>

#include "tests/unit/staging/support.hpp"

namespace spark::staging {
namespace {

using namespace test;
using Setting = Tuning::Setting;

// Moves bytes at the rate that `rate` gives for the setting in force, for so many seconds.
template <class Rate>
void run(Tuning& tuning, double seconds, Rate rate) {
  SteadyTime now{};
  for (int i = 0; i < seconds * 1000; ++i) {
    now += std::chrono::milliseconds(1);
    tuning.moved(static_cast<Bytes>(rate(Setting{tuning.lanes(), tuning.chunk()}) / 1000), now);
  }
}

TEST(Tuning, KeepsTheFastestSetting) {
  Tuning tuning({{8, 2 * kMiB}, {4, 4 * kMiB}, {12, kMiB}});
  EXPECT_EQ(tuning.largest(), (Setting{12, 4 * kMiB}));
  run(tuning, 3, [](const Setting& setting) { return setting.lanes == 12 ? 4e9 : 2e9; });
  EXPECT_EQ(tuning.found(), (Setting{12, kMiB}));
  EXPECT_EQ(tuning.lanes(), 12U);
  EXPECT_EQ(tuning.chunk(), kMiB);
}

TEST(Tuning, ALittleFasterIsNoReasonToChange) {
  Tuning tuning({{8, 2 * kMiB}, {4, 4 * kMiB}});
  run(tuning, 3, [](const Setting& setting) { return setting.lanes == 4 ? 2.04e9 : 2e9; });
  EXPECT_EQ(tuning.found(), (Setting{8, 2 * kMiB}));
}

TEST(Tuning, ARunThatEndsBeforeAllWereTriedHasFoundNothing) {
  Tuning tuning({{8, 2 * kMiB}, {4, 4 * kMiB}});
  run(tuning, 0.1, [](const Setting&) { return 2e9; });
  EXPECT_FALSE(tuning.found());
}

TEST(Tuning, OneSettingIsNotTried) {
  Tuning tuning({{3, kMiB}});
  run(tuning, 3, [](const Setting&) { return 2e9; });
  EXPECT_FALSE(tuning.found());
  EXPECT_EQ(tuning.lanes(), 3U);
}

TEST(TuningFile, RemembersAPairAndTrustsNothingOdd) {
  const TempFolder folder;
  const TuningFile file(folder / "drives.json");
  EXPECT_FALSE(file.find("a-b"));
  file.remember("a-b", {6, 3 * kMiB});
  file.remember("c-d", {2, kMiB});
  EXPECT_EQ(file.find("a-b"), (Setting{6, 3 * kMiB}));
  EXPECT_EQ(file.find("c-d"), (Setting{2, kMiB}));
  test::write_text(folder / "drives.json", R"({"a-b": {"lanes": 100000, "chunk": 1}, "c-d": 7})");
  EXPECT_FALSE(file.find("a-b"));
  EXPECT_FALSE(file.find("c-d"));
}

TEST(Shape, IsWhatTheOptionsAskFor) {
  CopyOptions options;
  options.threads = 1;
  EXPECT_EQ(shape_of(options), (Shape{1, 1, 4 * kMiB}));
  options.threads = 2;
  options.depth = 32;
  options.chunk = 100'000;
  EXPECT_EQ(shape_of(options), (Shape{2, 16, 128 * kKiB}));
}

}  // namespace
}  // namespace spark::staging
