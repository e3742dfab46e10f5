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
    source_.origin = "folder set";
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
  // Stages until this many pieces of the file were requested.
  void stop_in_the_middle(const std::string& file, std::uint64_t pieces) {
    StopFlag stop(false);
    std::atomic<std::uint64_t> reads{0};
    const auto exchange = host_.exchange({});
    Disturbed stopped(*exchange);
    stopped.before_read = [&](const std::string& path, Bytes) {
      if (path == file && ++reads == pieces) stop = true;
    };
    staging::CopyOptions options;
    options.exchange = &stopped;
    EXPECT_FALSE(host_.cache()->stage(source_, options, {}, stop));
  }
  // The number of pieces of the first file that peers may get now; no value without a board.
  std::optional<std::uint64_t> offered_of_first(std::uint64_t pieces) const {
    const auto board = Board::open(host_.boards(), disturbed_.set);
    if (!board) return std::nullopt;
    std::uint64_t offered = 0;
    for (std::uint64_t i = 0; i < pieces; ++i) offered += has((*board)->unit(i)) ? 1 : 0;
    return offered;
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
    const auto now = offered_of_first(pieces);
    offered += static_cast<unsigned>(now.value_or(0));
    has_looked = has_looked || now;
  };
  const auto staged = stage();
  ASSERT_TRUE(staged) << staged.error().message();
  EXPECT_TRUE(has_looked);
  EXPECT_EQ(offered, 0u);
  expect_equal_copy(*staged);
}

// Leaves all files to the copy engine, and watches it discard what it wrote.
struct WatchedDiscards final : staging::Exchange {
  std::function<void(const staging::Entry&)> discards;
  std::function<void(const std::string& path, Bytes offset)> before_read;

  void begin(const staging::SetOrigin&) override {}
  Result<staging::Walked> walk(const Walk& own) override { return own(); }
  Result<> copy(staging::ExchangeJob& job) override {
    job.context.discards = discards;
    job.context.before_read = before_read;
    return {};
  }
  bool is_published_elsewhere(const std::string&) override { return false; }
};

TEST_F(ChangingFileTest, TheContentOfACopyIsStillThereWhenItsDiscardIsAnnounced) {
  WatchedDiscards watched;
  std::atomic<unsigned> discards{0};
  const auto copy = staging::CacheFolder(host_.cache_path()).partial("set") / "data/a";
  watched.discards = [&](const staging::Entry& entry) {
    if (++discards != 1) return;
    EXPECT_EQ(entry.path.view(), "a");
    EXPECT_EQ(content_of(copy).front(), 'y');
  };
  staging::CopyOptions options;
  options.exchange = &watched;
  watched.before_read = [&](const std::string& path, Bytes) {
    if (path == "a" && discards == 0) overwrite_first_byte(source_.path / "a");
  };
  const auto staged = host_.cache()->stage(source_, options, {}, StopFlag(false));
  ASSERT_TRUE(staged) << staged.error().message();
  EXPECT_GT(discards, 0u);
  expect_equal_copy(*staged);
}

constexpr std::uint64_t kManyPieces = 16;  // more than there are lanes

TEST_F(ChangingFileTest, PiecesOfAFileThatChangedAreWithdrawn) {
  write("a", kManyPieces * 8 * kMiB);
  std::atomic<unsigned> reads{0};
  std::uint64_t before = 0, after = 0;
  std::mutex mutex;
  disturbed_.before_read = [&](const std::string& path, Bytes) {
    if (path != "a") return;
    const std::scoped_lock lock(mutex);
    if (++reads == kManyPieces) {
      before = offered_of_first(kManyPieces).value();
      overwrite_first_byte(source_.path / "a");
    }
    if (reads > kManyPieces) after += offered_of_first(kManyPieces).value();
  };
  const auto staged = stage();
  ASSERT_TRUE(staged) << staged.error().message();
  EXPECT_GT(before, 0u);
  EXPECT_GT(reads, kManyPieces) << "it was read again";
  EXPECT_EQ(after, 0u);
  expect_equal_copy(*staged);
}

TEST_F(ChangingFileTest, PiecesOfAnEarlierAttemptAreWithdrawnIfTheFileChangedAfterTheWalk) {
  write("a", kManyPieces * 8 * kMiB);
  stop_in_the_middle("a", kManyPieces);
  bool has_begun = false;
  std::atomic<std::uint64_t> offered{0};
  disturbed_.before_copy = [&](const staging::ExchangeJob& job) {
    has_begun = !job.resumed.begun.empty();
    overwrite_first_byte(source_.path / "a");
  };
  disturbed_.before_read = [&](const std::string& path, Bytes) {
    if (path == "a") offered += offered_of_first(kManyPieces).value();
  };
  const auto staged = stage();
  ASSERT_TRUE(staged) << staged.error().message();
  EXPECT_TRUE(has_begun);
  EXPECT_EQ(offered, 0u);
  expect_equal_copy(*staged);
}

}  // namespace
