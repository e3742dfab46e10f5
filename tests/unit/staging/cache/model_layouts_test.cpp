// A dataset that is a model where other programs than huggingface_hub's cache leave it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "staging/models/git_index.hpp"
#include "staging/models/model_folder.hpp"
#include "staging/models/sha256.hpp"
#include "tests/unit/staging/cache/cache_fixture.hpp"
#include "tests/unit/staging/models/made_hub.hpp"

namespace spark::staging::test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string kWeights = "model.safetensors", kCommit(40, 'c');

class ModelLayoutsTest : public CacheTest {
 protected:
  ModelLayoutsTest() {
    source_.model = ModelOptions{"org/tiny"};
    source_.path = tree_;
  }

  const fs::path tree_ = folder_ / "models";
  const std::string weights_ = safetensors(MadeHub::kHeader, 1000), config_text_ = R"({"model_type":"tiny"})";

  void write_model(const fs::path& folder) {
    write_text(folder / kWeights, weights_);
    write_text(folder / "config.json", config_text_);
  }
  // Of the copy, relative to what jobs get.
  static std::set<std::string> files_in(const fs::path& copy) {
    std::set<std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(copy)) {
      if (entry.is_symlink()) all.insert("-> " + entry.path().lexically_relative(copy).string());
      if (entry.is_regular_file()) all.insert(entry.path().lexically_relative(copy).string());
    }
    return all;
  }
  void expect_staged(std::uint64_t sha256, std::uint64_t git_sha1, std::uint64_t none) {
    const auto staged = stage();
    ASSERT_OK(staged);
    ASSERT_TRUE(staged->model);
    const ModelRecord& record = staged->model->record;
    EXPECT_EQ(record.sha256, sha256);
    EXPECT_EQ(record.git_sha1, git_sha1);
    EXPECT_EQ(record.none, none);
    EXPECT_EQ(files_in(staged->path), (std::set<std::string>{kWeights, "config.json"}));
    EXPECT_TRUE(staged->model->hub_cache.empty());
    ASSERT_OK(open()->verify("set", options_, kQuiet, stop_));
    EXPECT_EQ(stage()->served_from, ServedFrom::Cache);
    ASSERT_OK(open()->evict("set"));
  }
  void expect_refused(const std::string& named, Errc kind = Errc::Mismatch) {
    const auto staged = stage();
    ASSERT_FALSE(staged);
    EXPECT_EQ(staged.error().kind, kind) << staged.error().message();
    EXPECT_THAT(staged.error().message(), HasSubstr(named));
    EXPECT_FALSE(fs::exists(link()));
  }
};

TEST_F(ModelLayoutsTest, APlainFolderIsAModelIfItHasWeights) {
  write_model(tree_);
  expect_staged(0, 0, 2);
  write_text(tree_ / "SHA256SUMS",
             MadeHub::sha256_of(weights_) + "  " + kWeights + "\n" + MadeHub::sha256_of("x") + "  absent\n");
  source_.model->include = {"*.safetensors", "*.json"};
  expect_staged(1, 0, 1);
  source_.model->include.clear();
  expect_refused("absent is missing, and SHA256SUMS lists it");
  write_text(tree_ / "absent", "y");
  expect_refused("absent does not match SHA256SUMS");
  source_.path = folder_ / "no-model";
  write_text(source_.path / "below/model.safetensors", weights_);
  expect_refused("has no model org/tiny", Errc::NotFound);
}

TEST_F(ModelLayoutsTest, AModelOfLmStudioIsFoundByItsName) {
  write_model(tree_ / "org/tiny");
  write_model(tree_ / "org/other");
  expect_staged(0, 0, 2);
  fs::resize_file(tree_ / "org/tiny" / kWeights, weights_.size() - 1);
  expect_refused(kWeights);
}

