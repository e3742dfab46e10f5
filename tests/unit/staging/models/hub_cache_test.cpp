#include "staging/models/hub_cache.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/text.hpp"
#include "tests/unit/staging/support.hpp"

namespace spark::staging {
namespace {

namespace fs = std::filesystem;

const std::string kCommit(40, 'c'), kSmallEtag(40, '1'), kLargeEtag(64, '2'), kPayload(64, '3');

// Caches of the layouts that different versions of huggingface_hub write. Each model has config.json (a small
// file) and a.safetensors.
class HubCache : public ::testing::Test {
 protected:
  fs::path model(const std::string& name) const { return hub_ / ("models--" + name); }

  void link(const fs::path& at, const std::string& target) {
    fs::create_directories(at.parent_path());
    fs::create_symlink(target, at);
  }
  void begin(const std::string& name) { test::write_text(model(name) / "refs/main", kCommit); }
  void make_old(const std::string& name) {
    begin(name);
    test::write_text(model(name) / "blobs" / kSmallEtag, "{}");
    test::write_text(model(name) / "blobs" / kLargeEtag, "weights of " + name);
    link_snapshot(name);
  }
  void make_shared(const std::string& name) {
    begin(name);
    test::write_text(hub_ / "blobs/.huggingface-shared-blobs", "1\n");
    test::write_text(hub_ / "blobs/33" / kPayload, "shared weights");
    test::write_text(model(name) / "blobs" / kSmallEtag, "{}");
    link(model(name) / "blobs" / kLargeEtag, "../../blobs/33/" + kPayload);
    link_snapshot(name);
  }
  void link_snapshot(const std::string& name) {
    const fs::path snapshot = model(name) / "snapshots" / kCommit;
    link(snapshot / "config.json", "../../blobs/" + kSmallEtag);
    link(snapshot / "a.safetensors", "../../blobs/" + kLargeEtag);
  }
  void make_without_links(const std::string& name) {
    begin(name);
    test::write_text(model(name) / "snapshots" / kCommit / "config.json", "{}");
    test::write_text(model(name) / "snapshots" / kCommit / "a.safetensors", "weights");
  }
  void write_tree_list(const std::string& name, Bytes size) {
    test::write_text(model(name) / "trees" / (kCommit + ".json"),
                     R"({"format_version":1,"files":{"config.json":{"size":2,"blob_id":")" + kSmallEtag +
                         R"("},"a.safetensors":{"size":130,"blob_id":")" + kSmallEtag +
                         R"(","lfs_sha256":")" + kLargeEtag + R"(","lfs_size":)" + std::to_string(size) +
                         R"(},"b.safetensors":{"size":1,"blob_id":")" + kSmallEtag + "\"}}}");
  }

  Result<HubModel> look(const std::string& name, const fs::path& path, std::vector<std::string> include = {},
                        const std::string& revision = "") {
    tree_ = std::move(*open_tree(path));
    auto snapshot = find_hub_snapshot(tree_, name, revision);
    if (!snapshot) return snapshot.take_error();
    if (!*snapshot) return fail(Errc::Invalid, "no cache");
    const StopFlag go;
    return walk_hub_snapshot(tree_, **snapshot, include, go);
  }
  Result<HubModel> look(const std::string& name) { return look(name, hub_); }

  static std::string files(const HubModel& model) {
    std::vector<std::string> all;
    for (const Entry& entry : model.walked.entries) {
      EXPECT_NE(entry.type, EntryType::Symlink) << std::string(entry.path);
      if (entry.type == EntryType::File)
        all.push_back(std::string(entry.path) + "=" + std::to_string(entry.size) +
                      (entry.link_to.view().empty() ? "" : "+"));
    }
    return join(all, " ");
  }
  static std::string digests(const HubModel& model) {
    std::vector<std::string> all;
    for (const PublishedFile& file : model.published)
      all.push_back(file.path + ":" + std::to_string(file.hex.size()));
    return join(all, " ");
  }

  test::TempFolder folder_;
  fs::path hub_ = folder_ / "hub";
  Tree tree_;
};

const std::string kIn = "models--org--tiny/snapshots/" + kCommit + "/";

TEST_F(HubCache, AModelOfTheOldLayoutIsItsFilesAndTheRef) {
  make_old("org--tiny");
  const auto model = look("org/tiny");
  ASSERT_OK(model);
  EXPECT_EQ(files(*model),
            "models--org--tiny/refs/main=40 " + kIn + "a.safetensors=20 " + kIn + "config.json=2");
  EXPECT_EQ(digests(*model), "a.safetensors:64 config.json:40");
  EXPECT_EQ(model->published[0].told_by, "the name of its blob");
}

TEST_F(HubCache, PayloadsThatModelsShareAreFollowedAndTheirNamesAreNoDigests) {
  make_shared("org--tiny");
  const auto model = look("org/tiny");
  ASSERT_OK(model);
  EXPECT_EQ(files(*model),
            "models--org--tiny/refs/main=40 " + kIn + "a.safetensors=14 " + kIn + "config.json=2");
  EXPECT_EQ(model->published[0].hex, kLargeEtag);
}

TEST_F(HubCache, TheFolderOfOneModelIsEnough) {
  make_shared("org--tiny");
  const auto model = look("org/tiny", hub_ / "models--org--tiny");
  ASSERT_OK(model);
  EXPECT_EQ(files(*model), "refs/main=40 snapshots/" + kCommit + "/a.safetensors=14 snapshots/" + kCommit +
                               "/config.json=2");
}

