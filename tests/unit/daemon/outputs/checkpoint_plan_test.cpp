#include "daemon/outputs/watch/checkpoint_plan.hpp"

#include <gtest/gtest.h>

namespace spark::outputs {
namespace {

using Local = std::vector<LocalCheckpoint>;
using Published = std::vector<PublishedCheckpoint>;
using Names = std::vector<std::string>;

LocalCheckpoint complete(const std::string& name, std::int64_t mtime) {
  return {.name = name,
          .mtime_ns = mtime,
          .changed_ns = mtime + 1,
          .written = mtime,
          .bytes = 100,
          .incomplete = ""};
}
LocalCheckpoint incomplete(const std::string& name, std::int64_t mtime) {
  LocalCheckpoint one = complete(name, mtime);
  one.incomplete = "it has no DONE yet";
  return one;
}

CheckpointPlan plan(const config::Output& output, const Local& local, const Published& published,
                    const Changes& sent = {}, const std::vector<BegunCheckpoint>& begun = {}) {
  return plan_checkpoints(output, {local, published, begun, ""}, sent);
}

Names removed(const CheckpointPlan& plan) {
  Names names;
  for (const Surplus& one : plan.surplus) names.push_back(one.name);
  return names;
}

std::string sent(const CheckpointPlan& plan) {
  return plan.send ? plan.send->name : "";
}

TEST(CheckpointPlan, TheNewestCompleteCheckpointIsSentAndOlderOnesAreSuperseded) {
  const Local local{incomplete("step-3", 30), complete("step-2", 20), complete("step-1", 10)};
  const CheckpointPlan first = plan({}, local, {});
  EXPECT_EQ(sent(first), "step-2");
  EXPECT_EQ(first.backlog, 100u);
  const CheckpointPlan then = plan({}, local, {{"step-2", 20}});
  EXPECT_EQ(sent(then), "");
  EXPECT_EQ(then.backlog, 0u);
}

TEST(CheckpointPlan, ARewrittenCheckpointIsSentAgain) {
  EXPECT_EQ(sent(plan({}, {complete("step-2", 25)}, {{"step-2", 20}})), "step-2");
}

// Another host has resumed from an earlier step, and saved and sent the same one.
TEST(CheckpointPlan, ACopyThatAnotherHostHasReplacedIsLeftAndProvesNothing) {
  config::Output output;
  output.keep_local = 1;
  const Local local{complete("step-3", 30), complete("step-2", 20)};
  const CheckpointPlan there =
      plan(output, local, {{"step-3", 35}, {"step-2", 25}}, {{"step-3", 30}, {"step-2", 20}});
  EXPECT_EQ(sent(there), "");
  EXPECT_EQ(there.backlog, 0u);
  EXPECT_FALSE(there.is_newest_pending);
  const CheckpointPlan alone = plan(output, local, {{"step-2", 25}}, {{"step-2", 20}});
  EXPECT_EQ(sent(alone), "step-3");
  EXPECT_EQ(removed(alone), Names{});
}

TEST(CheckpointPlan, ACheckpointRewrittenInPlaceIsSentAgainAndNotRemoved) {
  config::Output output;
  output.keep_local = 1;
  const Local local{complete("step-3", 30), complete("step-2", 20)};
  const Published there{{"step-3", 30}, {"step-2", 20}};
  EXPECT_EQ(removed(plan(output, local, there, {{"step-3", 30}, {"step-2", 20}})), Names{"step-2"});
  const CheckpointPlan then = plan(output, local, there, {{"step-3", 30}, {"step-2", 15}});
  EXPECT_EQ(sent(then), "step-2");
  EXPECT_EQ(removed(then), Names{});
}

TEST(CheckpointPlan, ACheckpointThatOtherHostsWaitForIsSentBeforeTheNewest) {
  config::Output output;
  output.nodes = 2;
  const Local local{complete("step-4", 40), complete("step-3", 30), complete("step-2", 20),
                    complete("step-1", 10)};
  const std::vector<BegunCheckpoint> begun{{"step-4", 40, false}, {"step-3", 0, true}, {"step-1", 0, true}};
  EXPECT_EQ(sent(plan(output, local, {}, {}, begun)), "step-3");
  EXPECT_EQ(sent(plan(output, local, {{"step-3", 30}}, {}, begun)), "step-4") << "it may be joined now";
  EXPECT_EQ(sent(plan(output, local, {}, {}, {{"step-4", 35, true}, {"step-3", 30, true}})), "step-4")
      << "it was rewritten since";
}

// The other hosts have the highest of another attempt of the job, or not at all.
TEST(CheckpointPlan, TheNextLowerOneIsSentIfOtherHostsDoNotCompleteTheHighest) {
  config::Output output;
  output.nodes = 2;
  const Local local{complete("step-3", 30), complete("step-2", 20), complete("step-1", 10)};
  const BegunCheckpoint sent3{"step-3", 30, true, 5, false}, stuck3{"step-3", 30, true, 5, true},
      sent2{"step-2", 20, false, 0, false}, stuck2{"step-2", 20, false, 0, true};
  EXPECT_EQ(sent(plan(output, local, {}, {}, {sent3})), "step-3") << "they still may";
  EXPECT_EQ(sent(plan(output, local, {}, {}, {stuck3})), "step-2");
  EXPECT_EQ(sent(plan(output, local, {}, {}, {stuck3, sent2})), "step-2") << "it may be joined now";
  EXPECT_EQ(sent(plan(output, local, {}, {}, {stuck3, stuck2})), "step-1");
  EXPECT_EQ(sent(plan(output, local, {{"step-2", 20}}, {{"step-2", 20}}, {stuck3})), "step-3");
}

// A job that resumes waits until then.
TEST(CheckpointPlan, OneMayBePublishedUntilTheOtherHostsSendNothingOfAnyAboveThePublishedOne) {
  config::Output output;
  output.nodes = 2;
  const Local local{complete("step-3", 30), complete("step-2", 20), complete("step-1", 10)};
  const std::vector<PublishedCheckpoint> there{{"step-1", 10}};
  const BegunCheckpoint sent3{"step-3", 30, true, 5, false}, stuck3{"step-3", 30, true, 5, true},
      sent2{"step-2", 20, false, 0, false}, stuck2{"step-2", 20, false, 0, true};
  EXPECT_TRUE(plan(output, local, there, {}, {}).may_publish);
  EXPECT_TRUE(plan(output, local, there, {}, {sent3}).may_publish);
  EXPECT_TRUE(plan(output, local, there, {}, {stuck3}).may_publish) << "step-2 is sent next";
  EXPECT_TRUE(plan(output, local, there, {}, {stuck3, sent2}).may_publish);
  EXPECT_FALSE(plan(output, local, there, {}, {stuck3, stuck2}).may_publish);
  EXPECT_FALSE(plan(output, local, {{"step-2", 20}, {"step-1", 10}}, {}, {stuck3}).may_publish);
}

// The time on the volume is that of the host that saved last, and its clock may be ahead.
TEST(CheckpointPlan, ACheckpointOfSeveralHostsIsComparedWithThisHostsTimeOfTheNewestOnTheVolume) {
  config::Output output;
  output.nodes = 2;
  output.keep_local = 1;
  const Local local{complete("step-120", 160), complete("step-110", 150), complete("step-100", 140),
                    complete("step-90", 130)};
  const CheckpointPlan then = plan(output, local, {{"step-100", 200}}, {{"step-100", 140}});
  EXPECT_EQ(sent(then), "step-120");
  EXPECT_EQ(removed(then), (Names{"step-100", "step-90"}))
      << "step-110 is not on the volume, nor is a later one";
  EXPECT_EQ(sent(plan(output, local, {{"step-120", 900}, {"step-100", 200}}, {}, {{"step-90", 0, true}})), "")
      << "step-90 is older on this host too";
}

TEST(CheckpointPlan, ACheckpointThatOtherHostsWaitForIsSentIfOnlyTheirTimesMakeItOlder) {
  config::Output output;
  output.nodes = 2;
  EXPECT_EQ(sent(plan(output, {complete("b", 150)}, {{"a", 200}}, {}, {{"b", 0, true}})), "b");
}

TEST(CheckpointPlan, AHostWithoutTheNewestOnTheVolumeSendsOnlyCheckpointsOfALaterStep) {
  config::Output output;
  output.nodes = 2;
  output.keep_local = 1;
  const Local left{complete("step-90", 90), complete("step-80", 80)};
  const CheckpointPlan then = plan(output, left, {{"step-200", 200}, {"step-80", 80}});
  EXPECT_EQ(sent(then), "") << "the job went on, on other hosts";
  EXPECT_EQ(sent(plan(output, {complete("step-210", 150)}, {{"step-200", 200}})), "step-210");
}

TEST(CheckpointPlan, NoCheckpointOlderThanTheNewestOnTheVolumeIsSent) {
  EXPECT_EQ(sent(plan({}, {complete("step-2", 20)}, {{"step-9", 90}})), "");
}

TEST(CheckpointPlan, ACheckpointSelectedByKeepEveryIsSentAfterTheNewestAndKept) {
  config::Output output;
  output.keep_every = 10;
  output.keep_local = 1;
  const Local local{complete("step-21", 21), complete("step-20", 20), complete("step-11", 11),
                    complete("step-10", 10)};
  EXPECT_EQ(sent(plan(output, local, {})), "step-21");
  const CheckpointPlan then = plan(output, local, {{"step-21", 21}});
  EXPECT_EQ(sent(then), "step-20");
  EXPECT_EQ(then.backlog, 200u);
  EXPECT_EQ(removed(then), Names{"step-11"}) << "what still has to be sent stays";
  EXPECT_EQ(sent(plan(output, local, {{"step-21", 21}, {"step-20", 20}})), "step-10");
}

TEST(CheckpointPlan, LocalCheckpointsAreSurplusOnlyIfTheyOrAHigherStepAreOnTheVolume) {
  config::Output output;
  output.keep_local = 1;
  const Local local{complete("step-3", 30), complete("step-2", 20), complete("step-1", 10),
                    incomplete("step-0", 15)};
  EXPECT_EQ(removed(plan(output, local, {})), Names{}) << "nothing is on the volume";
  EXPECT_EQ(removed(plan(output, local, {{"step-2", 20}})), (Names{"step-2", "step-1"}));
  EXPECT_EQ(removed(plan(output, local, {{"step-1", 10}})), Names{"step-1"});
  EXPECT_EQ(removed(plan(output, local, {{"step-1", 11}})), Names{}) << "it is another one of that name";
  EXPECT_EQ(removed(plan(output, local, {{"step-9", 90}})), (Names{"step-2", "step-1"}))
      << "never the highest complete one";
}

// A clock that was ahead and was set back, or a file that was added to an old checkpoint.
TEST(CheckpointPlan, TheOrderIsThatOfTheStepsWhateverTheTimes) {
  config::Output output;
  output.keep_local = 1;
  const Local local{complete("step-200", 10), complete("step-100", 900)};
  const CheckpointPlan then = plan(output, local, {{"step-100", 900}});
  EXPECT_EQ(sent(then), "step-200");
  EXPECT_EQ(removed(then), Names{"step-100"});
  EXPECT_EQ(removed(plan(output, local, {{"step-200", 10}}, {{"step-100", 900}})), Names{})
      << "as if a job that went back had saved it later, and `keep` had deleted it there";
}

TEST(CheckpointPlan, ThoseWithoutAStepAreSentBesideTheOthersAndNeverSurplus) {
  config::Output output;
  output.keep_local = 1;
  const Local local{complete("step-3", 30), complete("final", 90), complete("draft", 5)};
  EXPECT_EQ(sent(plan(output, local, {})), "step-3");
  EXPECT_EQ(sent(plan(output, local, {{"step-3", 30}})), "final");
  EXPECT_EQ(removed(plan(output, local, {{"step-3", 30}, {"final", 90}, {"draft", 5}})), Names{});
  EXPECT_EQ(sent(plan(output, {complete("step-3", 30)}, {{"export", 99}})), "step-3");
}

TEST(CheckpointPlan, ALowerStepThanThatOnTheVolumeIsNotSentAndTheReasonIsNamed) {
  const CheckpointPlan back = plan({}, {complete("step-600", 90)}, {{"step-1000", 50}});
  EXPECT_EQ(sent(back), "");
  EXPECT_EQ(back.overtaken_by, "step-1000");
  EXPECT_EQ(plan({}, {complete("step-600", 90)}, {{"step-1000", 50}}, {{"step-600", 90}}).overtaken_by, "")
      << "it was sent before";
}

// It was sent, and `keep` has deleted it there, below a step that the job had left behind.
TEST(CheckpointPlan, WhatAJobSavedAfterItWentBackAndSentIsNamedOnceItIsDeletedThere) {
  const Local local{complete("step-300", 30), complete("step-200", 40)};
  const Changes sent{{"step-300", 30}, {"step-200", 40}};
  EXPECT_EQ(plan({}, local, {{"step-300", 30}}, sent).overtaken, "step-200");
  EXPECT_EQ(plan({}, {local[1]}, {{"step-300", 30}}, sent).overtaken, "")
      << "the other may be of a host with another clock";
  EXPECT_EQ(plan({}, {local[1]}, {{"step-300", 30}}).overtaken, "step-200") << "it was never sent";
}

// It may delete the later one and go on for a week: its new checkpoints are neither sent nor lost.
TEST(CheckpointPlan, WhatAJobSavedAfterItWentBackStaysAndTheReasonIsNamed) {
  config::Output output;
  output.keep_local = 1;
  const Local local{complete("step-9000", 50), complete("step-6000", 70), complete("step-5500", 60),
                    complete("step-5000", 20)};
  const CheckpointPlan back = plan(output, local, {{"step-9000", 50}}, {{"step-9000", 50}});
  EXPECT_EQ(sent(back), "");
  EXPECT_EQ(removed(back), Names{"step-5000"});
  EXPECT_EQ(back.overtaken, "step-6000");
  EXPECT_EQ(back.overtaken_by, "step-9000");
}

// The times of other hosts tell nothing, so what tells stays, and nothing goes without it.
TEST(CheckpointPlan, OfSeveralHostsWhatAJobSavedAfterItWentBackStaysWithTheOneThatIsAboveIt) {
  config::Output output;
  output.nodes = 2;
  output.keep_local = 1;
  const Changes known{{"step-300", 30}};
  Local local{complete("step-400", 40), complete("step-300", 30), complete("step-200", 50)};
  const CheckpointPlan back = plan(output, local, {{"step-300", 31}}, known);
  EXPECT_EQ(removed(back), Names{});
  EXPECT_EQ(back.overtaken, "step-200");
  local.erase(local.begin() + 1);
  EXPECT_EQ(removed(plan(output, local, {{"step-300", 31}}, known)), Names{})
      << "the job has deleted step-300";
  EXPECT_EQ(removed(plan(output, local, {{"step-300", 31}}, {{"step-200", 50}})), Names{"step-200"})
      << "it was sent, and `keep` has deleted it there";
  local[1] = complete("step-200", 20);
  EXPECT_EQ(removed(plan(output, local, {{"step-400", 41}}, {{"step-400", 40}})), Names{"step-200"});
}

// VITS has the generator and the discriminator of one step in two files.
TEST(CheckpointPlan, ASeriesOfNamesIsHandledByItself) {
  config::Output output;
  output.keep_local = 1;
  const Local pair{complete("D_200.pth", 21), complete("G_200.pth", 20), complete("D_100.pth", 11),
                   complete("G_100.pth", 10)};
  EXPECT_EQ(sent(plan(output, pair, {})), "D_200.pth");
  const CheckpointPlan then = plan(output, pair, {{"D_200.pth", 21}});
  EXPECT_EQ(sent(then), "G_200.pth");
  EXPECT_EQ(removed(then), Names{"D_100.pth"});
  const Local beside{complete("step-2000", 20), complete("gemma-2", 90), complete("fold_1", 12),
                     complete("fold_0", 11)};
  EXPECT_EQ(plan(output, beside, {{"step-2000", 20}}).waiting, 3u);
  EXPECT_EQ(removed(plan(output, beside, {{"step-2000", 20}, {"fold_1", 12}})), Names{});
}

TEST(CheckpointPlan, ACheckpointMayHaveSeveralFilesOfOneFormAndStep) {
  config::Output output;
  output.keep_local = 1;
  const Local versions{complete("step=20-v1.ckpt", 21), complete("step=20.ckpt", 20)};
  EXPECT_EQ(sent(plan(output, versions, {{"step=20-v1.ckpt", 21}})), "step=20.ckpt");
  EXPECT_EQ(removed(plan(output, versions, {{"step=20-v1.ckpt", 21}, {"step=20.ckpt", 20}})), Names{});
}

// fairseq's checkpoint_EPOCH_UPDATES.pt; one epoch may have hundreds.
TEST(CheckpointPlan, SavesOfOneEpochAreCountedEachByItself) {
  config::Output output;
  output.keep_local = 1;
  const Local local{complete("checkpoint_1_900.pt", 9), complete("checkpoint_1_500.pt", 5)};
  EXPECT_EQ(plan(output, local, {}).waiting, 1u);
  EXPECT_EQ(removed(plan(output, local, {{"checkpoint_1_900.pt", 9}, {"checkpoint_1_500.pt", 5}})),
            Names{"checkpoint_1_500.pt"});
}

TEST(CheckpointPlan, AFinishedFoldStaysWhateverTheNextOneSaves) {
  config::Output output;
  output.keep_local = 1;
  const Local local{complete("fold_1_epoch_110.pth", 30), complete("fold_0_epoch_100.pth", 10)};
  EXPECT_EQ(sent(plan(output, local, {{"fold_1_epoch_110.pth", 30}})), "fold_0_epoch_100.pth");
  EXPECT_EQ(removed(plan(output, local, {{"fold_1_epoch_110.pth", 30}, {"fold_0_epoch_100.pth", 10}})),
            Names{});
}

// Lightning's last.ckpt.
TEST(CheckpointPlan, AnAliasThatIsNewerThanTheHighestStepIsSentEachTime) {
  config::Output output;
  output.keep_local = 1;
  Local local{complete("last.ckpt", 90), complete("step=400.ckpt", 40)};
  local[0].newer_than = 400;
  const Published there{{"step=400.ckpt", 40}, {"last.ckpt", 30}};
  const CheckpointPlan then = plan(output, local, there, {{"last.ckpt", 30}, {"step=400.ckpt", 40}});
  EXPECT_EQ(sent(then), "last.ckpt");
  EXPECT_EQ(removed(then), Names{});
  EXPECT_EQ(plan(output, local, {{"step=5000.ckpt", 40}}).overtaken_by, "step=5000.ckpt");
}

TEST(CheckpointPlan, WhileTheVolumeIsAwayTheRecordSaysWhatIsLeftToSend) {
  const Local local{complete("step-2", 20), complete("step-1", 10)};
  EXPECT_EQ(plan_checkpoints({}, {local, std::nullopt, {}, ""}, {}).backlog, 100u);
  EXPECT_EQ(plan_checkpoints({}, {local, std::nullopt, {}, ""}, {{"step-2", 20}}).backlog, 0u);
  EXPECT_EQ(plan_checkpoints({}, {local, std::nullopt, {}, ""}, {{"step-2", 19}}).backlog, 100u);
}

TEST(CheckpointPlan, ACheckpointWithOtherPermissionsIsNotSentAgain) {
  LocalCheckpoint one = complete("step-1", 10), two = complete("step-2", 20);
  one.changed_ns = two.changed_ns = 99;
  EXPECT_EQ(sent(plan({}, {two, one}, {{"step-2", 20}}, {{"step-1", 10}, {"step-2", 20}})), "");
}

TEST(CheckpointPlan, TheBestModelIsSentAndStays) {
  config::Output output;
  output.keep_local = 1;
  const Local local{complete("checkpoint-3", 30), complete("checkpoint-1", 10)};
  const auto with_best = [&](const Published& there) {
    return plan_checkpoints(output, {local, there, {}, "checkpoint-1"}, {});
  };
  EXPECT_EQ(sent(with_best({{"checkpoint-3", 30}})), "checkpoint-1");
  EXPECT_EQ(removed(with_best({{"checkpoint-3", 30}, {"checkpoint-1", 10}})), Names{});
}

TEST(CheckpointPlan, ASurplusHasTheChangeThatWasSeenAndTheCopyThatItDependsOn) {
  config::Output output;
  output.keep_local = 1;
  const Local local{complete("step-2", 20), complete("step-1", 10)};
  const auto surplus = plan(output, local, {{"step-2", 20}}).surplus;
  ASSERT_EQ(surplus.size(), 1u);
  EXPECT_EQ(surplus[0].written, 10);
  EXPECT_EQ(surplus[0].copy, (PublishedCheckpoint{"step-2", 20}));
}

TEST(CheckpointPlan, ParsesTheWorkersAnswers) {
  const std::vector<LocalCheckpoint> rows{{.name = "a", .written = 9, .bytes = 8, .incomplete = "x"},
                                          {.name = "b", .inode = 7, .is_settling = true}};
  const auto read = staging::rows_from_json<LocalCheckpoint>({{"rows", staging::rows_to_json(rows)}}, "rows");
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[0].name, "a");
  EXPECT_EQ(read[0].written, 9);
  EXPECT_EQ(read[0].bytes, 8u);
  EXPECT_EQ(read[0].incomplete, "x");
  EXPECT_EQ(read[1].inode, 7u);
  EXPECT_TRUE(read[1].is_settling);
}

}  // namespace
}  // namespace spark::outputs
