// What is read of a model, from where, and how often.
#include "tests/unit/staging/cache/model_fixture.hpp"

namespace spark::staging::test {
namespace {

// By the bytes that this process has read.
std::uint64_t bytes_read() {
  const std::string text = read_text("/proc/self/io");
  return std::strtoull(text.c_str() + text.find("rchar: ") + 7, nullptr, 10);
}

constexpr std::size_t kLarge = 40'000'000;

TEST_F(ModelInCacheTest, AVerificationReadsEachFileOnce) {
  hub_.files["weights.dat"] = noise(kLarge, 1);
  hub_.make(kName, HubLayout::Old);
  const auto staged = stage();
  ASSERT_OK(staged);
  const auto cache = open();
  options_.sha256 = true;
  const auto before = bytes_read();
  const auto verified = cache->verify("set", options_, kQuiet, stop_);
  ASSERT_OK(verified);
  EXPECT_GT(bytes_read() - before, kLarge);
  EXPECT_LT(bytes_read() - before, kLarge * 5 / 4);
  EXPECT_EQ(verified->sha256_files, 3u);
  EXPECT_EQ(verified->files, 6u);
  corrupt(staged->path / "weights.dat");
  const auto damaged = cache->verify("set", options_, kQuiet, stop_);
  EXPECT_KIND(damaged, Errc::Mismatch);
  EXPECT_THAT(damaged.error().message(), HasSubstr("weights.dat has other content"));
}

// Programs add such files when they look for one that the model does not have.
TEST_F(ModelInCacheTest, FilesThatAreUnchangedAreNotReadAgain) {
  hub_.files["weights.dat"] = noise(kLarge, 1);
  hub_.make(kName, HubLayout::Old);
  const auto first = stage();
  ASSERT_OK(first);
  write_text(hub_.model(kName) / ".no_exist" / hub_.commit / "added_tokens.json", "");
  const auto before = bytes_read();
  const auto staged = stage();
  ASSERT_OK(staged);
  EXPECT_NE(staged->generation, first->generation);
  EXPECT_LT(bytes_read() - before, kLarge / 4);
  EXPECT_EQ(staged->model->record.pin, first->model->record.pin);
  EXPECT_FALSE(staged->model->record.pin.empty());
}

// What differs from the manifest is damage of the copy, and the publisher is not blamed.
TEST_F(ModelInCacheTest, AnInterruptedCopyThatWasDamagedIsCopiedAgain) {
  hub_.make(kName, HubLayout::Old);
  source_.model->expect = "sha256:" + std::string(64, '0');
  expect_refused("'expect'");
  corrupt(config_.path / ".partial" / folder_name("set") / "data/models--org--tiny/snapshots" / hub_.commit /
          kShard);
  expect_refused("has other content");
  source_.model->expect.clear();
  ASSERT_OK(stage());
}

// As where one model is on another drive.
TEST_F(ModelInCacheTest, TheModelsFolderMayBeALinkToOneOfItsName) {
  MadeHub other(folder_ / "other-drive");
  other.make(kName, HubLayout::Old);
  hub_.make("org/b", HubLayout::Old);
  fs::create_directory_symlink(other.model(kName), hub_.model(kName));
  const auto staged = stage();
  ASSERT_OK(staged);
  EXPECT_EQ(staged->path, copy_of(*staged) / "models--org--tiny/snapshots" / hub_.commit);
  source_.path = hub_.model(kName);
  const auto again = stage();
  ASSERT_OK(again);
  EXPECT_EQ(again->served_from, ServedFrom::Cache);
  source_.dataset = "renamed";
  fs::rename(other.model(kName), folder_ / "other-drive/tiny");
  fs::remove(hub_.model(kName));
  fs::create_directory_symlink(folder_ / "other-drive/tiny", hub_.model(kName));
  source_.path = hub_.folder();
  EXPECT_THAT(stage().error().message(), HasSubstr("is a symlink to no folder of that name"));
}

TEST_F(ModelInCacheTest, AnotherPinDoesNotThrowAwayWhatWasCopied) {
  hub_.make(kName, HubLayout::Old);
  source_.model->expect = "sha256:" + std::string(64, '0');
  expect_refused("'expect'");
  source_.model->expect.clear();
  const auto staged = stage();
  ASSERT_OK(staged);
  EXPECT_EQ(staged->report.resumed_bytes, staged->report.bytes);
}

TEST_F(ModelInCacheTest, TheModelsFolderMayBeBesideTheCache) {
  hub_.make(kName, HubLayout::Old);
  source_.path = hub_.model(kName);
  config_.path = hub_.folder() / "cache";
  ASSERT_OK(stage());
  source_.path = hub_.folder();
  EXPECT_KIND(stage(), Errc::Invalid);
}

}  // namespace
}  // namespace spark::staging::test
