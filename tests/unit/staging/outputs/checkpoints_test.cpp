#include "staging/outputs/checkpoints.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.hpp"
#include "tests/unit/staging/support.hpp"

namespace spark::staging {
namespace {

using namespace test;
using testing::HasSubstr;
using Rule = Completeness::Rule;
using Names = std::vector<std::string>;

constexpr Duration kSettled{3'000};

class Checkpoints : public testing::Test {
 protected:
  void file(const std::string& path, const std::string& text = "x") {
    std::filesystem::create_directories((out_ / path).parent_path());
    write_text(out_ / path, text);
  }
  void date(const std::string& name, int seconds_ago) {
    std::filesystem::last_write_time(
        out_ / name, std::filesystem::file_time_type::clock::now() - std::chrono::seconds(seconds_ago));
  }
  std::vector<Checkpoint> all(Completeness completeness, WallTime now) {
    auto listed = list_checkpoints(out_, completeness, now, kSettled);
    EXPECT_TRUE(listed) << listed.error().message();
    return listed.value_or(std::vector<Checkpoint>());
  }
  // A file that was written `minute` minutes after the first of the others.
  void written(int minute, const std::string& path, const std::string& text = "x") {
    file(path, text);
    std::filesystem::last_write_time(out_ / path, start_ + std::chrono::minutes(minute));
  }
  // The checkpoints after a minute without changes.
  std::vector<Checkpoint> settled(Rule rule, const std::string& marker = "") {
    return all({rule, marker}, std::chrono::system_clock::now() + std::chrono::minutes(1));
  }
  // The changes of these names as last seen.
  std::map<std::string, std::int64_t> seen(const Names& names) {
    std::map<std::string, std::int64_t> changes;
    for (const std::string& name : names) changes[name] = 0;
    for (const Checkpoint& one : settled(Rule::Rename)) {
      if (changes.contains(one.name)) changes[one.name] = one.changed_ns;
    }
    return changes;
  }
  Names complete(Rule rule, const std::string& marker = "") {
    Names names;
    for (const Checkpoint& one : settled(rule, marker)) {
      if (one.incomplete.empty()) names.push_back(one.name);
    }
    return names;
  }
  std::string why_not(Rule rule, const std::string& name, const std::string& marker = "") {
    for (const Checkpoint& one : settled(rule, marker)) {
      if (one.name == name) return one.incomplete;
    }
    return "there is no " + name;
  }

  const std::filesystem::file_time_type start_ =
      std::filesystem::file_time_type::clock::now() - std::chrono::hours(24);
  TempFolder folder_;
  std::filesystem::path out_ = folder_ / "out";
};

TEST_F(Checkpoints, AProofThatIsNoRegularFileIsNotRead) {
  for (const char* name : {"dcp/.metadata", "hf/model.safetensors.index.json", "ds/latest"}) {
    std::filesystem::create_directories((out_ / name).parent_path());
    ASSERT_EQ(::mkfifo((out_ / name).c_str(), 0600), 0);
  }
  file("hf/trainer_state.json");
  EXPECT_THAT(why_incomplete(out_ / "dcp", 0, {Rule::Dcp, ""}), HasSubstr("no .metadata"));
  EXPECT_THAT(why_incomplete(out_ / "hf", 0, {Rule::HuggingFace, ""}), HasSubstr("can't be read"));
  EXPECT_THAT(why_incomplete(out_ / "ds/step-1", 0, {Rule::DeepSpeed, ""}), HasSubstr("no file `latest`"));
}

TEST_F(Checkpoints, UnderTheirFinalNamesAreCompleteNewestFirst) {
  file("step-1/model"), file("step-2/model"), file("model.safetensors");
  date("step-1", 30), date("step-2", 20), date("model.safetensors", 10);
  file("tmp-step-3/model"), file(".step-4/model"), file("step-5.tmp"), file("step-6.incomplete/model");
  std::filesystem::create_symlink("step-2", out_ / "latest");
  EXPECT_EQ(complete(Rule::Rename), (Names{"model.safetensors", "step-2", "step-1"}));
  EXPECT_EQ(settled(Rule::Rename)[0].bytes, 1u);
}

TEST_F(Checkpoints, ARecentlyChangedCheckpointIsNotComplete) {
  file("step-1/model");
  const auto now = all({Rule::Rename, ""}, std::chrono::system_clock::now());
  ASSERT_EQ(now.size(), 1u);
  EXPECT_EQ(now[0].incomplete, "it changed a moment ago");
  EXPECT_TRUE(now[0].is_settling);
  date("step-1", 100);  // a rename or a restored file has old times, so the change itself counts
  EXPECT_FALSE(all({Rule::Rename, ""}, std::chrono::system_clock::now())[0].incomplete.empty());
}

TEST_F(Checkpoints, FromBeforeTheStartOfTheHostAreUnprovenUnlessKnownToHaveBeenOnTheDrive) {
  std::vector<Checkpoint> checkpoints{{.name = "new", .changed_ns = 31, .incomplete = ""},
                                      {.name = "saved-again", .changed_ns = 21, .incomplete = ""},
                                      {.name = "known", .changed_ns = 11, .incomplete = ""},
                                      {.name = "unfinished", .changed_ns = 5, .incomplete = "no DONE"}};
  const std::map<std::string, std::int64_t> known{{"saved-again", 20}, {"known", 11}};
  EXPECT_TRUE(mark_unproven(checkpoints, "/out", known, 30)) << "the new one is not on the drive yet";
  std::string unproven;
  for (const Checkpoint& one : checkpoints)
    unproven += one.is_unproven ? one.name + ": " + one.incomplete : "";
  EXPECT_THAT(unproven, testing::StartsWith("saved-again: it is older than this host's last start"));
  EXPECT_THAT(unproven, HasSubstr("`spark-stage stage-out /out/saved-again VOLUME:PATH`"));
  EXPECT_EQ(checkpoints.back().incomplete, "no DONE");
  EXPECT_FALSE(mark_unproven(checkpoints, "/out", {{"new", 31}, {"known", 11}}, 30));
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
  EXPECT_EQ(
      why_not(Rule::Marker, "step-1", "DONE"),
      "its DONE is older than model, as after an interrupted save to the same name or a copy without times; "
      "if it is right, send it with `spark-stage stage-out " +
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
  written(2, "checkpoint-5/trainer_state.json"), written(3, "checkpoint-5/rng_state_0.pth");
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
  written(1, "checkpoint-5/part-1"), written(2, "checkpoint-5/trainer_state.json");
  written(3, "checkpoint-5/part-2");
  EXPECT_THAT(why_not(Rule::HuggingFace, "checkpoint-5"),
              HasSubstr("trainer_state.json is older than part-2"));
}

TEST_F(Checkpoints, DeepSpeedIsCompleteUpToTheCheckpointNamedByLatest) {
  written(1, "global_step5/mp_rank_00_model_states.pt"),
      written(2, "global_step10/mp_rank_00_model_states.pt");
  EXPECT_EQ(why_not(Rule::DeepSpeed, "global_step5"), "there is no file `latest` yet");
  file("latest", "global_step5");
  EXPECT_EQ(complete(Rule::DeepSpeed), Names{"global_step5"});
  EXPECT_EQ(why_not(Rule::DeepSpeed, "global_step10"), "`latest` still names global_step5");
  file("latest", "global_step10\n");
  EXPECT_EQ(complete(Rule::DeepSpeed), Names{"global_step10"});
  std::filesystem::create_directories(out_ / "global_step7");
  EXPECT_EQ(why_not(Rule::DeepSpeed, "global_step7"), "it has no states of the model");
}

// A job that is killed while it saves leaves one below the number of its next save, which `latest` names.
TEST_F(Checkpoints, DeepSpeedIsIncompleteIfLatestNamesALaterOneAndItWasNeverSeenComplete) {
  written(1, "global_step1000/mp_rank_00_model_states.pt"), written(2, "latest", "global_step1000");
  written(3, "global_step1234/mp_rank_00_model_states.pt");
  Completeness completeness{Rule::DeepSpeed, "", seen({"global_step1000"})};
  written(4, "global_step1301/mp_rank_00_model_states.pt"), written(5, "latest", "global_step1301");
  const auto why = [&](const std::string& name) {
    for (const Checkpoint& one :
         all(completeness, std::chrono::system_clock::now() + std::chrono::minutes(1))) {
      if (one.name == name) return one.incomplete;
    }
    return "there is no " + name;
  };
  EXPECT_EQ(why("global_step1000"), "");
  EXPECT_THAT(why("global_step1234"), HasSubstr("`latest` names global_step1301"));
  EXPECT_EQ(why("global_step1301"), "");
  --completeness.known["global_step1000"];
  EXPECT_THAT(why("global_step1000"), HasSubstr("`latest` names global_step1301")) << "it has changed since";
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

TEST_F(Checkpoints, AreRemovedTogetherWithLeftoversOfAnEarlierRemoval) {
  file("step-1/model"), file("step-2/model"), file(".step-0.spark-removed/model"), file(".keep/model");
  ASSERT_OK(remove_checkpoints(out_, seen({"step-1", "gone", "../out/step-2", ".keep"}), {}));
  EXPECT_FALSE(std::filesystem::exists(out_ / "step-1"));
  EXPECT_FALSE(std::filesystem::exists(out_ / ".step-0.spark-removed"));
  EXPECT_TRUE(std::filesystem::exists(out_ / "step-2/model"));
  EXPECT_TRUE(std::filesystem::exists(out_ / ".keep/model"));
}

TEST_F(Checkpoints, ACheckpointBeingCopiedIsNotRemoved) {
  for (const char* name : {"whole", "in-part", "near", "free"}) file(std::string(name) + "/model");
  std::filesystem::create_directory_symlink(out_, folder_ / "link");
  ASSERT_OK(remove_checkpoints(out_, seen({"whole", "in-part", "near", "free"}),
                               {folder_ / "link/whole", out_ / "in-part/model", out_ / "nea", "/elsewhere"}));
  EXPECT_TRUE(std::filesystem::exists(out_ / "whole/model")) << "its path leads through a link";
  EXPECT_TRUE(std::filesystem::exists(out_ / "in-part/model"));
  EXPECT_FALSE(std::filesystem::exists(out_ / "near"));
  EXPECT_FALSE(std::filesystem::exists(out_ / "free"));
  file("step-1/model");
  ASSERT_OK(remove_checkpoints(out_, seen({"step-1"}), {out_.native() + "/"}));
  EXPECT_TRUE(std::filesystem::exists(out_ / "step-1/model")) << "the copy is of the whole folder";
}

TEST_F(Checkpoints, ACheckpointSavedAgainSinceItWasListedIsNotRemoved) {
  file("step-1/model"), file("step-2/part/model"), file("step-3/model");
  auto before = seen({"step-1", "step-2", "step-3"});
  --before["step-1"];
  date("step-2/part/model", 50);  // its change counts, not the time that it was given
  while (seen({"step-2"})["step-2"] == before["step-2"]) date("step-2/part/model", 50);
  ASSERT_OK(remove_checkpoints(out_, before, {}));
  EXPECT_TRUE(std::filesystem::exists(out_ / "step-1/model"));
  EXPECT_TRUE(std::filesystem::exists(out_ / "step-2/part/model"));
  EXPECT_FALSE(std::filesystem::exists(out_ / "step-3"));
}

TEST_F(Checkpoints, ACheckpointIsRemovedDespiteRemainsOfTheSameName) {
  file(".step-1.spark-removed/model"), file("step-1/model");
  ASSERT_OK(remove_checkpoints(out_, seen({"step-1"}), {}));
  EXPECT_FALSE(std::filesystem::exists(out_ / ".step-1.spark-removed"));
  EXPECT_FALSE(std::filesystem::exists(out_ / "step-1"));
}

TEST_F(Checkpoints, LatestIsASymlinkOrAFileAndNeverReplacesTheJobsOwn) {
  file("step-1/model"), file("step-2/model");
  ASSERT_OK(point_latest(out_, "step-1", PointerKind::Link));
  ASSERT_OK(point_latest(out_, "step-2", PointerKind::Link));
  EXPECT_EQ(std::filesystem::read_symlink(out_ / "latest"), "step-2");
  EXPECT_EQ(point_latest(out_, "step-2", PointerKind::File).error().kind, Errc::Refused);
  std::filesystem::remove(out_ / "latest");
  ASSERT_OK(point_latest(out_, "step-2", PointerKind::File));
  EXPECT_EQ(read_file(out_ / "latest").value(), "step-2");
  EXPECT_EQ(point_latest(out_, "step-1", PointerKind::Link).error().kind, Errc::Refused);
}

}  // namespace
}  // namespace spark::staging
