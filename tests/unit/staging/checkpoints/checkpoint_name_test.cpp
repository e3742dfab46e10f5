#include "staging/checkpoints/checkpoint_name.hpp"

#include <gtest/gtest.h>

#include "staging/checkpoints/checkpoint.hpp"

namespace spark::staging {
namespace {

using Rule = Completeness::Rule;

std::int64_t step(std::string_view name) {
  const auto found = step_of(name);
  return found ? static_cast<std::int64_t>(*found) : -1;
}

// "it" also comes before the size of an instruction-tuned model.
TEST(CheckpointName, OfAnInstructionTunedModelHasNoStep) {
  EXPECT_EQ(step("gemma-3-it-4b"), -1);
  EXPECT_EQ(step("gemma-2b-it-step-70"), 70);
  EXPECT_EQ(step("it_500"), 500);
  EXPECT_EQ(step("it-5k"), 5);
}

TEST(CheckpointName, HasTheStepOfEachFramework) {
  EXPECT_EQ(step("checkpoint-500"), 500);
  EXPECT_EQ(step("global_step100"), 100);
  EXPECT_EQ(step("iter_0000100"), 100);
  EXPECT_EQ(step("iter_20000.pth"), 20000);
  EXPECT_EQ(step("epoch_12.pth"), 12);
  EXPECT_EQ(step("model_0004999.pth"), 4999);
  EXPECT_EQ(step("100"), 100);
  EXPECT_EQ(step("step1000-unsharded"), 1000);
  EXPECT_EQ(step("epoch=1-step=2000.ckpt"), 2000);
  EXPECT_EQ(step("epoch=1-step=2000-v1.ckpt"), 2000) << "Lightning's version of a name that was taken";
  EXPECT_EQ(step("nemo--val_loss=2.25-epoch=1-step=99-consumed_samples=3200.0-last"), 99);
  EXPECT_EQ(step("ep0-ba100-rank0.pt"), 100);
  EXPECT_EQ(step("Step_7"), 7);
  EXPECT_EQ(step("model000100.pt"), 100);
  EXPECT_EQ(step("nightly_pretrain-100"), 100);
  EXPECT_EQ(step("ema_0.9999_000100.pt"), 100);
  EXPECT_EQ(step("optimizer_100.pt"), 100);
  EXPECT_EQ(step("run7_1000.pt"), 1000) << "the number of the run is another";
  EXPECT_EQ(step("stage2-500"), 500);
  EXPECT_EQ(step("fold_0_1000.pt"), 1000);
  EXPECT_EQ(step("seed42_step1000"), 1000);
}

TEST(CheckpointName, HasNoStepIfItsNumbersMeanSomethingElse) {
  for (const char* name : {"final", "model_final.pth", "last.ckpt", "llama-3-8b-final", "best-v2",
                           "20261127_103000", "2026-11-27", "model.safetensors", "v1.5", "fold_1", "rank_0",
                           "seed-42", "shard_0001.tar", "run7", "exp20261127", "Fold_2", ""})
    EXPECT_EQ(step(name), -1) << name;
}

TEST(CheckpointName, TheFormIsThatOfItsSeries) {
  EXPECT_EQ(form_of("G_1000.pth"), form_of("G_200.pth"));
  EXPECT_NE(form_of("G_1000.pth"), form_of("D_1000.pth"));
  EXPECT_EQ(form_of("epoch=1-step=20.ckpt"), form_of("epoch=12-step=300-v1.ckpt"));
  EXPECT_NE(form_of("gemma-2"), form_of("step-2000"));
  EXPECT_NE(form_of("fold_0"), form_of("fold_1")) << "each is one of its own";
  EXPECT_EQ(form_of("final"), form_of("draft"));
  EXPECT_NE(form_of("last.ckpt"), form_of("best.ckpt"));
  EXPECT_EQ(form_of("last.ckpt"), form_of("last-v1.ckpt"));
  EXPECT_EQ(form_of("best_0.87.pth"), form_of("best_0.9.pth"));
}

TEST(CheckpointName, TheNumberOfAPartStaysInTheForm) {
  EXPECT_EQ(form_of("fold_0_epoch_100.pth"), form_of("fold_0_epoch_9.pth"));
  EXPECT_NE(form_of("fold_0_epoch_100.pth"), form_of("fold_1_epoch_110.pth"));
  EXPECT_NE(form_of("seed42_step1000"), form_of("seed43_step1000"));
  EXPECT_NE(form_of("Stage1_step_500.pt"), form_of("Stage2_step_500.pt"));
  EXPECT_NE(form_of("fold_0_best.pth"), form_of("fold_1_best.pth"));
  EXPECT_NE(form_of("best_fold_0.pth"), form_of("best_fold_1.pth"));
  EXPECT_EQ(form_of("run7_1000.pt"), form_of("run7_2000.pt"));
  EXPECT_NE(form_of("run7_1000.pt"), form_of("run8_1000.pt"));
}

TEST(CheckpointName, ASizeIsNoStep) {
  EXPECT_EQ(step_of("ckpt-1B-100.pt"), 100u);
  EXPECT_EQ(step_of("batch64_epoch_100.pt"), 100u);
  EXPECT_EQ(step_of("epoch_2_batch_500.pt"), 500u);
  EXPECT_EQ(step_of("ep5-ba1000"), 1000u);
  EXPECT_EQ(step_of("rl_model_vecnormalize_100000_steps.pkl"), 100000u);
}

// A finished model of the first job would be deleted for a higher step of the second.
TEST(CheckpointName, AnyNumberButTheStepMayTellTwoJobsApart) {
  for (const auto& [one, other] : {std::pair{"gpt124M_step_1000.pt", "gpt355M_step_500.pt"},
                                   {"lr0.001_step_1000.pt", "lr0.01_step_500.pt"},
                                   {"lr=1e-3-step=1000.ckpt", "lr=1e-4-step=500.ckpt"},
                                   {"bs32_1000.pt", "bs64_500.pt"},
                                   {"20261127_step100", "20261128_step50"},
                                   {"llama-3-8b-step100", "llama-3-70b-step100"},
                                   {"ckpt_7B_step_1000.pt", "ckpt_13B_step_500.pt"},
                                   {"ckpt-1B-100.pt", "ckpt-3B-50.pt"},
                                   {"batch64_epoch_100.pt", "batch128_epoch_1.pt"},
                                   {"rl_model_100_steps.zip", "rl_model_vecnormalize_100_steps.pkl"},
                                   {"step_100_0.pt", "step_100_1.pt"}})
    EXPECT_NE(form_of(one), form_of(other)) << one;
  EXPECT_EQ(form_of("gpt124M_step_1000.pt"), form_of("gpt124M_step_50.pt"));
}

TEST(CheckpointName, WhatChangesWithTheStepIsNotOfTheForm) {
  for (const auto& [one, other] :
       {std::pair{"epoch=1-step=20-val_loss=0.21.ckpt", "epoch=12-step=300-val_loss=1e-05.ckpt"},
        {"step1000-tokens4B", "step2000-tokens8B"},
        {"epoch_3_loss_0.5.pt", "epoch_12_loss_0.25.pt"},
        {"epoch=1-step=20-val_acc1=0.51.ckpt", "epoch=2-step=40-val_acc1=0.62.ckpt"},
        {"epoch=1-step=20-recall@10=0.51.ckpt", "epoch=2-step=40-recall@10=0.62.ckpt"},
        {"epoch=1-step=20-f1=0.51.ckpt", "epoch=2-step=40-f1=0.62.ckpt"},
        {"epoch=1-step=20-elbo=-3.5.ckpt", "epoch=2-step=40-elbo=2.25.ckpt"},
        {"epoch=1-step=20-loss=1e+02.ckpt", "epoch=2-step=40-loss=12.5.ckpt"},
        {"epoch_10_psnr_32.5.pth", "epoch_20_psnr_33.25.pth"},
        {"rl_model_5000_steps.zip", "rl_model_100000_steps.zip"},
        {"ep1-ba500", "ep2-ba1000"},
        {"checkpoint_1_1000.pt", "checkpoint_2_2000.pt"},
        {"step100_20261127_103000.pt", "step200_20261128_000001.pt"},
        {"nemo--val_loss=2.25-epoch=1-step=99-consumed_samples=3200.0-last",
         "nemo--val_loss=0.5-epoch=2-step=199-consumed_samples=6400.0-last"}})
    EXPECT_EQ(form_of(one), form_of(other)) << one;
}

TEST(CheckpointName, AnotherOfWhichTheNameAloneIsKnownMayBeAbove) {
  EXPECT_TRUE(may_be_above("step-200", "step-100"));
  EXPECT_FALSE(may_be_above("step-100", "step-200"));
  EXPECT_TRUE(may_be_above("last.ckpt", "epoch=1-step=400.ckpt")) << "it is replaced at each save";
  EXPECT_FALSE(may_be_above("best.ckpt", "epoch=1-step=400.ckpt"));
  EXPECT_FALSE(may_be_above("last.ckpt", "last.ckpt"));
  EXPECT_TRUE(may_be_above("draft", "final")) << "times alone would tell";
  EXPECT_TRUE(may_be_above("step-1", ""));
}

TEST(CheckpointName, TheOrderIsByStepThenByTime) {
  const auto above = [](const PublishedCopy& one, const PublishedCopy& other) {
    return is_above(one, other);
  };
  EXPECT_TRUE(above({"step-1000", 1}, {"step-500", 9}));
  EXPECT_TRUE(above({"step-1", 1}, {"final", 9})) << "all with a step are above those without";
  EXPECT_TRUE(above({"b", 9}, {"a", 1}));
  EXPECT_TRUE(above({"epoch=1-step=2-v1.ckpt", 9}, {"epoch=1-step=2.ckpt", 1}));
  EXPECT_TRUE(above({"a", 1, "", 9}, {"b", 5, "", 5})) << "by the time of the proof";
}

// Lightning writes last.ckpt after step=100.ckpt, with the same content.
TEST(CheckpointName, AnAliasIsOnlyTheSameOnceMoreWithinTheTimeOfAWrite) {
  const auto highest = [](Bytes bytes, std::int64_t seconds_later) {
    std::vector<Checkpoint> all{{.name = "step=100.ckpt", .mtime_ns = 1, .bytes = bytes}};
    add_aliases(all, {{.name = "last.ckpt", .mtime_ns = seconds_later * 1'000'000'000, .bytes = bytes}},
                [](const Checkpoint&) { return true; });
    return all.front().name;
  };
  EXPECT_EQ(highest(1'000, 2), "step=100.ckpt");
  EXPECT_EQ(highest(1'000, 4), "last.ckpt");
  EXPECT_EQ(highest(30'000'000'000, 100), "step=100.ckpt");
  EXPECT_EQ(highest(30'000'000'000, 200), "last.ckpt");
}

void expect(EntryKind kind, Rule rule, bool is_folder, std::initializer_list<const char*> names) {
  for (const char* name : names) EXPECT_EQ(kind_of(name, is_folder, rule), kind) << name;
}

TEST(CheckpointName, TemporaryNamesOfAllFrameworksAreNone) {
  for (const Rule rule : {Rule::Rename, Rule::Dcp, Rule::HuggingFace, Rule::Marker, Rule::DeepSpeed}) {
    expect(EntryKind::Temporary, rule, true,
           {"tmp-checkpoint-500", "100.orbax-checkpoint-tmp-1703334121930256", "100.orbax-checkpoint-tmp",
            "step100-tmp", ".step-1", "step-1.tmp", "step-1.incomplete", "step-1.partial"});
    expect(EntryKind::Temporary, rule, false, {"step=200-last-unfinished"});
  }
}

TEST(CheckpointName, WhatTrainersPutBesideCheckpointsIsNone) {
  for (const Rule rule : {Rule::Rename, Rule::Dcp, Rule::Marker, Rule::DeepSpeed}) {
    expect(EntryKind::Unlikely, rule, true,
           {"runs", "tokenizer", "wandb", "lightning_logs", "tensorboard", "20261127_103000", "vis_data",
            "logs", "version_0", "eval_100"});
    expect(EntryKind::Other, rule, false,
           {"config.yaml", "train.log", "zero_to_fp32.py", "training_args.bin", "progress.txt", "latest.txt",
            "train_results.json", "last_checkpoint", "latest", "latest_checkpointed_iteration.txt",
            "model-00001-of-00002.safetensors", "events.out.tfevents.1"});
  }
}

TEST(CheckpointName, HuggingFaceHasOneFormAlone) {
  expect(EntryKind::Checkpoint, Rule::HuggingFace, true, {"checkpoint-500"});
  expect(EntryKind::Other, Rule::HuggingFace, true, {"final", "checkpoint-best", "runs", "checkpoint-5x"});
  expect(EntryKind::Other, Rule::HuggingFace, false, {"model.safetensors", "checkpoint-500", "README.md"});
}

TEST(CheckpointName, OneFileIsACheckpointOnlyByItsEndingOrItsStep) {
  expect(EntryKind::Checkpoint, Rule::Rename, false,
         {"iter_100.pth", "epoch=1-step=2-v1.ckpt", "model.safetensors", "ckpt-7", "model_final.pth"});
  expect(EntryKind::Alias, Rule::Rename, false, {"last.ckpt", "best_coco_bbox_mAP_epoch_3.pth"});
  expect(EntryKind::Checkpoint, Rule::Rename, false, {"last-epoch=3-step=300.ckpt"});
  expect(EntryKind::Checkpoint, Rule::Rename, true, {"step-1", "final", "2026-11-27-run"});
  expect(EntryKind::Other, Rule::Dcp, false, {"step-1.pt"});
}

TEST(CheckpointName, MegatronsHasItsForm) {
  EXPECT_EQ(megatron_iteration("iter_0000100"), 100u);
  EXPECT_EQ(megatron_iteration("iter_100"), std::nullopt);
  EXPECT_EQ(megatron_iteration("iter_0000100.pth"), std::nullopt);
}

TEST(CheckpointName, NeMosMarkIsBesideTheFolder) {
  EXPECT_EQ(unfinished_mark("step=100-last"), "step=100-last-unfinished");
  EXPECT_EQ(unfinished_mark("step=100-EMA.ckpt"), "step=100-unfinished");
}

}  // namespace
}  // namespace spark::staging