TEST_F(ModelLayoutsTest, ADownloadOfHuggingFaceIntoAFolderHasItsDigests) {
  write_model(tree_);
  const auto note = [&](const std::string& file, const std::string& etag) {
    write_text(tree_ / ".cache/huggingface/download" / (file + ".metadata"),
               kCommit + "\n" + etag + "\n17.5\n");
  };
  note(kWeights, "W/\"" + MadeHub::sha256_of(weights_) + "\"");
  note("config.json", MadeHub::git_sha1_of(config_text_));
  write_text(tree_ / ".cache/huggingface/.gitignore", "*");
  expect_staged(1, 1, 0);
  source_.model->revision = std::string(40, 'd');
  expect_refused("is of revision " + kCommit, Errc::NotFound);
  source_.model->revision = kCommit;
  expect_staged(1, 1, 0);
  note("vocab.json", MadeHub::git_sha1_of("{}"));
  expect_refused("vocab.json is missing");
  fs::remove(tree_ / ".cache/huggingface/download/vocab.json.metadata");
  write_text(tree_ / ".cache/huggingface/download/x.1.incomplete", "half");
  expect_refused("x.1.incomplete is of a download that has not ended");
  source_.model->check = ModelCheck::None;
  ASSERT_OK(stage());
  source_.model->check = ModelCheck::Published;
  source_.model->include = {"*.json"};
  ASSERT_OK(stage());  // what is left out may be unfinished
  source_.model->include.clear();
  ASSERT_OK(open()->evict("set"));
  fs::remove(tree_ / ".cache/huggingface/download/x.1.incomplete");
  corrupt(tree_ / "config.json");
  expect_refused("config.json does not match");
}

TEST_F(ModelLayoutsTest, AModelOfModelScopeIsFoundWithoutItsOwnFiles) {
  source_.model->name = "org/tiny.v2";
  const fs::path model = tree_ / "hub/models/org/tiny___v2";
  write_model(model);
  for (const char* own : {".msc", ".mv", ".mdl"}) write_text(model / own, "x");
  fs::create_directory_symlink("/home/else/hub/models/org/tiny___v2", tree_ / "hub/models/org/tiny.v2");
  expect_staged(0, 0, 2);
  source_.path = model;
  expect_staged(0, 0, 2);
  write_text(model / "._____temp/model.safetensors", "half");
  expect_refused("is of a download that has not ended");
}

TEST_F(ModelLayoutsTest, ASnapshotOfANewerModelScopeIsOneRevision) {
  write_model(tree_ / "models/org--tiny/snapshots/master");
  expect_staged(0, 0, 2);
  write_model(tree_ / "models/org--tiny/snapshots/v2");
  expect_refused("several revisions: master, v2", Errc::Invalid);
  source_.model->revision = "v2";
  const auto staged = stage();
  ASSERT_OK(staged);
  EXPECT_EQ(staged->model->record.revision, "v2");
  write_text(tree_ / "models/org--tiny/snapshots/v2/model.safetensors.incomplete", "half");
  EXPECT_KIND(stage(), Errc::Mismatch);
}

class OllamaTest : public ModelLayoutsTest {
 protected:
  OllamaTest() {
    source_.model->name = "tiny:3b";
    write_text(blob(layer_), layer_);
    write_text(blob(config_), config_);
    write_text(tree_ / "blobs/sha256-other", "of another model");
    write_text(tree_ / "manifests/registry.ollama.ai/library/tiny/3b", manifest());
  }
  const std::string layer_ = "GGUF " + noise(2000, 1), config_ = R"({"model_format":"gguf"})";

  fs::path blob(const std::string& content) const {
    return tree_ / "blobs" / ("sha256-" + MadeHub::sha256_of(content));
  }
  std::string manifest() const {
    const auto one = [](const std::string& content) {
      return R"({"mediaType":"x","digest":"sha256:)" + MadeHub::sha256_of(content) + R"(","size":)" +
             std::to_string(content.size()) + "}";
    };
    return R"({"schemaVersion":2,"config":)" + one(config_) + R"(,"layers":[)" + one(layer_) + "," +
           one(layer_) + "]}";
  }
};

TEST_F(OllamaTest, AModelIsItsManifestAndTheBlobsInIt) {
  write_text(tree_ / "id_ed25519", "secret");
  const auto staged = stage();
  ASSERT_OK(staged);
  EXPECT_EQ(staged->model->record.sha256, 2u);
  EXPECT_EQ(files_in(staged->path), (std::set<std::string>{"manifests/registry.ollama.ai/library/tiny/3b",
                                                           "blobs/" + blob(layer_).filename().string(),
                                                           "blobs/" + blob(config_).filename().string()}));
  source_.model->name = "tiny:7b";
  EXPECT_KIND(stage(), Errc::NotFound);
}

