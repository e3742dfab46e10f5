#include "staging/files/source_trouble.hpp"

#include <unistd.h>

#include <cerrno>

#include "tests/unit/staging/support.hpp"

namespace spark::staging {
namespace {

Tree data() {
  Tree tree;
  tree.folder_path = "/data";
  return tree;
}

Error error_of(int number, const char* what) {
  return Result<>(fail_errno(number, what)).error();
}

// A substring was looked for: with the source /data, every error of the drive below /srv/data was the
// source's.
TEST(SourceTrouble, OfTheCachesDriveIsNotTheSources) {
  const Error read = with_source_trouble(error_of(EIO, "reading /data/f"), data());
  EXPECT_EQ(read.kind, Errc::Unavailable);
  for (const char* what : {"writing /cache/data/f", "writing /data2/f", "flushing /srv/data"}) {
    const Error wrote = with_source_trouble(error_of(EIO, what), data());
    EXPECT_EQ(wrote.kind, Errc::Failed) << what;
    EXPECT_EQ(wrote.hint, "") << what;
  }
}

TEST(SourceTrouble, AFileThatWentAwayIsAChangeAndNoMissingDataset) {
  EXPECT_EQ(with_source_trouble(error_of(ENOENT, "opening /data/f"), data()).kind, Errc::Mismatch);
  EXPECT_EQ(with_change(error_of(ENOENT, "opening /data/f"), data()).kind, Errc::Mismatch);
  EXPECT_EQ(with_change(error_of(ENOENT, "opening /cache/f"), data()).kind, Errc::NotFound);
}

TEST(SourceTrouble, ADenialSaysWhoseRightsCount) {
  const Error denied = with_source_trouble(error_of(EACCES, "opening /data/private"), data());
  EXPECT_EQ(denied.kind, Errc::Denied);
  EXPECT_EQ(denied.hint.find("root_squash") != std::string::npos, ::geteuid() == 0);
  EXPECT_EQ(with_source_trouble(error_of(EACCES, "making /cache/f"), data()).hint, "");
}

}  // namespace
}  // namespace spark::staging
