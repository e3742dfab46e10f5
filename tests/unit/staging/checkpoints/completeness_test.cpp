#include "staging/checkpoints/completeness.hpp"

#include <sys/stat.h>

#include "tests/unit/staging/outputs/checkpoints_fixture.hpp"

namespace spark::staging {
namespace {

using namespace test;
using testing::HasSubstr;

TEST_F(Checkpoints, AProofThatIsNoRegularFileIsNotRead) {
  for (const char* name : {"dcp/.metadata", "hf/model.safetensors.index.json", "ds/latest"}) {
    std::filesystem::create_directories((out_ / name).parent_path());
    ASSERT_EQ(::mkfifo((out_ / name).c_str(), 0600), 0);
  }
  EXPECT_THAT(why_incomplete(out_ / "dcp", false, {Rule::Dcp, ""}).why, HasSubstr("no .metadata"));
  file("hf/trainer_state.json", "{}"), file("hf/model.safetensors");
  EXPECT_THAT(why_incomplete(out_ / "hf", false, {Rule::HuggingFace, ""}).why, HasSubstr("can't be read"));
  EXPECT_THAT(why_incomplete(out_ / "ds/step-1", false, {Rule::DeepSpeed, ""}).why,
              HasSubstr("no file `latest`"));
}

TEST_F(Checkpoints, AnotherNameOfTheNewestCountsOnlyIfNoneHasAStep) {
  file("last.ckpt");
  EXPECT_EQ(complete(Rule::Rename), Names{"last.ckpt"});
  file("epoch=1-step=20.ckpt");
  EXPECT_EQ(complete(Rule::Rename), Names{"epoch=1-step=20.ckpt"});
}

TEST_F(Checkpoints, AreUnfinishedWhileNeMosMarkIsBesideThem) {
  file("step=200-last/weights/d"), file("step=200-last-unfinished", "");
  EXPECT_EQ(why_not(Rule::Rename, "step=200-last"), "the file step=200-last-unfinished is beside it");
  std::filesystem::remove(out_ / "step=200-last-unfinished");
  EXPECT_EQ(complete(Rule::Rename), Names{"step=200-last"});
}

TEST_F(Checkpoints, OfNeMo2HaveTheirMetadataInTheFolderOfTheWeights) {
  written(1, "step=9-last/weights/__0_0.distcp"), written(2, "step=9-last/weights/.metadata", "__0_0.distcp");
  EXPECT_EQ(complete(Rule::Dcp), Names{"step=9-last"});
  std::filesystem::remove(out_ / "step=9-last/weights/__0_0.distcp");
  EXPECT_THAT(why_not(Rule::Dcp, "step=9-last"), HasSubstr("names __0_0.distcp"));
}

TEST_F(Checkpoints, HuggingFaceNeedsWeightsAndAStateThatCanBeParsed) {
  written(2, "checkpoint-500/trainer_state.json", "{}");
  EXPECT_EQ(why_not(Rule::HuggingFace, "checkpoint-500"),
            "it has no weights, as after an interrupted deletion");
  written(1, "checkpoint-500/optimizer.pt"), written(1, "checkpoint-500/training_args.bin");
  EXPECT_THAT(why_not(Rule::HuggingFace, "checkpoint-500"), HasSubstr("no weights"));
  written(1, "checkpoint-500/adapter_model.safetensors");
  EXPECT_EQ(complete(Rule::HuggingFace), Names{"checkpoint-500"});
  written(2, "checkpoint-500/trainer_state.json", "");
  EXPECT_EQ(why_not(Rule::HuggingFace, "checkpoint-500"), "its trainer_state.json can't be read yet");
}

TEST_F(Checkpoints, TheBestModelIsThatOfTheTrainersState) {
  file("checkpoint-5/trainer_state.json", R"({"best_model_checkpoint": "/out/checkpoint-3"})");
  EXPECT_EQ(best_model_of(out_ / "checkpoint-5"), "checkpoint-3");
  file("checkpoint-5/trainer_state.json", R"({"best_model_checkpoint": null})");
  EXPECT_EQ(best_model_of(out_ / "checkpoint-5"), "");
  EXPECT_EQ(best_model_of(out_ / "checkpoint-6"), "");
}

TEST_F(Checkpoints, DistributedTorchNeedsEveryFileNamedInItsMetadata) {
  // The strings of a pickle are between its opcodes.
  const std::string metadata = std::string("\x80\x02X\x0c\0\0\0__0_0.distcpq\x05", 21) +
                               "__1_0.distcp\x85"
                               "a.distcp";
  written(1, "step-1/__0_0.distcp"), written(2, "step-1/.metadata", metadata);
  EXPECT_EQ(why_not(Rule::Dcp, "step-1"), "its .metadata names __1_0.distcp, which is not there");
  written(1, "step-1/__1_0.distcp");
  EXPECT_EQ(complete(Rule::Dcp), Names{"step-1"});
  file("step-2/__0_0.distcp");
  EXPECT_EQ(why_not(Rule::Dcp, "step-2"), "it has no .metadata yet");
  file("step-3/.metadata", "");
  EXPECT_EQ(why_not(Rule::Dcp, "step-3"), "its .metadata names no file");
}

TEST_F(Checkpoints, DistributedTorchIsIncompleteWhileAFileIsNewerThanItsMetadata) {
  const std::string metadata = "__0_0.distcp __1_0.distcp";
  written(1, "step-1/__0_0.distcp"), written(2, "step-1/__1_0.distcp"),
      written(2, "step-1/.metadata", metadata);
  EXPECT_EQ(complete(Rule::Dcp), Names{"step-1"}) << "equal times, as on a file system with coarse ones";
  written(3, "step-1/__1_0.distcp");
  EXPECT_THAT(why_not(Rule::Dcp, "step-1"), HasSubstr("its .metadata is older than __1_0.distcp"));
  written(4, "step-1/__0_0.distcp"), written(4, "step-1/.metadata", metadata);
  EXPECT_EQ(complete(Rule::Dcp), Names{"step-1"}) << "saved again";
}

TEST_F(Checkpoints, AReasonForAnOldMarkerNamesTheCommandThatSendsTheCheckpoint) {
  written(1, "step-1/DONE"), written(2, "step-1/model");
  EXPECT_EQ(why_not(Rule::Marker, "step-1", "DONE"),
            "its DONE is older than model, as after an interrupted save to the same name, a copy without "
            "times, or a "
            "clock that was set back; if it is right, send it with `spark-stage stage-out " +
                (out_ / "step-1").native() + " VOLUME:PATH`");
}

TEST_F(Checkpoints, HuggingFaceNeedsItsStateAndAllWeightsOfItsIndex) {
  written(1, "checkpoint-500/model-00001-of-00002.safetensors");
  file(
      "checkpoint-500/model.safetensors.index.json",
      R"({"metadata": {}, "weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}})");
  EXPECT_EQ(why_not(Rule::HuggingFace, "checkpoint-500"), "it has no trainer_state.json yet");
  written(2, "checkpoint-500/trainer_state.json", "{}");
  EXPECT_EQ(why_not(Rule::HuggingFace, "checkpoint-500"),
            "model.safetensors.index.json names model-00002-of-00002.safetensors, which is not there");
  written(1, "checkpoint-500/model-00002-of-00002.safetensors");
  EXPECT_EQ(complete(Rule::HuggingFace), Names{"checkpoint-500"});
  file("checkpoint-500/model.safetensors.index.json", "{");
  EXPECT_EQ(why_not(Rule::HuggingFace, "checkpoint-500"), "model.safetensors.index.json can't be read yet");
}