TEST_F(HubCache, ACacheOfMixedLayoutsHasEachModel) {
  make_old("org--tiny");
  make_shared("org--other");
  make_without_links("org--third");
  for (const char* name : {"org/tiny", "org/other", "org/third"}) {
    const auto model = look(name);
    ASSERT_OK(model);
    EXPECT_EQ(model->published.size(), 2u) << name;
  }
}

TEST_F(HubCache, OnlyTheChosenFilesAreWalked) {
  make_old("org--tiny");
  fs::remove(model("org--tiny") / "blobs" / kLargeEtag);
  const auto model = look("org/tiny", hub_, {"*.json"});
  ASSERT_OK(model);
  EXPECT_EQ(files(*model), "models--org--tiny/refs/main=40 " + kIn + "config.json=2");
}

TEST_F(HubCache, TwoNamesOfOneBlobAreOneFile) {
  make_old("org--tiny");
  link(model("org--tiny") / "snapshots" / kCommit / "b/again.safetensors", "../../../blobs/" + kLargeEtag);
  auto both = look("org/tiny");
  ASSERT_OK(both);
  EXPECT_NE(files(*both).find("b/again.safetensors=20+"), std::string::npos);
  const auto one = look("org/tiny", hub_, {"b/*"});
  ASSERT_OK(one);
  EXPECT_EQ(files(*one), "models--org--tiny/refs/main=40 " + kIn + "b/again.safetensors=20");
}

TEST_F(HubCache, AMissingPayloadIsRefusedByName) {
  make_shared("org--tiny");
  fs::remove(hub_ / "blobs/33" / kPayload);
  const auto model = look("org/tiny");
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().kind, Errc::Mismatch);
  EXPECT_NE(model.error().what.find("a.safetensors"), std::string::npos) << model.error().what;
}

TEST_F(HubCache, ALinkOutOfTheCacheIsRefused) {
  make_old("org--tiny");
  test::write_text(folder_ / "elsewhere", "secret");
  fs::remove(model("org--tiny") / "blobs" / kLargeEtag);
  link(model("org--tiny") / "blobs" / kLargeEtag, "../../../elsewhere");
  const auto model = look("org/tiny");
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().kind, Errc::Mismatch);
}

TEST_F(HubCache, AStoreWithoutItsMarkIsNotOfTheModelsFolder) {
  make_shared("org--tiny");
  fs::remove(hub_ / "blobs/.huggingface-shared-blobs");
  EXPECT_FALSE(look("org/tiny", hub_ / "models--org--tiny"));
}

TEST_F(HubCache, ARevisionIsARefOrACommit) {
  make_old("org--tiny");
  test::write_text(model("org--tiny") / "refs/refs/pr/1", kCommit);
  const auto commit = look("org/tiny", hub_, {}, kCommit);
  ASSERT_OK(commit);
  EXPECT_EQ(files(*commit), kIn + "a.safetensors=20 " + kIn + "config.json=2");
  ASSERT_OK(look("org/tiny", hub_, {}, "refs/pr/1"));
  const auto none = look("org/tiny", hub_, {}, "v2");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, Errc::NotFound);
  EXPECT_FALSE(look("org/tiny", hub_, {}, std::string(40, 'd')));
  EXPECT_FALSE(look("org/tiny", hub_, {}, "../../../../etc/passwd"));
}

TEST_F(HubCache, TheListOfTheCommitTellsSizesDigestsAndWhatIsAbsent) {
  make_without_links("org--tiny");
  write_tree_list("org--tiny", 7);
  const auto model = look("org/tiny");
  ASSERT_OK(model);
  EXPECT_EQ(digests(*model), "a.safetensors:64 config.json:40");
  EXPECT_EQ(model->absent, std::vector<std::string>{"b.safetensors"});
  write_tree_list("org--tiny", 8);
  const auto truncated = look("org/tiny");
  ASSERT_FALSE(truncated);
  EXPECT_EQ(truncated.error().kind, Errc::Mismatch);
}

TEST_F(HubCache, AnotherFolderIsNoCacheAndAnotherModelIsNamed) {
  test::write_text(folder_ / "plain/config.json", "{}");
  const auto plain = open_tree(folder_ / "plain");
  const auto none = find_hub_snapshot(*plain, "org/tiny", "");
  ASSERT_OK(none);
  EXPECT_FALSE(none->has_value());
  make_old("org--tiny");
  EXPECT_EQ(look("org/small").error().kind, Errc::NotFound);
  EXPECT_EQ(look("org/small", hub_ / "models--org--tiny").error().kind, Errc::NotFound);
}

TEST_F(HubCache, NothingElseOfTheCacheIsWalked) {
  make_old("org--tiny");
  test::write_text(model("org--tiny") / "blobs/5.incomplete", "half");
  test::write_text(model("org--tiny") / "snapshots" / std::string(40, 'd') / "config.json", "{}");
  test::write_text(model("org--tiny") / ".no_exist" / kCommit / "added_tokens.json", "");
  test::write_text(hub_ / "token", "secret");
  const auto model = look("org/tiny");
  ASSERT_OK(model);
  EXPECT_EQ(files(*model), "models--org--tiny/.no_exist/" + kCommit + "/added_tokens.json=0 " +
                               "models--org--tiny/refs/main=40 " + kIn + "a.safetensors=20 " + kIn +
                               "config.json=2");
}

}  // namespace
}  // namespace spark::staging
