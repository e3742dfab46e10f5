#include "fleet/transport/key.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.hpp"
#include "tests/support/temp_folder.hpp"

using namespace spark;
using namespace spark::fleet;
using spark::test::TempFolder;

namespace {

TEST(Key, IsReadOnlyFromAPrivateFile) {
  const TempFolder folder;
  const std::string key = new_key().value();
  ASSERT_TRUE(write_file_atomically(folder / "key", key + "\n", 0600));
  EXPECT_EQ(read_key(folder / "key").value(), key);
  ::chmod((folder / "key").c_str(), 0644);
  EXPECT_EQ(read_key(folder / "key").error().kind, Errc::Refused);
  ASSERT_TRUE(write_file_atomically(folder / "key", "secret", 0600));
  EXPECT_EQ(read_key(folder / "key").error().kind, Errc::Invalid);
  EXPECT_EQ(read_key(folder / "none").error().kind, Errc::NotFound);
  EXPECT_NE(new_key().value(), key);
}

TEST(Key, OfAnotherUserIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  const TempFolder folder;
  ASSERT_TRUE(write_file_atomically(folder / "key", new_key().value(), 0600));
  ASSERT_EQ(::chown((folder / "key").c_str(), 1000, 0), 0);
  const auto key = read_key(folder / "key");
  ASSERT_FALSE(key);
  EXPECT_EQ(key.error().kind, Errc::Refused);
  EXPECT_NE(key.error().message().find("uid 1000"), std::string::npos);
}

TEST(KeyWatch, NoticesAnotherKeyInTheSameFileAndNoOtherChangeOfTheFile) {
  const TempFolder folder;
  const std::string key = new_key().value();
  const auto write = [&](const std::string& text) {
    ASSERT_TRUE(write_file_atomically(folder / "key", text, 0600));
  };
  write(key + "\n");
  KeyWatch watch(folder / "key", key);
  EXPECT_FALSE(watch.is_replaced());
  write(key);
  EXPECT_FALSE(watch.is_replaced());
  write(new_key().value());
  EXPECT_TRUE(watch.is_replaced());
}

TEST(KeyWatch, AFileThatHasNoKeyForAMomentIsBeingWritten) {
  const TempFolder folder;
  const std::string key = new_key().value();
  KeyWatch watch(folder / "key", key);
  EXPECT_FALSE(watch.is_replaced());
  ASSERT_TRUE(write_file_atomically(folder / "key", key, 0600));
  EXPECT_FALSE(watch.is_replaced());
  ASSERT_TRUE(write_file_atomically(folder / "key", key.substr(1), 0600));
  EXPECT_FALSE(watch.is_replaced());
  EXPECT_TRUE(watch.is_replaced()) << "the key was taken away";
}

}  // namespace
