// A view of a copy: small files, those of them with attributes, and large files do not wait for each other.
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <mutex>

#include "tests/support/thread_limit.hpp"
#include "tests/unit/staging/view/view_copy_fixture.hpp"

namespace spark::staging::test {
namespace {

using Outcome = ViewRead::Outcome;

class ViewBesideTest : public ViewCopyTest {
 protected:
  // From a read of another file, which goes on once the file is here. False: it did not come.
  bool comes(std::string_view path, bool is_asked_for) {
    const ViewRange range{find(*tree_, path), 0, 1};
    for (int i = 0; i < 10'000; ++i) {
      if (reader_->look(range) == Outcome::Here) return true;
      if (is_asked_for) reader_->want(range, *map_);
      usleep(1000);
    }
    return false;
  }
};

TEST_F(ViewBesideTest, ASmallFileWithAttributesDoesNotWaitForALargeOne) {
  write_text(source_ / "labels", "x");
  ASSERT_EQ(::setxattr((source_ / "labels").c_str(), "user.a", "b", 1, 0), 0);
  for (unsigned i = 1000; i < 1100; ++i) write_text(source_ / std::to_string(i), std::to_string(i));
  write_text(source_ / "large", noise(20 * kMiB, 1));
  for (const unsigned threads : {1, 2}) {
    for (const bool is_asked_for : {true, false}) {
      options_.threads = threads;
      options_.depth = 1;
      bool came = false;
      hooks_.before_read = [&](const std::string& path, Bytes offset) {
        if (path == "large" && offset == 0) came = comes("labels", is_asked_for);
      };
      ASSERT_OK(copy_now());
      EXPECT_TRUE(came) << threads << " threads, asked for: " << is_asked_for;
      EXPECT_EQ(whole("labels"), "x");
      std::filesystem::remove_all(copy_);
      std::filesystem::remove(folder_ / ".copy.spark-manifest");
      ViewMap::remove(place_);
    }
  }
}

TEST_F(ViewBesideTest, ASmallFileWithAttributesDoesNotWaitForTheOtherSmallOnes) {
  options_.threads = options_.depth = 1;
  for (unsigned i = 1000; i < 1300; ++i) write_text(source_ / std::to_string(i), std::to_string(i));
  ASSERT_EQ(::setxattr((source_ / "1001").c_str(), "user.a", "b", 1, 0), 0);
  std::vector<std::string> order;
  hooks_.before_read = [&](const std::string& path, Bytes) {
    order.push_back(path);
    if (order.size() == 50) reader_->want({find(*tree_, "1001"), 0, 1}, *map_);
  };
  ASSERT_OK(copy_now());
  ASSERT_EQ(order.size(), 301U);
  const auto again = std::find(order.begin() + 50, order.end(), "1001");
  EXPECT_LT(again - order.begin(), 70) << "after those that were read at that moment";
}

TEST_F(ViewBesideTest, ASmallFileThatHasGrownWaitsForTheOthersOnceAReaderAsksForIt) {
  options_.threads = options_.depth = 1;
  for (unsigned i = 1000; i < 1300; ++i) write_text(source_ / std::to_string(i), std::to_string(i));
  ASSERT_EQ(::setxattr((source_ / "1001").c_str(), "user.a", "b", 1, 0), 0);
  std::vector<std::string> order;
  hooks_.before_read = [&](const std::string& path, Bytes) {
    order.push_back(path);
    if (order.size() != 50) return;
    write_text(source_ / "1001", noise(20 * kMiB, 1));
    reader_->want({find(*tree_, "1001"), 0, 1}, *map_);
  };
  ASSERT_OK(copy_now());
  const auto again = std::find(order.begin() + 50, order.end(), "1001");
  EXPECT_EQ(again - order.begin(), 300) << "its reader gets an error at once, and the others do not wait";
  const IoBuffer buffer(kMiB + 2 * kLargestAlignment);
  EXPECT_EQ(reader_->read({find(*tree_, "1001"), 0, 1}, buffer).outcome, Outcome::Failed);
  EXPECT_EQ(whole("1299"), "1299");
  EXPECT_EQ(differences_by_rsync(source_, copy_), "");
}

TEST_F(ViewBesideTest, WhereNoThreadCanBeStartedSmallFilesDoNotWaitForALargeOne) {
  write_text(source_ / "index", "x");
  write_text(source_ / "large", noise(20 * kMiB, 1));
  const spark::ThreadLimit limit(0);
  bool is_here = false;
  hooks_.before_read = [&](const std::string& path, Bytes offset) {
    if (path == "large" && offset == 0)
      is_here = reader_->look({find(*tree_, "index"), 0, 1}) == Outcome::Here;
  };
  ASSERT_OK(copy_now());
  EXPECT_TRUE(is_here);
}

TEST_F(ViewBesideTest, ALargeFileDoesNotWaitForTheSmallOnes) {
  options_.threads = options_.depth = 1;
  for (unsigned i = 1000; i < 1100; ++i) write_text(source_ / std::to_string(i), std::to_string(i));
  write_text(source_ / "large", noise(20 * kMiB, 1));
  bool came = false;
  hooks_.before_read = [&](const std::string& path, Bytes) {
    if (path == "1000") came = comes("large", true);
  };
  ASSERT_OK(copy_now());
  EXPECT_TRUE(came);
}

// Files with attributes are left to the way of large files.
TEST_F(ViewCopyTest, ASmallFileWithAttributesThatAReaderWaitsForGoesFirst) {
  for (const unsigned threads : {1, 2}) {
    options_.threads = threads;
    options_.depth = 1;
    for (unsigned i = 1000; i < 1100; ++i) {
      const auto file = source_ / std::to_string(i);
      write_text(file, std::to_string(i));
      ASSERT_EQ(::setxattr(file.c_str(), "user.a", "b", 1, 0), 0);
    }
    std::mutex mutex;
    std::vector<std::string> order;
    hooks_.before_read = [&](const std::string& path, Bytes) {
      const std::scoped_lock lock(mutex);
      order.push_back(path);
      // Each file was read once before, and left.
      if (order.size() > 100) reader_->want({find(*tree_, "1090"), 0, 10}, *map_);
    };
    ASSERT_OK(copy_now());
    ASSERT_EQ(order.size(), 200U);
    const auto again = std::find(order.begin() + 100, order.end(), "1090");
    EXPECT_LT(again - order.begin(), 100 + 40) << threads;
    EXPECT_EQ(whole("1090"), "1090");
    std::filesystem::remove_all(copy_);
    std::filesystem::remove(folder_ / ".copy.spark-manifest");
    ViewMap::remove(place_);
  }
}

}  // namespace
}  // namespace spark::staging::test
