// Random histories of a worker that copies, discards, is killed and begins again, beside readers that compare
// every byte.
#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <thread>

#include "tests/unit/staging/view/view_fixture.hpp"

namespace spark::staging::test {
namespace {

constexpr unsigned kFiles = 3;
constexpr Bytes kSize = 4 * kViewUnit + 4096;
constexpr unsigned kUnits = 5;  // of each file

class ViewHistoryTest : public ViewTest {
 protected:
  std::filesystem::path copy_ = folder_ / "data";
  std::vector<std::string> right_;

  void SetUp() override {
    std::filesystem::create_directories(copy_);
    Manifest manifest;
    Entry root;
    root.type = EntryType::Folder;
    manifest.entries.push_back(root);
    for (unsigned i = 0; i < kFiles; ++i) {
      Entry file;
      file.path = std::to_string(i);
      file.size = kSize;
      manifest.entries.push_back(file);
      right_.push_back(noise(kSize, i));
    }
    std::filesystem::create_directories(place_.folder);
    ASSERT_OK(write_manifest(place_.entries(), manifest));
  }

  std::filesystem::path file(unsigned number) const { return copy_ / std::to_string(number); }

  void write(unsigned number, unsigned unit) const {
    const UniqueFd fd(::open(file(number).c_str(), O_WRONLY | O_CREAT, 0600));
    const Bytes at = unit * kViewUnit, bytes = std::min(kViewUnit, kSize - at);
    ASSERT_EQ(::ftruncate(fd.get(), kSize), 0);
    ASSERT_EQ(::pwrite(fd.get(), right_[number].data() + at, bytes, static_cast<off_t>(at)),
              static_cast<ssize_t>(bytes));
  }

  std::unique_ptr<ViewMap> attempt() const {
    auto map = ViewMap::make(place_, Digest{}, kFiles * kUnits, copy_.native());
    EXPECT_TRUE(map);
    return std::move(*map);
  }

  // One step of a worker; the map is made first.
  void step(std::mt19937_64& random, std::unique_ptr<ViewMap>& map) const {
    const unsigned number = random() % kFiles, unit = random() % kUnits;
    switch (random() % 20) {
      case 0:  // killed: what the journal does not have is deleted, and written again
        map = attempt();
        for (unsigned i = 0; i < kFiles; ++i) std::filesystem::remove(file(i));
        break;
      case 1:
      case 2:  // wrong at its end: emptied
        map->withdraw({number * kUnits, kUnits});
        if (std::filesystem::exists(file(number))) std::filesystem::resize_file(file(number), 0);
        break;
      default:
        if (map->unit(number * kUnits + unit) == UnitState::Here) break;
        write(number, unit);
        map->set_here({number * kUnits + unit, 1});
    }
  }
};

TEST_F(ViewHistoryTest, NoReaderGetsAWrongByte) {
  std::mt19937_64 random(20261129);
  auto map = attempt();
  std::atomic<bool> is_over = false;
  std::atomic<std::uint64_t> right = 0, missing = 0;
  const auto read = [&](unsigned seed) {
    auto opened = ViewMap::open(place_);
    const ViewTree tree = tree_of(**opened);
    ViewReader reader(tree, **opened);
    std::mt19937_64 where(seed);
    const IoBuffer buffer(kMiB + 2 * kLargestAlignment);
    while (!is_over) {
      const unsigned number = where() % kFiles;
      const Bytes offset = where() % kSize, bytes = 1 + where() % (128 * kKiB);
      const ViewRead got = reader.read({number + 1, offset, bytes}, buffer);
      ASSERT_NE(got.outcome, ViewRead::Outcome::Failed);
      if (got.outcome == ViewRead::Outcome::Missing) {
        ++missing;
        continue;
      }
      ASSERT_EQ(got.bytes.size(), std::min(bytes, kSize - offset));
      ASSERT_EQ(std::memcmp(got.bytes.data(), right_[number].data() + offset, got.bytes.size()), 0);
      ++right;
    }
  };
  std::thread one(read, 1), two(read, 2);
  for (unsigned i = 0; i < 300; ++i) step(random, map);
  is_over = true;
  one.join();
  two.join();
  EXPECT_GT(right, 100U);
  EXPECT_GT(missing, 100U);
}

}  // namespace
}  // namespace spark::staging::test