TEST_F(Checkpoints, HuggingFaceIsIncompleteWhileWeightsOrOptimizerAreNewerThanItsState) {
  written(1, "checkpoint-5/model.safetensors"), written(1, "checkpoint-5/optimizer.pt");
  written(2, "checkpoint-5/trainer_state.json", "{}"), written(3, "checkpoint-5/rng_state_0.pth");
  written(3, "checkpoint-5/README.md");
  EXPECT_EQ(complete(Rule::HuggingFace), Names{"checkpoint-5"}) << "older Trainers write the RNG states last";
  for (const char* name :
       {"model.safetensors", "pytorch_model.bin", "adapter_model.safetensors", "optimizer.pt",
        "optimizer_0/__0_0.distcp", "global_step5/mp_rank_00_model_states.pt"}) {
    written(3, std::string("checkpoint-5/") + name);
    EXPECT_THAT(why_not(Rule::HuggingFace, "checkpoint-5"),
                HasSubstr(std::string("its trainer_state.json is older than ") + name));
    written(1, std::string("checkpoint-5/") + name);
  }
  EXPECT_EQ(complete(Rule::HuggingFace), Names{"checkpoint-5"});
}

TEST_F(Checkpoints, HuggingFaceIsIncompleteWhileAFileOfItsIndexIsNewerThanItsState) {
  written(1, "checkpoint-5/part.index.json", R"({"weight_map": {"a": "part-1", "b": "part-2"}})");
  written(1, "checkpoint-5/part-1"), written(2, "checkpoint-5/trainer_state.json", "{}");
  written(1, "checkpoint-5/model.safetensors");
  written(3, "checkpoint-5/part-2");
  EXPECT_THAT(why_not(Rule::HuggingFace, "checkpoint-5"),
              HasSubstr("trainer_state.json is older than part-2"));
}

