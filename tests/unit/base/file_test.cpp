#include "base/file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "tests/unit/base/temporary_folder.hpp"

namespace spark {
namespace {

bool is_open(int fd) {
  return ::fcntl(fd, F_GETFD) >= 0;
}

std::size_t entries_in(const std::filesystem::path& folder) {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()));
}

TEST(UniqueFd, ClosesOnceAndMoves) {
  const int number = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  {
    UniqueFd first(number);
    UniqueFd second(std::move(first));
    EXPECT_EQ(second.get(), number);
    first = std::move(second);
    EXPECT_EQ(first.get(), number);
    EXPECT_TRUE(is_open(number));
  }
  EXPECT_FALSE(is_open(number));
}

TEST(UniqueFd, ReleasePassesOwnershipToTheCaller) {
  const int number = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  {
    UniqueFd owner(number);
    EXPECT_EQ(owner.release(), number);
    EXPECT_FALSE(owner);
  }
  EXPECT_TRUE(is_open(number));
  ::close(number);
}

TEST(ReadFile, GivesEveryByte) {
  const TemporaryFolder folder;
  const std::string content = std::string("a\0b\n", 4) + std::string(100'000, 'x');
  std::ofstream(folder / "f") << content;
  EXPECT_EQ(read_file(folder / "f").value(), content);
}

TEST(ReadFile, AFileLargerThanTheLimitIsRefused) {
  const TemporaryFolder folder;
  std::ofstream(folder / "f") << "12345";
  EXPECT_TRUE(read_file(folder / "f", 5));
  const auto refused = read_file(folder / "f", 4);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Errc::Invalid);
}

TEST(ReadFile, ErrorsNameTheFileSafely) {
  const auto missing = read_file("/nonexistent/a\nb");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, Errc::NotFound);
  EXPECT_NE(missing.error().what.find("/nonexistent/a\\x0ab"), std::string::npos);
  EXPECT_FALSE(read_file("/"));
}

TEST(ReadLineFile, IsTrimmed) {
  const TemporaryFolder folder;
  std::ofstream(folder / "state") << "live\n";
  EXPECT_EQ(read_line_file(folder / "state").value(), "live");
}

TEST(WriteFileAtomically, ReplacesTheContentAndLeavesNoTemporaryFile) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_file_atomically(folder / "f", "old"));
  ASSERT_TRUE(write_file_atomically(folder / "f", "new", 0600));
  EXPECT_EQ(read_file(folder / "f").value(), "new");
  EXPECT_EQ(entries_in(folder.path()), 1u);
  struct stat status {};
  ASSERT_EQ(::stat((folder / "f").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
}

TEST(WriteFileAtomically, TheModeIsSetRegardlessOfTheUmask) {
  const TemporaryFolder folder;
  const mode_t before = ::umask(077);
  ASSERT_TRUE(write_file_atomically(folder / "f", "new", 0644));
  ::umask(before);
  struct stat status {};
  ASSERT_EQ(::stat((folder / "f").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0644u);
}

TEST(WriteFileAtomically, AFileThatAnotherUserPutThereBeforeIsNotWrittenTo) {
  const TemporaryFolder folder;
  const auto temporary = folder / ("f." + std::to_string(::getpid()) + ".new");
  std::ofstream(temporary) << "bobs";
  std::filesystem::create_hard_link(temporary, folder / "kept");
  ASSERT_TRUE(write_file_atomically(folder / "f", "key"));
  EXPECT_EQ(read_file(folder / "kept").value(), "bobs");
  EXPECT_EQ(read_file(folder / "f").value(), "key");
}

TEST(FreshUuid, DiffersOnEachCall) {
  const std::string uuid = fresh_uuid({}).value();
  EXPECT_EQ(uuid.size(), 36u);
  EXPECT_NE(uuid, fresh_uuid({}).value());
}

TEST(WriteFileAtomically, AReaderWithTheOldFileOpenStillReadsIt) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_file_atomically(folder / "f", "old"));
  std::ifstream reader(folder / "f");
  ASSERT_TRUE(write_file_atomically(folder / "f", "new"));
  std::string seen;
  reader >> seen;
  EXPECT_EQ(seen, "old");
}

TEST(WriteFileAtomically, AFailureKeepsTheOldContentAndLeavesNoTemporaryFile) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "taken");
  std::ofstream(folder / "taken" / "inside") << "x";
  const auto refused = write_file_atomically(folder / "taken", "new");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what.find("taken"), std::string::npos);
  EXPECT_EQ(entries_in(folder.path()), 1u);
  EXPECT_EQ(write_file_atomically(folder / "no/such/folder", "x").error().kind, Errc::NotFound);
}

TEST(AbsolutePath, IsNormalizedAndFailsInADeletedFolder) {
  const UniqueFd before(::open(".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  {
    const TemporaryFolder folder;
    ASSERT_EQ(::chdir(folder.path().c_str()), 0);
    EXPECT_EQ(absolute_path("a/../b").value(), std::filesystem::current_path() / "b");
  }
  const auto path = absolute_path("b");
  EXPECT_EQ(absolute_path("/whole/path").value(), "/whole/path");
  ASSERT_EQ(::fchdir(before.get()), 0);
  ASSERT_FALSE(path);
  EXPECT_EQ(path.error().kind, Errc::NotFound);
  EXPECT_NE(path.error().what.find("current folder"), std::string::npos) << path.error().what;
}

TEST(SystemRoot, PathsAreBelowIt) {
  const SystemRoot test{"/tree"};
  EXPECT_EQ(test / "sys/class/nvme", "/tree/sys/class/nvme");
  EXPECT_EQ(SystemRoot() / "etc/nvme/hostnqn", "/etc/nvme/hostnqn");
}

}  // namespace
}  // namespace spark
