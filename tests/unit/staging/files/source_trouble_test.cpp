#include "staging/files/source_trouble.hpp"

#include <unistd.h>

#include <cerrno>

#include "staging/files/tree.hpp"
#include "tests/unit/staging/support.hpp"

namespace spark::staging {
namespace {

enum class Of { Source, Copy };

Error error_of(int number, Of side) {
  Tree tree;
  tree.folder_path = "/data";
  tree.is_source = side == Of::Source;
  return tl::unexpected<Error>(tree.failed(number, "reading", "f")).value();
}

// The text was searched for the source's path: with the source /data, every error of the cache's drive below
// /srv/data was the source's.
TEST(SourceTrouble, OfTheCachesDriveIsNotTheSources) {
  const Error read = with_source_trouble(error_of(EIO, Of::Source));
  EXPECT_EQ(read.kind, Errc::Unavailable);
  EXPECT_EQ(read.what, "reading /data/f: Input/output error");
  const Error wrote = with_source_trouble(error_of(EIO, Of::Copy));
  EXPECT_EQ(wrote.kind, Errc::Failed);
  EXPECT_EQ(wrote.hint, "");
}

TEST(SourceTrouble, AFileThatWentAwayIsAChangeAndNoMissingDataset) {
  EXPECT_EQ(with_source_trouble(error_of(ENOENT, Of::Source)).kind, Errc::Mismatch);
  EXPECT_EQ(with_change(error_of(ENOENT, Of::Source)).kind, Errc::Mismatch);
  EXPECT_EQ(with_change(error_of(ENOENT, Of::Copy)).kind, Errc::NotFound);
}

TEST(SourceTrouble, ADenialSaysWhoseRightsCount) {
  const Error denied = with_source_trouble(error_of(EACCES, Of::Source));
  EXPECT_EQ(denied.kind, Errc::Denied);
  EXPECT_EQ(denied.hint.find("root_squash") != std::string::npos, ::geteuid() == 0);
  EXPECT_EQ(with_source_trouble(error_of(EACCES, Of::Copy)).hint, "");
}

}  // namespace
}  // namespace spark::staging