TEST_F(Checkpoints, DeepSpeedIsCompleteUpToTheCheckpointNamedByLatest) {
  written(1, "global_step5/mp_rank_00_model_states.pt"),
      written(2, "global_step10/mp_rank_00_model_states.pt");
  EXPECT_EQ(why_not(Rule::DeepSpeed, "global_step5"), "there is no file `latest` that names it yet");
  file("latest", "global_step5");
  EXPECT_EQ(complete(Rule::DeepSpeed), Names{"global_step5"});
  EXPECT_EQ(why_not(Rule::DeepSpeed, "global_step10"), "`latest` still names global_step5");
  file("latest", "global_step10\n");
  EXPECT_EQ(complete(Rule::DeepSpeed), Names{"global_step10"});
  std::filesystem::create_directories(out_ / "global_step7");
  EXPECT_EQ(why_not(Rule::DeepSpeed, "global_step7"), "it has no states of the model");
}

TEST_F(Checkpoints, DeepSpeedIsIncompleteIfLatestNamesALaterOneAndItWasNeverSeenComplete) {
  written(1, "global_step1000/mp_rank_00_model_states.pt"), written(2, "latest", "global_step1000");
  written(3, "global_step1234/mp_rank_00_model_states.pt");
  auto known = seen({"global_step1000"});
  written(4, "global_step1301/mp_rank_00_model_states.pt"), written(5, "latest", "global_step1301");
  const auto why = [&](const std::string& name) {
    for (const Checkpoint& one :
         all({Rule::DeepSpeed, ""}, std::chrono::system_clock::now() + std::chrono::minutes(1), known)) {
      if (one.name == name) return one.incomplete;
    }
    return "there is no " + name;
  };
  EXPECT_EQ(why("global_step1000"), "");
  EXPECT_THAT(why("global_step1234"), HasSubstr("`latest` names global_step1301"));
  EXPECT_EQ(why("global_step1301"), "");
  --known["global_step1000"];
  EXPECT_THAT(why("global_step1000"), HasSubstr("`latest` names global_step1301")) << "it has changed since";
}

