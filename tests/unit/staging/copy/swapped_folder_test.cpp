// Who may rename in a destination's folder puts a link where the copy's own folder, or that folder, was.
#include "staging/copy/copy_with.hpp"
#include "staging/copy/prune.hpp"
#include "staging/copy/resume.hpp"
#include "tests/unit/staging/copy/copy_fixture.hpp"

namespace spark::staging {
namespace {

using namespace test;
namespace fs = std::filesystem;

class SwappedFolderTest : public CopyTest {
 protected:
  SwappedFolderTest() {
    write_text(source_ / "f", "new");
    fs::create_directories(bobs_);
    copy_ = bobs_ / "copy";
    for (const char* name : {"data/precious", "manifest", "journal", "state", "copy/precious"})
      write_text(closed_ / name, name);
    before_ = names(closed_);
  }
  static std::string names(const fs::path& folder) {
    std::vector<std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(folder))
      all.push_back(entry.path().lexically_relative(folder).native() + ":" +
                    (entry.is_regular_file() ? read_text(entry.path()) : ""));
    std::ranges::sort(all);
    std::string text;
    for (const std::string& one : all) text += one + "\n";
    return text;
  }
  void swap(const fs::path& folder) {
    if (std::exchange(is_swapped_, true)) return;
    fs::rename(folder, folder.native() + ".away");
    fs::create_directory_symlink(closed_, folder);
  }
  fs::path bobs_ = folder_ / "bobs", closed_ = folder_ / "closed";
  std::string before_;
  bool is_swapped_ = false;
};

TEST_F(SwappedFolderTest, ALinkInThePlaceOfThePartialFolderIsNotFollowed) {
  auto area = PartialArea::open(bobs_ / ".copy.spark-partial", stop_);
  ASSERT_OK(area);
  swap(bobs_ / ".copy.spark-partial");
  Entries entries;
  const Resumed kept = resume(*area, entries);
  ASSERT_OK(prune(*area, entries, kept));
  ASSERT_OK(area->keep_only("this"));
  EXPECT_EQ(read_text(bobs_ / ".copy.spark-partial.away/state"), "this");
  ASSERT_OK(area->clear());
  EXPECT_EQ(names(closed_), before_);
}

TEST_F(SwappedFolderTest, ALinkPutThereDuringACopyIsNotFollowed) {
  const CopyHooks hooks{[&](const std::string&, Bytes) { swap(bobs_ / ".copy.spark-partial"); }, {}, {}};
  EXPECT_KIND(copy_with(hooks, source_, copy_, options_, kQuiet, stop_), Errc::Unavailable);
  ASSERT_TRUE(is_swapped_);
  EXPECT_EQ(names(closed_), before_);
}

TEST_F(SwappedFolderTest, ALinkInThePlaceOfTheDestinationsFolderIsNotFollowed) {
  const CopyHooks hooks{[&](const std::string&, Bytes) { swap(bobs_); }, {}, {}};
  EXPECT_KIND(copy_with(hooks, source_, copy_, options_, kQuiet, stop_), Errc::Unavailable);
  ASSERT_TRUE(is_swapped_);
  EXPECT_EQ(names(closed_), before_);
}

TEST_F(SwappedFolderTest, AFolderThatALinkLeadsToIsNotTakenForOneThatAStuckProcessLeft) {
  const std::string name = ".copy.spark-partial";
  fs::create_directory_symlink(closed_, bobs_ / ("." + name + ".stuck"));
  EXPECT_FALSE(PartialArea::try_open(bobs_ / name));
  EXPECT_EQ(names(closed_), before_);
}

}  // namespace
}  // namespace spark::staging
