// Units of a real copy that readers wait for.
#include <fstream>
#include <mutex>
#include <set>

#include "base/units.hpp"
#include "tests/unit/staging/view/view_copy_fixture.hpp"

namespace spark::staging::test {
namespace {

using Outcome = ViewRead::Outcome;

// Readers that wait at a source whose rate is not known yet.
class ViewUnitTest : public ViewCopyTest {
 protected:
  static constexpr Bytes kSize = 32 * kMiB + 70'000;
  std::mutex mutex_;
  std::set<std::pair<std::string, Bytes>> read_;
  unsigned reads_ = 0;
  bool is_here_ = false, is_read_once_ = true;
  std::function<void()> on_here_;

  void SetUp() override {
    options_.threads = 1;
    options_.depth = 4;
    for (const char* name : {"a", "b", "c"}) write_text(source_ / name, noise(kSize, name[0]));
  }

  ViewRange range(const char* path, Bytes offset) { return {find(*tree_, path), offset, 10}; }
  Outcome look(const char* path, Bytes offset) { return reader_->look(range(path, offset)); }

  // A reader waits for this offset once some requests have begun; on_here_ is called when it has come, which
  // has to be before its piece.
  Result<CopyReport> copy_for(const char* path, Bytes offset) {
    hooks_.before_read = [this, path, offset](const std::string& of, Bytes at) {
      const std::scoped_lock lock(mutex_);
      EXPECT_TRUE(read_.emplace(of, at).second || !is_read_once_) << of << " is read twice at " << at;
      if (++reads_ == 4) reader_->want(range(path, offset), *map_);
      if (is_here_ || look(path, offset) != Outcome::Here) return;
      is_here_ = true;
      EXPECT_EQ(look(path, round_down(offset, kHashPiece)), Outcome::Missing);
      const IoBuffer buffer(kMiB + 2 * kLargestAlignment);
      const ViewRead read = reader_->read(range(path, offset), buffer);
      EXPECT_EQ(read.outcome, Outcome::Here);
      EXPECT_EQ(std::string(reinterpret_cast<const char*>(read.bytes.data()), read.bytes.size()),
                read_text(source_ / path).substr(offset, 10));
      if (on_here_) on_here_();
    };
    return copy_now();
  }
};

TEST_F(ViewUnitTest, AUnitComesBeforeItsPiece) {
  ASSERT_OK(copy_for("c", 17 * kMiB + 5));
  EXPECT_TRUE(is_here_);
  for (const char* name : {"a", "b", "c"}) EXPECT_TRUE(whole(name) == noise(kSize, name[0])) << name;
  EXPECT_EQ(differences_by_rsync(source_, copy_), "");
}

TEST_F(ViewUnitTest, TheLastUnitIsShorter) {
  write_text(source_ / "c", noise(31 * kMiB + 70'000, 'c'));
  ASSERT_OK(copy_for("c", 31 * kMiB + 69'990));
  EXPECT_TRUE(is_here_);
  EXPECT_TRUE(whole("c") == noise(31 * kMiB + 70'000, 'c'));
}

// A crash loses what was copied before its piece.
TEST_F(ViewUnitTest, TheNextAttemptCopiesAUnitAgain) {
  on_here_ = [this] { stop_ = true; };
  EXPECT_KIND(copy_for("c", 17 * kMiB), Errc::Cancelled);
  EXPECT_TRUE(is_here_);
  stop_ = false;
  std::optional<Outcome> at_once;
  hooks_.before_read = [&](const std::string&, Bytes) {
    if (!at_once) at_once = look("c", 17 * kMiB);
  };
  ASSERT_OK(copy_now());
  EXPECT_EQ(at_once, Outcome::Missing);
  for (const char* name : {"a", "b", "c"}) EXPECT_TRUE(whole(name) == noise(kSize, name[0])) << name;
}

TEST_F(ViewUnitTest, AFileThatChangesBetweenAUnitAndItsPieceFails) {
  on_here_ = [this] {
    write_text(source_ / "c", noise(kSize, 9));
    is_read_once_ = false;
  };
  const auto copied = copy_for("c", 17 * kMiB);
  EXPECT_TRUE(is_here_);
  ASSERT_OK(copied);
  EXPECT_EQ(look("c", 17 * kMiB), Outcome::Failed);
  EXPECT_TRUE(whole("a") == noise(kSize, 'a'));
  EXPECT_TRUE(read_text(copy_ / "c") == noise(kSize, 9));
}

TEST_F(ViewUnitTest, AHoleIsAUnitToo) {
  std::filesystem::resize_file(source_ / "c", 0);
  std::filesystem::resize_file(source_ / "c", kSize);
  {
    std::fstream file(source_ / "c", std::ios::in | std::ios::out);
    file.seekp(17 * kMiB + 3) << "data";
  }
  ASSERT_OK(copy_for("c", 18 * kMiB));
  EXPECT_TRUE(is_here_);
  EXPECT_TRUE(whole("c") == read_text(source_ / "c"));
  EXPECT_EQ(differences_by_rsync(source_, copy_), "");
}

TEST_F(ViewUnitTest, AFileOfSeveralNamesHasOneSetOfUnits) {
  std::filesystem::create_hard_link(source_ / "c", source_ / "d");
  ASSERT_OK(copy_for("d", 17 * kMiB));
  EXPECT_TRUE(is_here_);
  EXPECT_TRUE(whole("d") == noise(kSize, 'c'));
}

}  // namespace
}  // namespace spark::staging::test
