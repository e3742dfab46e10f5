#include "daemon/outputs/watch/whole_checkpoint.hpp"

#include <gtest/gtest.h>

namespace spark::outputs {
namespace {

staging::Checkpoint checkpoint(std::vector<std::int64_t> files, std::int64_t proof_ns = 0) {
  staging::Checkpoint one{.name = "step-1", .inode = 7, .birth_ns = 5};
  one.file_count = files.size();
  one.files = std::move(files);
  one.proof_ns = proof_ns;
  return one;
}

TEST(WholeCheckpoint, HasNotLostWhatWasAddedAfterItsProof) {
  WholeCheckpoint whole = WholeCheckpoint::of(checkpoint({1, 2}, 9));
  whole.grow(checkpoint({1, 2, 3}, 9));
  EXPECT_FALSE(whole.has_lost_files(checkpoint({1, 2}, 9)));
  EXPECT_TRUE(whole.has_lost_files(checkpoint({2, 3}, 9)));
}

TEST(WholeCheckpoint, WithoutAProofHasWhatCameLast) {
  WholeCheckpoint whole = WholeCheckpoint::of(checkpoint({1}));
  whole.grow(checkpoint({1, 2}));
  EXPECT_TRUE(whole.has_lost_files(checkpoint({1})));
}

TEST(WholeCheckpoint, OfTooManyFilesCountsThem) {
  staging::Checkpoint many = checkpoint({});
  many.file_count = 5000;
  const WholeCheckpoint whole = WholeCheckpoint::of(many);
  EXPECT_FALSE(whole.has_lost_files(many));
  --many.file_count;
  EXPECT_TRUE(whole.has_lost_files(many));
}

// A file system may give the number of a deleted folder to the next one.
TEST(WholeCheckpoint, IsNotOfAFolderThatWasBornLaterOrHasAnotherProof) {
  const WholeCheckpoint whole = WholeCheckpoint::of(checkpoint({1, 2}, 9));
  auto now = checkpoint({1}, 9);
  EXPECT_TRUE(whole.is_of(now));
  now.birth_ns = 6;
  EXPECT_FALSE(whole.is_of(now));
  now.birth_ns = 0;
  EXPECT_TRUE(whole.is_of(now)) << "a file system without such times";
  EXPECT_FALSE(whole.is_of(checkpoint({1}, 10)));
}

TEST(WholeCheckpoint, IsTheSameAfterARestart) {
  const WholeCheckpoint whole = WholeCheckpoint::of(checkpoint({-1, 2}, 9));
  EXPECT_EQ(WholeCheckpoint::from_json(to_message(whole)), whole);
  const auto earlier = WholeCheckpoint::from_json(json::array{7, 3, 9});
  EXPECT_FALSE(earlier.has_lost_files(checkpoint({1}, 9))) << "a record of an earlier version";
}

}  // namespace
}  // namespace spark::outputs
