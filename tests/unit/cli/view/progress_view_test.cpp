#include "cli/view/progress_view.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.hpp"
#include "cli/view/text.hpp"
#include "tests/unit/cli/fixture.hpp"

namespace spark::cli {
namespace {

using testing::AnyOf;
using testing::EndsWith;

// The line for a half-finished copy on a terminal of that width.
std::string bar_at(unsigned columns) {
  Program program;
  program.context.terminal = {true, true, columns, false};
  Progress progress;
  progress.dataset = "imagenet";
  progress.phase = "copying";
  progress.bytes_done = 5'000'000'000;
  progress.bytes_total = 10'000'000'000;
  progress.bytes_per_second = 1'250'000'000;
  progress.eta_s = 4;
  progress.bottleneck = "source";
  ProgressView(program.context.err, program.context.terminal, program.context.timer).update(progress);
  return std::string(trim(program.errors()));
}

TEST(ProgressView, ANarrowTerminalDropsTheLeastImportantDetailsFirst) {
  EXPECT_THAT(bar_at(120), EndsWith("1.25 GB/s, 4 s left, limited by: source"));
  for (unsigned columns = 50; columns <= 120; ++columns) {
    const std::string bar = bar_at(columns);
    EXPECT_LT(display_width(bar), columns);
    EXPECT_THAT(bar, AnyOf(EndsWith("of 10.0 GB"), EndsWith("1.25 GB/s"), EndsWith("4 s left"),
                           EndsWith("limited by: source")))
        << columns;
  }
}

TEST(ProgressView, AReasonIsCutShortRatherThanLeftOut) {
  Program program;
  program.context.terminal = {true, true, 60, false};
  Progress progress;
  progress.dataset = "imagenet";
  progress.phase = "stalled";
  progress.bytes_done = 1;
  progress.bytes_total = 2;
  progress.reason = "volume vast is waiting: target 10.0.0.1:4420 did not answer within 5 s";
  ProgressView(program.context.err, program.context.terminal, program.context.timer).update(progress);
  EXPECT_THAT(program.errors(), testing::HasSubstr("volume vast"));
  EXPECT_LT(display_width(trim(program.errors())), 60U);
}

TEST(ProgressView, ALogGetsALineThatStaysTheSameOnlyEveryFiveMinutes) {
  Program program;
  Progress progress;
  progress.dataset = "imagenet";
  progress.phase = "stalled";
  progress.reason = "volume vast is waiting";
  ProgressView view(program.context.err, program.context.terminal, program.context.timer);
  for (int seconds = 0; seconds < 600; seconds += 5) {
    view.update(progress);
    program.timer.sleep(Duration(5000));
  }
  EXPECT_EQ(program.errors(),
            "imagenet: stalled: volume vast is waiting\nimagenet: stalled: volume vast is waiting\n");
  progress.reason = "volume vast is connecting";
  view.update(progress);
  EXPECT_THAT(program.errors(), EndsWith("imagenet: stalled: volume vast is connecting\n"));
}

TEST(ProgressView, TheReasonForAWaitIsShown) {
  Program program;
  program.context.terminal = {true, true, 120, false};
  Progress progress;
  progress.dataset = "imagenet";
  progress.phase = "walking";
  progress.reason = "making room: models 300 GB (its file f is open)";
  ProgressView(program.context.err, program.context.terminal, program.context.timer).update(progress);
  EXPECT_THAT(program.errors(),
              testing::HasSubstr("waiting: making room: models 300 GB (its file f is open)"));
  EXPECT_EQ(progress_in_words(progress, Eta(), SteadyTime()),
            "imagenet: waiting: making room: models 300 GB (its file f is open)");
}

}  // namespace
}  // namespace spark::cli
