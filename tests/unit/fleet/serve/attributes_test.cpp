// Files with user attributes or ACLs, which hosts do not send to each other.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "staging/manifest/manifest_reader.hpp"
#include "tests/unit/fleet/serve/host.hpp"

namespace {

std::atomic<bool> keeps_attributes{true};

}  // namespace

// In place of the C library's: a file system that takes no attributes can't be made without mounting one.
extern "C" int fsetxattr(int fd, const char* name, const void* value, std::size_t size, int flags) noexcept {
  if (keeps_attributes) return static_cast<int>(::syscall(SYS_fsetxattr, fd, name, value, size, flags));
  errno = EOPNOTSUPP;
  return -1;
}

using namespace spark;
using namespace spark::fleet;
using spark::fleet::test::FleetHost;
using spark::staging::Source;

namespace {

constexpr Bytes kOnePiece = 3 * kMiB;

bool has_kept(const std::filesystem::path& file) {
  char value[2];
  return ::getxattr(file.c_str(), "user.kept", value, sizeof value) == 1;
}

class AttributesTest : public testing::Test {
 protected:
  const std::string key_ = new_key().value();
  const spark::test::TempFolder folder_;
  FleetHost first_{key_, "nqn.first"}, second_{key_, "nqn.second"};
  Source source_{"set", folder_ / "source", {}};

  AttributesTest() {
    source_.origin = "folder set";
    std::filesystem::create_directories(source_.path);
    write("large", kOnePiece);
    for (const char* name : {"1", "2", "3"}) write(name, 100);
  }
  ~AttributesTest() override { keeps_attributes = true; }

  void SetUp() override {
    if (!set_attribute(source_.path / "large"))
      GTEST_SKIP() << "the file system of temporary files has no user attributes";
  }
  bool set_attribute(const std::filesystem::path& file) {
    return ::setxattr(file.c_str(), "user.kept", "x", 1, 0) == 0;
  }
  void write(const std::string& name, Bytes size) {
    ASSERT_TRUE(write_file_atomically(source_.path / name, std::string(size, 'x')));
  }
  void name_state(const char* state) {
    source_.state = state;
    source_.is_still_so = [] { return Result<>{}; };
  }
};

TEST_F(AttributesTest, AHostKeepsTheAttributesOfItsOwnFolderThatThePeersFolderLacks) {
  ASSERT_TRUE(first_.stage(source_, {}));
  Source other{"set", folder_ / "other", {}};
  other.origin = "folder set";
  std::filesystem::copy(source_.path, other.path);
  for (const auto& one : std::filesystem::directory_iterator(source_.path))
    std::filesystem::last_write_time(other.path / one.path().filename(),
                                     std::filesystem::last_write_time(one.path()));
  ASSERT_TRUE(set_attribute(other.path / "2"));
  const auto staged = second_.stage(other, {first_.address()});
  ASSERT_TRUE(staged) << staged.error().message();
  EXPECT_TRUE(has_kept(staged->path / "2"));
  EXPECT_EQ(staged->report.bytes_from_peers, staged->report.bytes - 100);
}

TEST_F(AttributesTest, AHostKeepsTheAttributesThatThePeersCacheDidNotTake) {
  name_state("superblock 1");
  ASSERT_TRUE(set_attribute(source_.path / "2"));
  keeps_attributes = false;
  const auto lossy = first_.stage(source_, {});
  ASSERT_TRUE(lossy) << lossy.error().message();
  EXPECT_FALSE(has_kept(lossy->path / "2"));
  keeps_attributes = true;
  const auto staged = second_.stage(source_, {first_.address()});
  ASSERT_TRUE(staged) << staged.error().message();
  EXPECT_TRUE(has_kept(staged->path / "2"));
  EXPECT_TRUE(has_kept(staged->path / "large"));
  EXPECT_EQ(staged->report.bytes_from_peers, staged->report.bytes - 100);
}

TEST_F(AttributesTest, ACopyThatSharesFilesWithOneWithoutItsAttributesSaysSo) {
  keeps_attributes = false;
  ASSERT_TRUE(first_.stage(source_, {}));
  keeps_attributes = true;
  write("4", 100);
  const auto again = first_.stage(source_, {});
  ASSERT_TRUE(again) << again.error().message();
  ASSERT_FALSE(has_kept(again->path / "large")) << "it was copied again";
  auto manifest = staging::ManifestReader::open(first_.manifest(again->generation));
  ASSERT_TRUE(manifest) << manifest.error().message();
  std::vector<std::string> lost;
  while (const auto entry = manifest->next())
    if (entry->lost_attributes) lost.emplace_back(entry->path.view());
  EXPECT_EQ(lost, std::vector<std::string>{"large"});
}

TEST_F(AttributesTest, AnOfferOfACopyThatLostAttributesHidesTheFilesConcerned) {
  const auto copy = folder_ / "copy";
  staging::Manifest manifest;
  std::filesystem::create_directories(copy);
  const auto add = [&](const char* path, staging::EntryType type, Bytes size, bool lost) {
    staging::Entry& entry = manifest.entries.emplace_back();
    entry.path = path;
    entry.type = type;
    entry.size = size;
    entry.lost_attributes = lost;
    if (type != staging::EntryType::File) return;
    ASSERT_TRUE(write_file_atomically(copy / path, std::string(size, 'x')));
  };
  add("", staging::EntryType::Folder, 0, false);
  add("a", staging::EntryType::File, kOnePiece, true);
  add("b", staging::EntryType::File, kOnePiece, false);
  add("c", staging::EntryType::File, 100, true);
  add("d", staging::EntryType::File, 200, false);
  ASSERT_TRUE(staging::write_manifest(folder_ / "manifest", manifest));
  const auto offer = offer_of_copy(copy, folder_ / "manifest", "hash").value();
  const staging::IoBuffer buffer(kUnitBuffer);
  EXPECT_FALSE(offer->read(0, buffer)->is_plain);
  EXPECT_TRUE(offer->read(1, buffer)->is_plain);
  const auto pack = offer->read(2, buffer);
  ASSERT_TRUE(pack);
  EXPECT_EQ(pack->bytes.size(), 2 * kTableEntry + 200);
  EXPECT_EQ(pack->bytes[0], std::byte{0});
  EXPECT_EQ(pack->bytes[kTableEntry], std::byte{1});
}

}  // namespace
