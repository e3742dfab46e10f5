// Files that change between the walk and the end of an exchange.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "tests/unit/fleet/fetch/disturbed.hpp"
#include "tests/unit/fleet/serve/host.hpp"

using namespace spark;
using namespace spark::fleet;
using spark::fleet::test::Disturbed;
using spark::fleet::test::FleetHost;

namespace {

void append(const std::filesystem::path& path, Bytes bytes) {
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  const std::string text(bytes, 'x');
  ASSERT_EQ(::write(file.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

std::string content_of(const std::filesystem::path& path) {
  std::string content(std::filesystem::file_size(path), ' ');
  std::ifstream(path, std::ios::binary).read(content.data(), static_cast<std::streamsize>(content.size()));
  return content;
}

void overwrite_first_byte(const std::filesystem::path& path) {
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  ASSERT_EQ(::pwrite(file.get(), "y", 1, 0), 1);
}

class ChangingFileTest : public testing::Test {
 protected:
  const std::string key_ = new_key().value();
  spark::test::TempFolder folder_;
  FleetHost host_{key_, "nqn.host"};
  staging::Source source_{"set", folder_ / "source", {}};
  std::unique_ptr<PeerExchange> exchange_ = host_.exchange({});
  Disturbed disturbed_{*exchange_};

  ChangingFileTest() {
    std::filesystem::create_directories(source_.path);
    write("a", 5 * kMiB);
    write("b", 20 * kMiB);
    write("c", 6 * kMiB);
    for (int i = 0; i < 20; ++i) write("small" + std::to_string(i), 100);
  }
  void write(const std::string& name, Bytes size) {
    ASSERT_TRUE(write_file_atomically(source_.path / name, std::string(size, name.front())));
  }
  Result<staging::Staged> stage() {
    staging::CopyOptions options;
    options.exchange = &disturbed_;
    return host_.cache()->stage(source_, options, {}, StopFlag(false));
  }
  // The name of the set whose board is there.
  std::string staged_set() const {
    for (const auto& one :
         std::filesystem::directory_iterator(Board::path_of(host_.boards(), "").parent_path()))
      if (one.path().extension() == ".board" && one.path().stem() != "") return one.path().stem();
    return "";
  }
  void expect_equal_copy(const staging::Staged& staged) {
    for (const auto& one : std::filesystem::directory_iterator(source_.path)) {
      const auto name = one.path().filename();
      EXPECT_TRUE(content_of(one.path()) == content_of(staged.path / name)) << name;
    }
    EXPECT_TRUE(host_.cache()->verify("set", {}, {}, StopFlag(false)));
  }
};

TEST_F(ChangingFileTest, AFileThatGrewByAPieceAfterTheWalkIsCopiedWhole) {
  disturbed_.after_walk = [&] { append(source_.path / "a", 8 * kMiB); };
  const auto staged = stage();
  ASSERT_TRUE(staged) << staged.error().message();
  expect_equal_copy(*staged);
}

TEST_F(ChangingFileTest, TheLastFileThatGrewByAPieceAfterTheWalkIsCopiedWhole) {
  disturbed_.after_walk = [&] { append(source_.path / "c", 8 * kMiB); };
  const auto staged = stage();
  ASSERT_TRUE(staged) << staged.error().message();
  expect_equal_copy(*staged);
}

TEST_F(ChangingFileTest, AFileThatShrankByAPieceAfterTheWalkIsCopiedWhole) {
  disturbed_.after_walk = [&] { std::filesystem::resize_file(source_.path / "b", 3 * kMiB); };
  const auto staged = stage();
  ASSERT_TRUE(staged) << staged.error().message();
  expect_equal_copy(*staged);
}

TEST_F(ChangingFileTest, AFileThatGrowsByAPieceWhileItIsReadIsCopiedWhole) {
  std::atomic<bool> has_grown{false};
  disturbed_.before_read = [&](const std::string& path, Bytes) {
    if (path == "b" && !has_grown.exchange(true)) append(source_.path / "b", 8 * kMiB);
  };
  const auto staged = stage();
  ASSERT_TRUE(staged) << staged.error().message();
  expect_equal_copy(*staged);
}

TEST_F(ChangingFileTest, PiecesOfAFileThatIsBeingChangedAreNotOffered) {
  const std::uint64_t pieces = 16;  // more than there are lanes
  write("a", pieces * 8 * kMiB);
  std::atomic<bool> has_changed{false}, has_looked{false};
  std::atomic<unsigned> reads{0}, offered{0};
  disturbed_.before_read = [&](const std::string& path, Bytes) {
    if (path != "a" || ++reads > pieces) return;
    if (!has_changed.exchange(true)) overwrite_first_byte(source_.path / "a");
    const auto board = Board::open(host_.boards(), staged_set());
    for (std::uint64_t i = 0; board && i < pieces; ++i) offered += has((*board)->unit(i)) ? 1 : 0;
    has_looked = has_looked || board;
  };
  const auto staged = stage();
  ASSERT_TRUE(staged) << staged.error().message();
  EXPECT_TRUE(has_looked);
  EXPECT_EQ(offered, 0u);
  expect_equal_copy(*staged);
}

}  // namespace
