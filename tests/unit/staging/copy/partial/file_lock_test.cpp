#include "staging/copy/partial/file_lock.hpp"

#include "tests/unit/staging/support.hpp"

namespace spark::staging {
namespace {

using namespace test;

class FileLock : public testing::Test {
 protected:
  TempFolder folder_;
  const std::filesystem::path file_ = folder_ / "lock";

  UniqueFd lock(Holders holders) {
    auto locked = lock_file(file_, holders);
    EXPECT_TRUE(locked) << locked.error().message();
    return locked ? std::move(*locked) : UniqueFd();
  }
};

TEST_F(FileLock, IsHeldByManyOrByOne) {
  UniqueFd one = lock(Holders::Many), other = lock(Holders::Many);
  EXPECT_TRUE(one && other);
  EXPECT_FALSE(lock(Holders::One));
  one.reset();
  other.reset();
  one = lock(Holders::One);
  EXPECT_TRUE(one);
  EXPECT_FALSE(lock(Holders::Many));
  EXPECT_FALSE(lock(Holders::One));
}

TEST_F(FileLock, IsNotHeldOnAFileThatWasDeletedAndMadeAgain) {
  const UniqueFd deleted = lock(Holders::One);
  std::filesystem::remove(file_);
  EXPECT_TRUE(lock(Holders::One)) << "it is another file";
}

TEST_F(FileLock, InAFolderThatIsGoneIsNone) {
  EXPECT_FALSE(*lock_file(folder_ / "gone/lock", Holders::One));
}

TEST_F(FileLock, OnWhatIsNoFileSaysSo) {
  std::filesystem::create_directory(file_);
  EXPECT_FALSE(lock_file(file_, Holders::One));
}

}  // namespace
}  // namespace spark::staging
