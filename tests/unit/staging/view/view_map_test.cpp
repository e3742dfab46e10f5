#include "staging/view/view_map.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "tests/unit/staging/view/view_fixture.hpp"

namespace spark::staging::test {
namespace {

constexpr Digest kSet{1, 2}, kOther{3, 4};

class ViewMapTest : public ViewTest {
 protected:
  void SetUp() override { std::filesystem::create_directories(place_.folder); }
  std::unique_ptr<ViewMap> make(const Digest& set = kSet, std::uint64_t units = 10) {
    auto map = ViewMap::make(place_, set, units, "/copy");
    EXPECT_TRUE(map) << map.error().message();
    return std::move(*map);
  }
  std::unique_ptr<ViewMap> open() {
    auto map = ViewMap::open(place_);
    EXPECT_TRUE(map) << map.error().message();
    return std::move(*map);
  }
};

TEST_F(ViewMapTest, IsSharedByItsWriterAndItsReaders) {
  EXPECT_KIND(ViewMap::open(place_), Errc::NotFound);
  const auto writer = make();
  const auto reader = open();
  EXPECT_EQ(reader->set(), kSet);
  EXPECT_EQ(reader->units(), 10U);
  EXPECT_EQ(reader->data(), "/copy");
  EXPECT_EQ(reader->unit(9), UnitState::Missing);
  writer->set_here({9, 1});
  EXPECT_EQ(reader->unit(9), UnitState::Here);
  EXPECT_EQ(reader->unit(8), UnitState::Missing);
  writer->set_published("/published");
  EXPECT_TRUE(reader->is_published());
  EXPECT_EQ(reader->data(), "/published");
}

TEST_F(ViewMapTest, WithdrawingBeginsAnEpoch) {
  const auto map = make();
  map->set_here({3, 1});
  map->set_here({4, 1});
  const std::uint64_t before = map->epoch();
  map->withdraw({3, 1}, UnitState::Failed);
  EXPECT_NE(map->epoch(), before);
  EXPECT_EQ(map->unit(3), UnitState::Failed);
  EXPECT_EQ(map->unit(4), UnitState::Here);
}

// A reader must not get two states of a file, before and after the publication.
TEST_F(ViewMapTest, WhatHasFailedStaysSo) {
  const auto map = make();
  map->withdraw({3, 1}, UnitState::Failed);
  map->withdraw({0, map->units()});
  map->set_published("/published");
  map->set_here({0, map->units()});
  EXPECT_EQ(map->unit(3), UnitState::Failed);
  EXPECT_EQ(map->unit(4), UnitState::Here);
}

// The published folder need not be the one that a server has open.
TEST_F(ViewMapTest, PublishingBeginsAnEpoch) {
  const auto map = make();
  const std::uint64_t before = map->epoch();
  map->set_published("/published");
  EXPECT_NE(map->epoch(), before);
}

TEST_F(ViewMapTest, TheNextAttemptAtTheSetKeepsTheMapAndNoUnitOfIt) {
  auto first = make();
  first->set_here({1, 1});
  const auto reader = open();
  first.reset();  // the worker was killed
  const auto second = make();
  EXPECT_EQ(reader->unit(1), UnitState::Missing);
  EXPECT_FALSE(reader->has_failed());
  second->set_here({2, 1});
  EXPECT_EQ(reader->unit(2), UnitState::Here);
}

TEST_F(ViewMapTest, AnotherSetFailsTheView) {
  const auto first = make();
  first->set_here({1, 1});
  EXPECT_KIND(ViewMap::make(place_, kOther, 10, "/copy"), Errc::Mismatch);
  EXPECT_EQ(first->reason(), "the source has changed since the view began");
  EXPECT_KIND(ViewMap::make(place_, kSet, 10, "/copy"), Errc::Mismatch) << "for good";
  EXPECT_EQ(first->unit(1), UnitState::Here) << "what is here can be read";
}

TEST_F(ViewMapTest, APublishedCopyStaysWithItsReaders) {
  const auto first = make();
  first->set_here({1, 1});
  first->set_published("/published");
  EXPECT_KIND(ViewMap::make(place_, kOther, 10, "/copy"), Errc::Refused);
  first->set_failed("too late");
  EXPECT_TRUE(first->is_published());
  EXPECT_EQ(first->unit(1), UnitState::Here);
}

// The partial copy, from which all of the dataset's views are read, may change from here on.
TEST_F(ViewMapTest, TheNextStagingFailsTheDatasetsOtherViews) {
  const SystemRoot root{folder_ / "root"};
  const auto map_of = [&](const std::string& name) {
    auto map = ViewMap::make(view_place(root, folder_.path(), name), kSet, 10, "/copy");
    EXPECT_TRUE(map) << map.error().message();
    (*map)->set_here({1, 1});
    return std::move(*map);
  };
  const auto own = map_of("faces.12"), earlier = map_of("faces.7"), published = map_of("faces.8"),
             other = map_of("faces.2.9");
  published->set_published("/published");
  ViewMap::withdraw_all(root, folder_.path(), "faces", 12);
  EXPECT_EQ(own->unit(1), UnitState::Missing);
  EXPECT_FALSE(own->has_failed());
  EXPECT_EQ(earlier->unit(1), UnitState::Missing);
  EXPECT_TRUE(earlier->has_failed());
  EXPECT_EQ(published->unit(1), UnitState::Here);
  EXPECT_EQ(other->unit(1), UnitState::Here) << "of another dataset: faces.2";
}

TEST_F(ViewMapTest, GivesTheUnitsThatReadersWaitForOnce) {
  const auto worker = make();
  const auto view = open();
  EXPECT_FALSE(worker->take_wanted(false));
  view->want(7, false);
  view->want(2, false);
  worker->set_here({7, 1});
  EXPECT_FALSE(worker->take_wanted(true));
  EXPECT_EQ(worker->take_wanted(false), 2U);
  EXPECT_FALSE(worker->take_wanted(false));
  for (int i = 0; i < 5000; ++i) view->want(3, true);  // more than are remembered
  EXPECT_EQ(worker->take_wanted(true), 3U);
}

TEST_F(ViewMapTest, AChangeEndsAWait) {
  const auto worker = make();
  const auto view = open();
  const std::uint32_t before = view->changes();
  std::thread waits([&] {
    while (view->unit(0) != UnitState::Here) view->wait(view->changes(), std::chrono::milliseconds(50));
  });
  worker->set_here({0, 1});
  waits.join();
  EXPECT_NE(view->changes(), before);
}

TEST_F(ViewMapTest, RemovingItLeavesOtherViews) {
  const ViewPlace other{place_.folder, "faces.2"};
  const auto map = make();
  const auto second = ViewMap::make(other, kSet, 1, "/copy");
  ASSERT_OK(second);
  write_text(place_.entries(), "x");
  write_text(other.entries(), "x");
  ViewMap::remove(place_);
  EXPECT_KIND(ViewMap::open(place_), Errc::NotFound);
  EXPECT_FALSE(std::filesystem::exists(place_.entries()));
  EXPECT_TRUE(ViewMap::open(other));
  EXPECT_TRUE(std::filesystem::exists(other.entries()));
  ViewMap::remove(other);
}

// After an upgrade: what it says can't be understood.
TEST_F(ViewMapTest, AMapOfAnotherProgramIsNone) {
  make().reset();
  const auto first_bytes = [&](std::uint64_t to) {
    const UniqueFd file(::open(place_.map().c_str(), O_RDWR | O_CLOEXEC));
    std::uint64_t magic = 0;
    EXPECT_EQ(::pread(file.get(), &magic, sizeof magic, 0), static_cast<ssize_t>(sizeof magic));
    if (to != 0) {
      EXPECT_EQ(::pwrite(file.get(), &to, sizeof to, 0), static_cast<ssize_t>(sizeof to));
    }
    return magic;
  };
  const std::uint64_t magic = first_bytes(0);
  EXPECT_EQ(magic & 0xffffU, std::filesystem::file_size(place_.map()) - 10 * (sizeof(ViewMap::Opens) + 1))
      << "the size of what is before the units";
  first_bytes(magic - 8);
  EXPECT_KIND(ViewMap::open(place_), Errc::NotFound);
}

// Any user may make names in /dev/shm, and remove them again: processes of root's would use different maps.
TEST_F(ViewMapTest, NoOtherUserDecidesWhereTheMapIs) {
  const SmallTmpfs run(folder_ / "root/run", "size=16m,mode=755");
  const SystemRoot root{folder_ / "root"};
  const ViewPlace place = view_place(root, folder_ / "state", "faces");
  EXPECT_TRUE(place.map().native().starts_with((folder_ / "root/run/spark-stage-live/").native()));
  std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
  const auto makes = [](const std::filesystem::path& path) {
    return as_nobody([path] { return ::mkdir(path.c_str(), 0700) == 0; });
  };
  EXPECT_FALSE(makes(place.map().parent_path()));
  std::filesystem::create_directories(place.folder);
  const auto map = ViewMap::make(place, kSet, 10, "/copy");
  ASSERT_OK(map);
  EXPECT_FALSE(makes(place.map().native() + "2"));
  EXPECT_EQ(view_place(root, folder_ / "state", "faces").map(), place.map()) << "also once it is there";
  ASSERT_OK(ViewMap::open(place));
  const ViewPlace other = view_place(root, folder_ / "state", "faces2");
  ASSERT_OK(ViewMap::make(other, kSet, 10, "/copy"));
  EXPECT_NE(view_place(root, folder_ / "other state", "faces").map(), place.map());
  (*map)->set_here({1, 1});
  EXPECT_EQ((*ViewMap::open(place))->unit(1), UnitState::Here);
}

TEST_F(ViewMapTest, WhereOthersMakeNamesInRunTheMapIsOnTheDrive) {
  const SmallTmpfs run(folder_ / "root/run", "size=1m,mode=1777");
  EXPECT_EQ(view_place({folder_ / "root"}, folder_ / "state", "faces").map(),
            folder_ / "state/live/faces.view");
}

}  // namespace
}  // namespace spark::staging::test