// A power cut while the next one was saved.
TEST_F(Checkpoints, DeepSpeedIsCompleteAsItWasThoughLatestNamesNoneNow) {
  written(1, "global_step10/mp_rank_00_model_states.pt"), written(2, "latest", "global_step10");
  const auto known = seen({"global_step10"});
  written(3, "global_step20/mp_rank_00_model_states.pt");
  const auto now = std::chrono::system_clock::now() + std::chrono::minutes(1);
  for (const bool is_there : {true, false}) {
    if (is_there) file("latest", "");
    if (!is_there) std::filesystem::remove(out_ / "latest");
    const auto listed = all({Rule::DeepSpeed, ""}, now, known);
    ASSERT_EQ(listed.size(), 2u);
    EXPECT_EQ(listed[0].incomplete, "there is no file `latest` that names it yet");
    EXPECT_EQ(listed[1].incomplete, "");
  }
}

// The clock was set back between two saves.
TEST_F(Checkpoints, DeepSpeedIsCompleteAsItWasThoughLatestIsOlder) {
  written(5, "global_step10/mp_rank_00_model_states.pt"), written(6, "latest", "global_step10");
  const auto known = seen({"global_step10"});
  written(1, "global_step20/mp_rank_00_model_states.pt"), written(2, "latest", "global_step20");
  for (const Checkpoint& one :
       all({Rule::DeepSpeed, ""}, std::chrono::system_clock::now() + std::chrono::minutes(1), known))
    EXPECT_EQ(one.incomplete, "") << one.name;
}

TEST_F(Checkpoints, DeepSpeedIsIncompleteWhileTheStatesOfRank0AreNewerThanLatest) {
  written(1, "global_step60/mp_rank_00_model_states.pt"), written(2, "latest", "global_step60");
  written(1, "global_step60/bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt");
  EXPECT_EQ(complete(Rule::DeepSpeed), Names{"global_step60"});
  for (const char* name : {"mp_rank_00_model_states.pt", "bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt"}) {
    written(3, std::string("global_step60/") + name);  // after a rollback to a step before 60
    EXPECT_THAT(why_not(Rule::DeepSpeed, "global_step60"),
                HasSubstr(std::string("`latest` is older than ") + name));
    written(1, std::string("global_step60/") + name);
  }
  written(3, "global_step60/mp_rank_00_model_states.pt"), written(4, "latest", "global_step60");
  EXPECT_EQ(complete(Rule::DeepSpeed), Names{"global_step60"}) << "saved again";
}

TEST_F(Checkpoints, DeepSpeedIsCompleteIfOtherRanksEndAfterRank0HasWrittenLatest) {
  written(1, "global_step5/zero_pp_rank_0_mp_rank_00_model_states.pt"), written(2, "latest", "global_step5");
  written(3, "global_step5/zero_pp_rank_1_mp_rank_00_model_states.pt");
  written(3, "global_step5/bf16_zero_pp_rank_10_mp_rank_00_optim_states.pt");
  written(3, "global_step5/mp_rank_01_model_states.pt");
  EXPECT_EQ(complete(Rule::DeepSpeed), Names{"global_step5"});
  std::filesystem::remove(out_ / "global_step5/zero_pp_rank_0_mp_rank_00_model_states.pt");
  EXPECT_THAT(why_not(Rule::DeepSpeed, "global_step5"), HasSubstr("`latest` is older than "))
      << "rank 0 has not begun";
}

TEST_F(Checkpoints, AMarkerCompletesACheckpointIfNoFileIsNewer) {
  written(1, "a/model"), written(1, "b/model"), written(1, "b/part/one"), written(1, "b/DONE");
  EXPECT_EQ(complete(Rule::Marker, "DONE"), Names{"b"});
  written(2, "b/part/one");
  EXPECT_THAT(why_not(Rule::Marker, "b", "DONE"), HasSubstr("its DONE is older than part/one"));
}

TEST_F(Checkpoints, ACopyWithItsTimesStaysComplete) {
  written(1, "a/model"), written(2, "a/DONE");
  for (const char* name : {"model", "DONE"}) {
    file(std::string("b/") + name);
    std::filesystem::last_write_time(out_ / "b" / name, std::filesystem::last_write_time(out_ / "a" / name));
  }
  EXPECT_EQ(complete(Rule::Marker, "DONE").size(), 2u);
}

}  // namespace
}  // namespace spark::staging
