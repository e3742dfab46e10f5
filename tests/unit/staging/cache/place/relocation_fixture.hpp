// A cache and the folder that it is moved to.
#pragma once

#include <sys/mount.h>

#include "staging/cache/folder/cache_folder.hpp"
#include "staging/cache/place/relocation.hpp"
#include "tests/support/skip.hpp"
#include "tests/unit/staging/cache/cache_fixture.hpp"

namespace spark::staging::test {

class RelocationTest : public CacheTest {
 protected:
  const std::filesystem::path old_ = config_.path, new_ = folder_ / "drive/cache";
  std::vector<std::filesystem::path> stopped_;  // folders that were served read-only
  RelocationHooks hooks_of_move_{[](const std::string&, const CopyProgress&) {},
                                 [this](const std::filesystem::path& data) -> Result<> {
                                   stopped_.push_back(data);
                                   return {};
                                 },
                                 [](const std::filesystem::path&) { return Result<>(); }};
  LastCopies last_ = LastCopies::Brought;

  void SetUp() override {
    write_text(source_.path / "train/a", noise(100'000, 1));
    write_text(source_.path / "b", "b");
    ASSERT_OK(stage());
    std::filesystem::create_directories(folder_ / "drive");
  }
  Result<Relocation> move(const std::filesystem::path& to) {
    return relocate(config_, to, options_, clock_, hooks_of_move_, stop_, last_);
  }
  void expect_whole(const std::filesystem::path& path) { expect_whole_with(path, "b"); }
  void expect_whole_with(const std::filesystem::path& path, const std::string& text_of_b) {
    config_.path = path;
    const auto cache = open();
    ASSERT_NE(cache, nullptr);
    const auto rows = cache->list();
    ASSERT_OK(rows);
    ASSERT_EQ(rows->size(), 1U);
    ASSERT_OK(cache->verify("set", {}, kQuiet, stop_));
    EXPECT_EQ(read_text(link() / "b"), text_of_b);
    EXPECT_EQ(differences_by_rsync(source_.path, link()), "");
    const auto staged = stage(*cache);
    ASSERT_OK(staged);
    EXPECT_EQ(staged->served_from, ServedFrom::Cache);  // its manifest is still that of the source
  }
};

class RelocationToADriveTest : public RelocationTest {
 protected:
  std::unique_ptr<SmallTmpfs> drive_;

  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "mounting a small tmpfs needs root";
    RelocationTest::SetUp();
    drive_ = std::make_unique<SmallTmpfs>(folder_ / "drive", "size=4m");
  }
};

}  // namespace spark::staging::test
