#include "staging/outputs/published_copies.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "base/file.hpp"
#include "staging/checkpoints/checkpoint_name.hpp"
#include "staging/copy/copy_with.hpp"
#include "staging/files/times.hpp"
#include "staging/manifest/manifest_reader.hpp"
#include "staging/outputs/pointer.hpp"
#include "tests/support/skip.hpp"
#include "tests/unit/staging/outputs/published_copies_fixture.hpp"

namespace spark::staging {
namespace {

using namespace test;

TEST_F(PublishedCopies, AreFoldersWithAMatchingManifestNewestFirst) {
  send("step-1");
  send("step-2");
  std::filesystem::create_directories(volume_ / "by-hand");
  std::filesystem::create_directories(volume_ / ".step-3.spark-partial/data");
  EXPECT_EQ(names(), (Names{"step-2", "step-1"}));
}

// Another host may have the volume by then, and does not send it again.
TEST_F(PublishedCopies, AreListedIfTheirPublishingWasInterruptedAfterTheRename) {
  send("step-1");
  send("step-2");
  send_until("flush", "step-2");  // again
  EXPECT_EQ(names(), (Names{"step-2", "step-1"}));
  ASSERT_OK(verify_published(volume_ / "step-2", {}, kQuiet, stop_));
  const auto tree = open_tree(volume_ / "step-2");
  ASSERT_OK(tree);
  EXPECT_TRUE(published_hash(*tree, stop_));
  send_until("rename", "step-3");
  EXPECT_EQ(names(), (Names{"step-3", "step-2", "step-1"}));
  send_until("manifest", "step-4");
  EXPECT_EQ(names(), (Names{"step-3", "step-2", "step-1"})) << "step-4 has no name yet";
}

// In a folder where all may write, its copy would delete theirs, and their next job would load it.
TEST_F(PublishedCopies, OfAnotherUserCountForNothing) {
  if (::geteuid() != 0) SPARK_SKIP("only root gives files to another user");
  for (const char* name : {"step-1", "step-2", "step-9"}) send(name);
  ASSERT_EQ(::chown((volume_ / ".step-9.spark-manifest").c_str(), 4903, 4903), 0);
  NotListed others;
  ASSERT_OK(published_copies(volume_, &others));
  EXPECT_EQ(names(), (Names{"step-2", "step-1"}));
  EXPECT_EQ(others.unknown, Names{"step-9"});
  const auto removed = remove_older_copies(volume_, {.count = 2});
  ASSERT_OK(removed);
  EXPECT_TRUE(removed->empty());
  EXPECT_KIND(copy(folder_ / "source/step-9", volume_ / "step-9", {}, kQuiet, stop_), Errc::Refused);
  ASSERT_OK(verify_published(volume_ / "step-9", {}, kQuiet, stop_));
  ASSERT_EQ(::chown(volume_.c_str(), 4903, 4903), 0) << "who owns the folder may do anything there";
  EXPECT_EQ(names(), (Names{"step-9", "step-2", "step-1"}));
}

// By a person's `touch`, a file added there, or an NFS server that recalls a delegation.
TEST_F(PublishedCopies, KeepTheirTimeAndOrderIfTheTimeOfTheirFolderChanges) {
  send("step-1");
  send("step-2");
  const auto before = published_copies(volume_);
  ASSERT_OK(before);
  std::filesystem::last_write_time(volume_ / "step-1", std::filesystem::file_time_type::clock::now());
  EXPECT_EQ(names(), (Names{"step-2", "step-1"}));
  EXPECT_EQ(published_copies(volume_)->back().mtime_ns, before->back().mtime_ns);
}

TEST_F(PublishedCopies, AlsoHaveTheTimeOfTheirSourceIfTheyAreOneFile) {
  std::filesystem::create_directories(volume_);
  write_text(folder_ / "step-1.ckpt", noise(1'000, 1));
  struct stat source {};
  ASSERT_EQ(::lstat((folder_ / "step-1.ckpt").c_str(), &source), 0);
  ASSERT_OK(copy(folder_ / "step-1.ckpt", volume_ / "step-1.ckpt", {}, kQuiet, stop_));
  std::filesystem::last_write_time(volume_ / "step-1.ckpt",
                                   std::filesystem::file_time_type::clock::now() + std::chrono::seconds(9));
  const auto copies = published_copies(volume_);
  ASSERT_OK(copies);
  ASSERT_EQ(copies->size(), 1U);
  EXPECT_EQ(copies->front().mtime_ns, nanoseconds(source.st_mtim));
}

TEST_F(PublishedCopies, AManuallyReplacedFolderIsNotAPublishedCopy) {
  send("step-1");
  std::filesystem::rename(volume_ / "step-1", volume_ / "aside");
  std::filesystem::create_directories(volume_ / "step-1");
  EXPECT_EQ(names(), Names{});
  ASSERT_OK(remove_older_copies(volume_, {1}));
  EXPECT_TRUE(std::filesystem::exists(volume_ / "step-1"));
}

// No answer is not "absent": `latest` would give an older checkpoint, or say that there is none.
TEST_F(PublishedCopies, AreNotListedWhileAManifestCannotBeRead) {
  send("step-1");
  send("step-2");
  const auto manifest = volume_ / ".step-2.spark-manifest";
  const auto text = read_file(manifest);
  ASSERT_OK(text);
  write_text(manifest, text->substr(0, text->size() / 2));
  const auto cut = published_copies(volume_);
  ASSERT_FALSE(cut);
  EXPECT_THAT(cut.error().message(),
              testing::HasSubstr(".step-2.spark-manifest: the manifest is not sealed"));
  std::filesystem::remove(manifest);
  std::filesystem::create_directory(manifest);
  const auto unreadable = published_copies(volume_);
  ASSERT_FALSE(unreadable);
  EXPECT_THAT(unreadable.error().message(), testing::HasSubstr(".step-2.spark-manifest"));
  NotListed hidden;
  const auto others = published_checkpoints(volume_, Completeness(), &hidden);
  ASSERT_OK(others);
  EXPECT_EQ(others->size(), 1u);
  EXPECT_EQ(hidden.unreadable.front().name, "step-2");
  send("step-0");
  ASSERT_OK(remove_older_copies(volume_, {1}));
  EXPECT_TRUE(std::filesystem::exists(volume_ / "step-1")) << "it is the highest that can be read";
  EXPECT_TRUE(std::filesystem::exists(volume_ / "step-2"));
  EXPECT_FALSE(std::filesystem::exists(volume_ / "step-0"));
}

TEST_F(PublishedCopies, HaveAManifestThatIsReadByThoseWhoReadTheCopy) {
  const auto mode_of_manifest = [&](const std::string& name, unsigned mode) {
    write_text(folder_ / name, "x");
    EXPECT_EQ(::chmod((folder_ / name).c_str(), mode), 0);
    EXPECT_TRUE(copy(folder_ / name, volume_ / name, {}, kQuiet, stop_));
    struct stat info {};
    EXPECT_EQ(::lstat((volume_ / ("." + name + ".spark-manifest")).c_str(), &info), 0);
    return info.st_mode & 07777;
  };
  std::filesystem::create_directories(volume_);
  const mode_t before = ::umask(0077);
  EXPECT_EQ(mode_of_manifest("to-all", 0775), 0644u);
  EXPECT_EQ(mode_of_manifest("to-the-group", 0640), 0640u);
  EXPECT_EQ(mode_of_manifest("to-its-owner", 0400), 0600u);
  ::umask(before);
}

// A person may send an export into the folder of an output.
TEST_F(PublishedCopies, OfAnOutputAreItsCheckpointsAlone) {
  send("export-9");
  send("checkpoint-1");
  send("checkpoint-2");
  const auto of_output = published_checkpoints(volume_, Completeness{Completeness::Rule::HuggingFace});
  ASSERT_OK(of_output);
  EXPECT_EQ(of_output->size(), 2u);
  EXPECT_EQ(names().front(), "export-9") << "of no output";
  const auto removed = remove_older_copies(volume_, {.count = 1, .rule = Completeness()});
  ASSERT_OK(removed);
  EXPECT_EQ(names(), (Names{"export-9", "checkpoint-2"}));
}

// Lightning saves last.ckpt at each epoch, and one with a step only if it is one of the best.
TEST_F(PublishedCopies, AnAliasIsListedIfItIsNewerThanTheHighestStep) {
  for (const char* name : {"step-2", "last"}) send(name);
  EXPECT_EQ(published_checkpoints(volume_, Completeness())->front().name, "last");
  send("step-3");
  EXPECT_EQ(published_checkpoints(volume_, Completeness())->size(), 2u) << "step-3 and step-2";
}

// A file that someone adds to an old checkpoint changes the time of its folder alone.
TEST_F(PublishedCopies, WithoutAStepTheTimeOfTheProofCounts) {
  for (const char* name : {"beta", "alpha"}) send(name);
  const Completeness completeness{Completeness::Rule::Marker, "shard"};
  write_text(folder_ / "source/beta/README.md", "x");
  ASSERT_OK(copy(folder_ / "source/beta", volume_ / "beta", {}, kQuiet, stop_));
  EXPECT_EQ(names().front(), "beta") << "by the time of the folder";
  EXPECT_EQ(published_checkpoints(volume_, completeness)->front().name, "alpha");
}

TEST_F(PublishedCopies, ACheckpointWithoutAManifestIsNotListedButKnown) {
  std::filesystem::create_directories(volume_ / "step-9");
  std::filesystem::create_directories(volume_ / "logs");
  std::filesystem::create_directories(volume_ / "lost+found");
  std::filesystem::create_directory_symlink("step-8", volume_ / "latest");  // of a checkpoint that is deleted
  NotListed others;
  EXPECT_TRUE(published_checkpoints(volume_, Completeness(), &others)->empty());
  EXPECT_EQ(others.unknown, Names{"step-9"});
  NotListed of_dcp;
  write_text(volume_ / "base/.metadata", "a person's");
  EXPECT_TRUE(published_checkpoints(volume_, Completeness{Completeness::Rule::Dcp}, &of_dcp)->empty());
  EXPECT_EQ(of_dcp.unknown, Names{"base"}) << "the proof tells";
}

TEST_F(PublishedCopies, VerifyFindsOtherContentOfTheSameSizeAndTime) {
  send("step-1");
  ASSERT_OK(verify_published(volume_ / "step-1", {}, kQuiet, stop_));
  const auto time = std::filesystem::last_write_time(volume_ / "step-1/shard");
  write_text(volume_ / "step-1/shard", noise(100'000, 99));
  std::filesystem::last_write_time(volume_ / "step-1/shard", time);
  EXPECT_KIND(verify_published(volume_ / "step-1", {}, kQuiet, stop_), Errc::Mismatch);
}

TEST_F(PublishedCopies, VerifyOfAnUnpublishedFolderIsNotFound) {
  std::filesystem::create_directories(volume_ / "by-hand");
  EXPECT_KIND(verify_published(volume_ / "by-hand", {}, kQuiet, stop_), Errc::NotFound);
}

// Many kernels' NFS clients report no birth time; the device itself has one.
TEST_F(PublishedCopies, ACopyPublishedThroughNfsIsVerifiedOnItsDevice) {
  send("step-1");
  const auto file = volume_ / ".step-1.spark-manifest";
  auto reader = ManifestReader::open(file);
  ASSERT_OK(reader);
  Manifest manifest;
  static_cast<ManifestHeader&>(manifest) = reader->header();
  while (auto entry = reader->next()) manifest.entries.push_back(std::move(*entry));
  manifest.root.birth_ns = 0;
  ASSERT_OK(write_manifest(file, manifest));
  ASSERT_OK(verify_published(volume_ / "step-1", {}, kQuiet, stop_));
  ++manifest.root.inode;
  ASSERT_OK(write_manifest(file, manifest));
  EXPECT_KIND(verify_published(volume_ / "step-1", {}, kQuiet, stop_), Errc::NotFound);
}

TEST_F(PublishedCopies, TheirHashIsKnownUntilTheyAreChanged) {
  send("step-1");
  const auto tree = open_tree(volume_ / "step-1");
  ASSERT_OK(tree);
  const auto verified = verify_published(volume_ / "step-1", {}, kQuiet, stop_);
  ASSERT_OK(verified);
  EXPECT_EQ(published_hash(*tree, stop_), verified->hash);
  std::filesystem::last_write_time(volume_ / "step-1/shard", std::filesystem::file_time_type::clock::now());
  EXPECT_EQ(published_hash(*tree, stop_), verified->hash) << "an NFS server changed its time";
  write_text(volume_ / "step-1/more", "x");
  EXPECT_EQ(published_hash(*tree, stop_), std::nullopt);
}

// Times as changed by an NFS server.
TEST_F(PublishedCopies, VerifyComparesContentAndNotTheTimesOfFiles) {
  send("step-1");
  const auto shard = volume_ / "step-1/shard";
  std::filesystem::last_write_time(shard, std::filesystem::file_time_type::clock::now());
  ASSERT_OK(verify_published(volume_ / "step-1", {}, kQuiet, stop_));
  write_text(shard, noise(100'000, 99));
  EXPECT_EQ(verify_published(volume_ / "step-1", {}, kQuiet, stop_).error().kind, Errc::Mismatch);
}

TEST_F(PublishedCopies, OfAnOutputCountOnlyUnderTheNamesThatTheyHadHere) {
  send("step-1");
  send("model");
  send("step-7-tmp");
  ASSERT_OK(copy(folder_ / "source/model", volume_ / "step-99999", {}, kQuiet, stop_));
  const auto copies = published_checkpoints(volume_, Completeness());
  ASSERT_OK(copies);
  ASSERT_EQ(copies->size(), 2u);
  EXPECT_EQ(copies->front().name, "step-1") << "a person named the other one so";
}

// Lightning replaces it at each save.
TEST_F(PublishedCopies, ThePointerStaysIfTheManifestOfTheLastOneCannotBeRead) {
  const Completeness rename;
  for (const char* name : {"last", "step-1"}) send(name);
  ASSERT_OK(point_at_highest(volume_, rename));
  ASSERT_EQ(pointer_in(volume_, rename), "step-1");
  send("last");
  ASSERT_OK(point_at_highest(volume_, rename));
  ASSERT_EQ(pointer_in(volume_, rename), "last");
  write_text(volume_ / ".last.spark-manifest", "cut");
  EXPECT_KIND(point_at_highest(volume_, rename), Errc::Unavailable);
  EXPECT_EQ(pointer_in(volume_, rename), "last");
}

// A person may have deleted it, or copied the job's own over it.
TEST_F(PublishedCopies, ThePointerIsWrongIfTheFileOfMegatronNamesAnotherIteration) {
  const Completeness dcp{Completeness::Rule::Dcp};
  send("iter_0000200");
  ASSERT_OK(point_at_highest(volume_, dcp));
  ASSERT_EQ(pointer_in(volume_, dcp), "iter_0000200");
  write_text(volume_ / kMegatronTracker, "100\n");
  EXPECT_EQ(pointer_in(volume_, dcp), "");
  ASSERT_OK(point_at_highest(volume_, dcp));
  EXPECT_EQ(pointer_in(volume_, dcp), "iter_0000200");
  EXPECT_EQ(read_file(volume_ / kMegatronTracker).value(), "200");
}

TEST_F(PublishedCopies, LatestLeadsToTheHighestCheckpointAndNeverReplacesTheJobsOwn) {
  const Completeness dcp{Completeness::Rule::Dcp}, deepspeed{Completeness::Rule::DeepSpeed};
  send("step-1");
  write_text(volume_ / ".latest.spark-new", "of a worker of an earlier version that was killed");
  std::filesystem::create_symlink("step-0", volume_ / ".latest.0123abcd.spark-new");
  ASSERT_OK(point_at_highest(volume_, dcp));
  EXPECT_EQ(pointer_in(volume_, dcp), "step-1");
  send("step-2");
  ASSERT_OK(point_at_highest(volume_, dcp));
  EXPECT_EQ(std::filesystem::read_symlink(volume_ / "latest"), "step-2");
  for (const auto& entry : std::filesystem::directory_iterator(volume_))
    EXPECT_FALSE(entry.path().native().ends_with(".spark-new")) << entry.path();
  EXPECT_EQ(point_at_highest(volume_, deepspeed).error().kind, Errc::Refused);
  std::filesystem::remove(volume_ / "latest");
  ASSERT_OK(point_at_highest(volume_, deepspeed));
  EXPECT_EQ(read_file(volume_ / "latest").value(), "step-2");
  EXPECT_EQ(pointer_in(volume_, deepspeed), "step-2");
  EXPECT_EQ(point_at_highest(volume_, dcp).error().kind, Errc::Refused);
}

}  // namespace
}  // namespace spark::staging