TEST_F(OllamaTest, AMissingShortOrDamagedBlobIsRefused) {
  corrupt(blob(layer_));
  expect_refused("does not match its name");
  fs::resize_file(blob(layer_), 5);
  expect_refused("has 5 bytes");
  fs::rename(blob(layer_), blob(layer_).string() + "-partial");
  expect_refused("`ollama pull tiny:3b` downloads it");
  write_text(tree_ / "manifests/registry.ollama.ai/library/tiny/3b", "{}");
  expect_refused("no manifest of ollama");
}

// As git writes it: header, entries by path, a checksum that is not looked at.
std::string index_of(const std::vector<std::pair<std::string, std::string>>& files) {
  const auto number = [](std::uint32_t value, int bytes) {
    std::string text;
    for (int i = bytes - 1; i >= 0; --i) text += static_cast<char>(value >> (8 * i));
    return text;
  };
  std::string index = "DIRC" + number(2, 4) + number(static_cast<std::uint32_t>(files.size()), 4);
  for (const auto& [path, sha1] : files) {
    std::string entry(24, '\0');
    entry += number(0100644, 4) + std::string(12, '\0');
    for (std::size_t i = 0; i < sha1.size(); i += 2)
      entry += static_cast<char>(std::stoi(sha1.substr(i, 2), nullptr, 16));
    entry += number(static_cast<std::uint32_t>(path.size()), 2) + path;
    entry.resize((entry.size() + 8) / 8 * 8, '\0');
    index += entry;
  }
  return index + std::string(20, 's');
}

TEST_F(ModelLayoutsTest, ACloneHasTheDigestsOfItsIndexAndOfGitLfs) {
  write_model(tree_);
  const std::string oid = MadeHub::sha256_of(weights_);
  const std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:" + oid + "\nsize " +
                              std::to_string(weights_.size()) + "\n";
  write_text(tree_ / ".gitattributes", "*.safetensors filter=lfs diff=lfs merge=lfs -text\n");
  write_text(tree_ / ".git/index", index_of({{"config.json", MadeHub::git_sha1_of(config_text_)},
                                             {kWeights, MadeHub::git_sha1_of(pointer)}}));
  write_text(tree_ / ".git/config", "url = https://token@example");
  const fs::path object = tree_ / ".git/lfs/objects" / oid.substr(0, 2) / oid.substr(2, 2) / oid;
  source_.model->include = {"*.json", "*.safetensors"};
  expect_staged(0, 1, 1);  // `git lfs prune`
  write_text(object, weights_);
  expect_staged(1, 1, 0);
  corrupt(tree_ / kWeights);
  expect_refused(kWeights + " does not match its object of Git LFS");
  write_text(tree_ / kWeights, pointer);
  expect_refused(kWeights);
}

TEST(GitIndex, OfEachVersionIsRead) {
  const auto version2 =
      parse_git_index(index_of({{"a", std::string(40, '1')}, {"b/longer", std::string(40, '2')}}));
  ASSERT_OK(version2);
  EXPECT_THAT(*version2,
              ElementsAre(std::pair("a", std::string(40, '1')), std::pair("b/longer", std::string(40, '2'))));
  std::string version4 = index_of({});
  version4.replace(4, 8, std::string("\0\0\0\4\0\0\0\2", 8));
  version4.resize(12);
  for (const auto& [without, path] : {std::pair(0, "dir/one"), std::pair(3, "two")}) {
    std::string entry = index_of({{"x", std::string(40, '3')}}).substr(12, 62);
    version4 += entry + static_cast<char>(without) + path + '\0';
  }
  const auto all = parse_git_index(version4);
  ASSERT_OK(all);
  EXPECT_EQ(all->count("dir/one") + all->count("dir/two"), 2u);
  EXPECT_KIND(parse_git_index("DIRC"), Errc::Mismatch);
  EXPECT_KIND(parse_git_index(version4.substr(0, 70)), Errc::Mismatch);
}

}  // namespace
}  // namespace spark::staging::test
