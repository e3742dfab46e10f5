#include "staging/outputs/checkpoints.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include "base/file.hpp"
#include "tests/unit/staging/support.hpp"

namespace spark::staging {
namespace {

using namespace test;
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
  // The checkpoints after a minute without changes.
  std::vector<Checkpoint> settled(Rule rule, const std::string& marker = "") {
    return all({rule, marker}, std::chrono::system_clock::now() + std::chrono::minutes(1));
  }
  Names complete(Rule rule, const std::string& marker = "") {
    Names names;
    for (const Checkpoint& one : settled(rule, marker)) {
      if (one.incomplete.empty()) names.push_back(one.name);
    }
    return names;
  }
  std::string why_not(Rule rule, const std::string& name) {
    for (const Checkpoint& one : settled(rule)) {
      if (one.name == name) return one.incomplete;
    }
    return "there is no " + name;
  }

  TempFolder folder_;
  std::filesystem::path out_ = folder_ / "out";
};

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

TEST_F(Checkpoints, DistributedTorchNeedsEveryFileNamedInItsMetadata) {
  // The strings of a pickle are between its opcodes.
  const std::string metadata = std::string("\x80\x02X\x0c\0\0\0__0_0.distcpq\x05", 21) +
                               "__1_0.distcp\x85"
                               "a.distcp";
  file("step-1/__0_0.distcp"), file("step-1/.metadata", metadata);
  EXPECT_EQ(why_not(Rule::Dcp, "step-1"), "its .metadata names __1_0.distcp, which is not there");
  file("step-1/__1_0.distcp");
  EXPECT_EQ(complete(Rule::Dcp), Names{"step-1"});
  file("step-2/__0_0.distcp");
  EXPECT_EQ(why_not(Rule::Dcp, "step-2"), "it has no .metadata yet");
  file("step-3/.metadata", "");
  EXPECT_EQ(why_not(Rule::Dcp, "step-3"), "its .metadata names no file");
}

TEST_F(Checkpoints, HuggingFaceNeedsItsStateAndAllWeightsOfItsIndex) {
  file("checkpoint-500/model-00001-of-00002.safetensors");
  file(
      "checkpoint-500/model.safetensors.index.json",
      R"({"metadata": {}, "weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}})");
  EXPECT_EQ(why_not(Rule::HuggingFace, "checkpoint-500"), "it has no trainer_state.json yet");
  file("checkpoint-500/trainer_state.json", "{}");
  EXPECT_EQ(why_not(Rule::HuggingFace, "checkpoint-500"),
            "model.safetensors.index.json names model-00002-of-00002.safetensors, which is not there");
  file("checkpoint-500/model-00002-of-00002.safetensors");
  EXPECT_EQ(complete(Rule::HuggingFace), Names{"checkpoint-500"});
  file("checkpoint-500/model.safetensors.index.json", "{");
  EXPECT_EQ(why_not(Rule::HuggingFace, "checkpoint-500"), "model.safetensors.index.json can't be read yet");
}

TEST_F(Checkpoints, DeepSpeedIsCompleteUpToTheCheckpointNamedByLatest) {
  file("global_step5/mp_rank_00_model_states.pt"), file("global_step10/mp_rank_00_model_states.pt");
  EXPECT_EQ(why_not(Rule::DeepSpeed, "global_step5"), "there is no file `latest` yet");
  file("latest", "global_step5");
  EXPECT_EQ(complete(Rule::DeepSpeed), Names{"global_step5"});
  EXPECT_EQ(why_not(Rule::DeepSpeed, "global_step10"), "`latest` still names global_step5");
  file("latest", "global_step10\n");
  EXPECT_EQ(complete(Rule::DeepSpeed).size(), 2u);
  std::filesystem::create_directories(out_ / "global_step7");
  EXPECT_EQ(why_not(Rule::DeepSpeed, "global_step7"), "it has no states of the model");
}

TEST_F(Checkpoints, WithAMarkerAreComplete) {
  file("a/model"), file("b/model"), file("b/DONE");
  EXPECT_EQ(complete(Rule::Marker, "DONE"), Names{"b"});
}

TEST_F(Checkpoints, AreRemovedTogetherWithLeftoversOfAnEarlierRemoval) {
  file("step-1/model"), file("step-2/model"), file(".step-0.spark-removed/model"), file(".keep/model");
  ASSERT_OK(remove_checkpoints(out_, {"step-1", "gone", "../out/step-2", ".keep"}));
  EXPECT_FALSE(std::filesystem::exists(out_ / "step-1"));
  EXPECT_FALSE(std::filesystem::exists(out_ / ".step-0.spark-removed"));
  EXPECT_TRUE(std::filesystem::exists(out_ / "step-2/model"));
  EXPECT_TRUE(std::filesystem::exists(out_ / ".keep/model"));
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
