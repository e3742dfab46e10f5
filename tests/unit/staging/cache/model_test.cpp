// A dataset that is a model in a cache of Hugging Face.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "tests/unit/staging/cache/model_fixture.hpp"

namespace spark::staging::test {
namespace {

using testing::ElementsAre;

class EachLayout : public ModelInCacheTest, public testing::WithParamInterface<HubLayout> {};
INSTANTIATE_TEST_SUITE_P(Hub, EachLayout,
                         testing::Values(HubLayout::Old, HubLayout::Shared, HubLayout::WithoutLinks));

TEST_P(EachLayout, IsCopiedAsAReadableCacheWithoutLinks) {
  hub_.make(kName, GetParam());
  hub_.make("org/other", GetParam());
  write_text(folder_ / "hub/token", "secret");
  write_text(hub_.model(kName) / "blobs/half.incomplete", "half");
  const auto staged = stage();
  ASSERT_OK(staged);
  EXPECT_EQ(files_in(*staged), wanted_files());
  EXPECT_EQ(staged->path, copy_of(*staged) / "models--org--tiny/snapshots" / hub_.commit);
  ASSERT_TRUE(staged->model);
  EXPECT_EQ(staged->model->hub_cache, copy_of(*staged));
  EXPECT_EQ(staged->model->record.hub_folder, "models--org--tiny");
  EXPECT_EQ(staged->model->record.revision, hub_.commit);
  for (const auto& [file, content] : hub_.files) EXPECT_EQ(read_text(staged->path / file), content) << file;
}

TEST_P(EachLayout, IsServedAgainWithItsSnapshot) {
  hub_.make(kName, GetParam());
  const auto first = stage();
  ASSERT_OK(first);
  const auto again = stage();
  ASSERT_OK(again);
  EXPECT_EQ(again->served_from, ServedFrom::Cache);
  EXPECT_EQ(again->path, first->path);
  ASSERT_TRUE(again->model);
  EXPECT_EQ(again->model->record.sha256, first->model->record.sha256);
  const auto rows = open()->list();
  ASSERT_OK(rows);
  EXPECT_EQ(rows->front().path, first->path);
  EXPECT_EQ(rows->front().model->record.revision, hub_.commit);
}

TEST_F(ModelInCacheTest, DigestsAreTheNamesOfBlobs) {
  hub_.make(kName, HubLayout::Shared);
  const auto staged = stage();
  ASSERT_OK(staged);
  EXPECT_EQ(staged->model->record.sha256, 2u);
  EXPECT_EQ(staged->model->record.git_sha1, 2u);
  EXPECT_EQ(staged->model->record.none, 0u);
}

TEST_F(ModelInCacheTest, EqualFilesOfEachLayoutHaveOneHash) {
  std::set<std::string> hashes;
  for (const auto& [dataset, layout] : {std::pair("a", HubLayout::Old), std::pair("b", HubLayout::Shared),
                                        std::pair("c", HubLayout::WithoutLinks)}) {
    MadeHub hub(folder_ / dataset);
    hub.make(kName, layout);
    source_.dataset = dataset;
    source_.path = hub.folder();
    const auto staged = stage();
    ASSERT_OK(staged);
    hashes.insert(staged->report.hash);
  }
  EXPECT_EQ(hashes.size(), 1u);
}

TEST_F(ModelInCacheTest, TheModelsFolderAndItsSnapshotGiveTheSameCopy) {
  hub_.make(kName, HubLayout::Shared);
  source_.path = hub_.model(kName);
  const auto of_model = stage();
  ASSERT_OK(of_model);
  EXPECT_EQ(files_in(*of_model), wanted_files());
  source_.dataset = "snapshot";
  source_.path = hub_.snapshot(kName);
  const auto of_snapshot = stage();
  ASSERT_OK(of_snapshot);
  auto without_ref = wanted_files();
  without_ref.erase("models--org--tiny/refs/main");
  EXPECT_EQ(files_in(*of_snapshot), without_ref);
}

TEST_F(ModelInCacheTest, ADamagedFileIsRefusedByItsNameInTheModel) {
  for (const char* file : {kShard.c_str(), "config.json"}) {
    for (const auto layout : {HubLayout::Old, HubLayout::Shared}) {
      fs::remove_all(hub_.folder());
      hub_.make(kName, layout);
      corrupt(hub_.payload(kName, file));
      expect_refused(std::string(file) + " does not match");
    }
  }
}

TEST_F(ModelInCacheTest, ARepairedFileIsStaged) {
  hub_.make(kName, HubLayout::Old);
  corrupt(hub_.payload(kName, kShard));
  expect_refused(kShard);
  corrupt(hub_.payload(kName, kShard));  // flips it back, with the old times
  ASSERT_OK(stage());
}

TEST_F(ModelInCacheTest, ATruncatedShardIsRefusedWithoutAnyDigest) {
  hub_.make(kName, HubLayout::WithoutLinks);
  fs::resize_file(hub_.payload(kName, kShard), hub_.files[kShard].size() - 1);
  expect_refused(kShard);
}

TEST_F(ModelInCacheTest, AMissingShardIsRefused) {
  hub_.make(kName, HubLayout::Old);
  fs::remove(hub_.snapshot(kName) / kShard);
  expect_refused("it names " + kShard + ", which is not there");
}

TEST_F(ModelInCacheTest, ADownloadThatHasOnlyBegunIsRefused) {
  hub_.make(kName, HubLayout::Old);
  for (const char* shard : {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"})
    fs::remove(hub_.snapshot(kName) / shard);
  expect_refused("has no weights");
  source_.model->include = {"*.json"};
  ASSERT_OK(stage());
  source_.model->include = {};
  fs::remove(hub_.snapshot(kName) / "model.safetensors.index.json");
  ASSERT_OK(stage());  // a model without weights, as a tokenizer is
  write_text(hub_.model(kName) / "blobs/half.incomplete", "half");
  write_text(hub_.snapshot(kName) / "more.json", "{}");
  EXPECT_KIND(stage(), Errc::Mismatch);
}

TEST_F(ModelInCacheTest, AnUnfinishedDownloadIsRefused) {
  for (const auto layout : {HubLayout::Old, HubLayout::Shared}) {
    fs::remove_all(hub_.folder());
    hub_.make(kName, layout);
    const fs::path payload = hub_.payload(kName, kShard);
    fs::rename(payload, payload.native() + ".incomplete");
    expect_refused(kShard);
  }
}

TEST_F(ModelInCacheTest, LinksToElsewhereAreRefused) {
  hub_.make(kName, HubLayout::Old);
  write_text(folder_ / "elsewhere", hub_.files[kShard]);
  const fs::path place = hub_.snapshot(kName) / kShard;
  fs::remove(place);
  fs::create_symlink(folder_ / "elsewhere", place);
  expect_refused(kShard);
}

TEST_F(ModelInCacheTest, AStoreWithoutItsMarkIsRefused) {
  hub_.make(kName, HubLayout::Shared);
  fs::remove(hub_.folder() / "blobs/.huggingface-shared-blobs");
  expect_refused(".huggingface-shared-blobs");
}

TEST_F(ModelInCacheTest, ASelectiveDownloadIsStagedWithoutTheListOfFiles) {
  hub_.make(kName, HubLayout::Old);
  hub_.list_files(kName, {"original/weights.pth"});
  const auto staged = stage();
  ASSERT_OK(staged);
  EXPECT_EQ(files_in(*staged), wanted_files());
  EXPECT_EQ(staged->model->record.absent, 1u);
  source_.dataset = "complete";
  source_.model->check = ModelCheck::Complete;
  expect_refused("original/weights.pth");
}

TEST_F(ModelInCacheTest, AWholeDownloadKeepsItsList) {
  hub_.make(kName, HubLayout::WithoutLinks);
  hub_.list_files(kName);
  source_.model->check = ModelCheck::Complete;
  const auto staged = stage();
  ASSERT_OK(staged);
  auto with_list = wanted_files();
  with_list.insert("models--org--tiny/trees/" + hub_.commit + ".json");
  EXPECT_EQ(files_in(*staged), with_list);
  EXPECT_EQ(staged->model->record.sha256, 2u);
  EXPECT_EQ(staged->model->record.git_sha1, 2u);
}

TEST_F(ModelInCacheTest, ADamagedFileOfTheListIsRefused) {
  hub_.make(kName, HubLayout::WithoutLinks);
  hub_.list_files(kName);
  corrupt(hub_.payload(kName, "config.json"));
  expect_refused("config.json does not match models--org--tiny/trees/");
}

TEST_F(ModelInCacheTest, IncludedFilesAloneAreCopied) {
  hub_.make(kName, HubLayout::Old);
  hub_.list_files(kName);
  source_.model->include = {"config.json"};
  const auto staged = stage();
  ASSERT_OK(staged);
  EXPECT_EQ(files_in(*staged),
            (std::set<std::string>{"models--org--tiny/refs/main",
                                   "models--org--tiny/snapshots/" + hub_.commit + "/config.json"}));
  source_.dataset = "nothing";
  source_.model->include = {"*.gguf"};
  expect_refused("include", Errc::NotFound);
}

TEST_F(ModelInCacheTest, AnotherModelOrRevisionIsNotFound) {
  hub_.make(kName, HubLayout::Old);
  source_.model->revision = "v2";
  expect_refused("v2", Errc::NotFound);
  source_.model = ModelOptions{"org/huge"};
  expect_refused("org/huge", Errc::NotFound);
}

// huggingface_hub writes the ref before it downloads the files.
TEST_F(ModelInCacheTest, ACopyIsOfOneCommitAlthoughTheRefMoves) {
  hub_.make(kName, HubLayout::Old);
  bool has_moved = false;
  hooks_.before_read = [&](const std::string& path, Bytes) {
    if (path.ends_with("main") && !std::exchange(has_moved, true))
      write_text(hub_.model(kName) / "refs/main", std::string(40, 'd'));
  };
  const auto staged = stage();
  ASSERT_OK(staged);
  EXPECT_EQ(read_text(copy_of(*staged) / "models--org--tiny/refs/main"), hub_.commit);
  EXPECT_EQ(files_in(*staged), wanted_files());
  ASSERT_OK(open()->verify("set", options_, kQuiet, stop_));
}

TEST_F(ModelInCacheTest, ARefWithALineEndIsWrittenWithoutIt) {
  hub_.make(kName, HubLayout::Old);
  write_text(hub_.model(kName) / "refs/main", hub_.commit + "\n");
  const auto staged = stage();
  ASSERT_OK(staged);
  EXPECT_EQ(read_text(copy_of(*staged) / "models--org--tiny/refs/main"), hub_.commit);
  const auto again = stage();
  ASSERT_OK(again);
  EXPECT_EQ(again->served_from, ServedFrom::Cache);
}

TEST_F(ModelInCacheTest, APinIsOfAllFiles) {
  hub_.make(kName, HubLayout::Old);
  source_.model->expect = "sha256:" + std::string(64, '0');
  expect_refused("'expect'");
  std::set<std::string> lines;
  for (const auto& [file, content] : hub_.files)
    lines.insert(MadeHub::sha256_of(content) + "  " + std::to_string(content.size()) + "  " + file + "\n");
  std::string all;
  for (const std::string& line : lines) all += line;
  const std::string pin = "sha256:" + MadeHub::sha256_of(all);
  source_.model->expect.clear();
  const auto without = stage();
  ASSERT_OK(without);
  EXPECT_EQ(without->model->record.pin, pin) << "to be written as `expect`";
  source_.model->expect = pin;
  for (int i = 0; i < 2; ++i) {
    const auto staged = stage();
    ASSERT_OK(staged);
    EXPECT_EQ(staged->model->record.pin, pin) << "also of the copy that is in the cache";
  }
}

// What was not checked when it was staged is checked when that is asked for.
TEST_F(ModelInCacheTest, AStricterCheckDoesNotTrustTheCopy) {
  hub_.make(kName, HubLayout::Old);
  corrupt(hub_.payload(kName, "config.json"));
  source_.model->check = ModelCheck::Structure;
  ASSERT_OK(stage());
  source_.model->check = ModelCheck::Published;
  const auto staged = stage();
  EXPECT_KIND(staged, Errc::Mismatch);
}

TEST_F(ModelInCacheTest, NothingIsCheckedIfThatIsAskedFor) {
  hub_.make(kName, HubLayout::Old);
  fs::remove(hub_.snapshot(kName) / kShard);
  source_.model->check = ModelCheck::None;
  const auto staged = stage();
  ASSERT_OK(staged);
  EXPECT_EQ(staged->model->record.none, 3u);
}

TEST_F(ModelInCacheTest, AVerificationReadsTheDigestsAgain) {
  hub_.make(kName, HubLayout::Old);
  const auto staged = stage();
  ASSERT_OK(staged);
  const auto cache = open();
  ASSERT_OK(cache->verify("set", options_, kQuiet, stop_));
  corrupt(staged->path / kShard);
  EXPECT_KIND(cache->verify("set", options_, kQuiet, stop_), Errc::Mismatch);
}

TEST_F(ModelInCacheTest, ARebuiltCatalogKnowsTheSnapshot) {
  hub_.make(kName, HubLayout::Old);
  const auto staged = stage();
  ASSERT_OK(staged);
  fs::remove_all(config_.state_dir);
  const auto rows = open()->list();
  ASSERT_OK(rows);
  EXPECT_EQ(rows->front().path, staged->path);
}

}  // namespace
}  // namespace spark::staging::test
