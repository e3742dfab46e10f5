// Readers of a live view wait for a part of a set that hosts exchange.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "base/file.hpp"
#include "staging/copy/transfer/viewer.hpp"
#include "staging/manifest/units.hpp"
#include "tests/unit/fleet/fetch/disturbed.hpp"
#include "tests/unit/fleet/serve/host.hpp"

using namespace spark;
using namespace spark::fleet;
using spark::fleet::test::Disturbed;
using spark::fleet::test::FleetHost;
using namespace std::chrono_literals;

namespace {

// One reader, which waits for one piece and asks for it again and again.
struct Reader final : staging::Viewer {
  std::mutex mutex;
  std::condition_variable changed;
  const staging::Entries* entries = nullptr;
  std::string path;  // that it waits for; empty: none yet
  std::uint64_t piece = 0;
  std::chrono::steady_clock::time_point asked_at{};
  bool has_arrived = false, came_alone = false;

  bool begin(const staging::Entries& all, bool, const std::string&) override {
    entries = &all;
    return true;
  }
  void arrived(const staging::Entry& entry, const staging::UnitRange& units) override {
    const std::uint64_t unit = piece * staging::kUnitsOfPiece;
    const bool is_in = units.first <= unit && unit < units.first + units.count;
    note(entry.path.view() == path && is_in, units.count < staging::unit_count(entry.size));
  }
  void withdraw(const staging::Entry&, bool) override {}
  void published(const std::filesystem::path&, const std::filesystem::path&) override {}
  std::optional<staging::WantedOfFile> take_wanted(bool is_small) override {
    const std::scoped_lock lock(mutex);
    const auto now = std::chrono::steady_clock::now();
    if (path.empty() || has_arrived || now - asked_at < 50ms) return std::nullopt;
    const auto& entry = (*entries)[staging::index_of(*entries, path)];
    if (is_small != (entry.size < kMiB)) return std::nullopt;
    asked_at = now;
    return staging::WantedOfFile{&entry, piece * staging::kUnitsOfPiece};
  }
  void want(std::string of, std::uint64_t which) {
    const std::scoped_lock lock(mutex);
    path = std::move(of);
    piece = which;
  }
  bool arrives_within(std::chrono::seconds time) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, time, [&] { return has_arrived; });
  }

 private:
  void note(bool is_mine, bool alone) {
    {
      const std::scoped_lock lock(mutex);
      if (!is_mine || path.empty() || has_arrived) return;
      has_arrived = true;
      came_alone = alone;
    }
    changed.notify_all();
  }
};

// Of an exchange.
const auto kLanes = static_cast<std::ptrdiff_t>(std::clamp(2 * std::thread::hardware_concurrency(), 4U, 12U));

class WantedTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kPieces = 6;  // of each of the two large files
  static constexpr std::uint64_t kLastPiece = 2 * kPieces - 1,
                                 kPack = 2 * kPieces + 1;  // of the peer's share
  const std::string key_ = new_key().value();
  spark::test::TempFolder folder_;
  FleetHost host_{key_, "nqn.host"};
  std::unique_ptr<FleetHost> peer_ = make_peer();
  staging::Source source_{"set", folder_ / "source", {}};
  std::unique_ptr<PeerExchange> exchange_ = host_.exchange({peer_->address()});
  Disturbed disturbed_{*exchange_};
  Reader reader_;
  std::unique_ptr<Presence> presence_;  // of the peer's staging
  std::mutex mutex_;
  std::vector<std::pair<std::string, std::uint64_t>> reads_;  // in their order

  WantedTest() {
    source_.state = "superblock 1";
    source_.is_still_so = [] { return Result<>{}; };
    std::filesystem::create_directories(source_.path);
    std::filesystem::create_directories(folder_ / "peer");
    for (const char* name : {"a", "b"})
      EXPECT_TRUE(
          write_file_atomically(source_.path / name, std::string(kPieces * staging::kHashPiece, *name)));
    for (int i = 0; i < 40; ++i)
      EXPECT_TRUE(write_file_atomically(source_.path / ("s" + std::to_string(i)), std::string(500'000, 's')));
    disturbed_.before_read = [this](const std::string& path, Bytes offset) {
      const std::scoped_lock lock(mutex_);
      reads_.emplace_back(path, offset / staging::kHashPiece);
    };
  }
  ~WantedTest() override { presence_.reset(); }  // before its folder is gone

  // Its share depends on its port.
  std::unique_ptr<FleetHost> make_peer() const {
    std::unique_ptr<FleetHost> peer;
    const auto owns = [&](std::uint64_t unit) {
      return owner_of(unit, std::array{host_.self(), peer->self()}) == peer->self();
    };
    do peer = std::make_unique<FleetHost>(key_, "nqn.peer");
    while (!owns(kLastPiece) || !owns(kPack));
    return peer;
  }
  // The peer stages the same set and does not get on: its share is waited for, for ten seconds.
  void begin_at_peer() {
    disturbed_.before_copy = [this](staging::ExchangeJob& job) {
      Layout layout;
      for (const staging::Entry& entry : job.entries)
        if (staging::is_content(entry)) layout.add(entry.size);
      layout.finish();
      auto board = Board::create(peer_->boards(), disturbed_.set, folder_ / "peer",
                                 {layout.units(), layout.pieces(), layout.small_files()});
      ASSERT_TRUE(board) << board.error().message();
      staging::Manifest manifest;
      manifest.entries.swap(job.entries);
      EXPECT_TRUE(staging::write_manifest(Board::entries_of(peer_->boards(), disturbed_.set), manifest));
      manifest.entries.swap(job.entries);
      presence_ = std::make_unique<Presence>(std::move(*board));
      layout_ = std::move(layout);
    };
  }
  bool is_of_peer(std::uint64_t unit) const {
    return owner_of(unit, std::array{host_.self(), peer_->self()}) == peer_->self();
  }
  Result<staging::Staged> stage(Bytes rate = 0) {
    staging::CopyOptions options;
    options.rate.most = rate;
    options.exchange = &disturbed_;
    options.viewer = &reader_;
    return host_.cache()->stage(source_, options, {}, StopFlag(false));
  }
  // Once the reader has what it waits for, the peer's staging ends.
  Result<staging::Staged> stage_beside_peer(bool& arrived) {
    Result<staging::Staged> staged = fail(Errc::Failed, "not yet");
    std::thread staging([&] { staged = stage(); });
    arrived = reader_.arrives_within(6s);
    presence_.reset();
    staging.join();
    return staged;
  }
  void expect_equal_copy(const staging::Staged& staged) {
    for (const auto& one : std::filesystem::directory_iterator(source_.path)) {
      const auto right = read_file(one.path(), std::string::npos);
      const auto copy = read_file(staged.path / one.path().filename(), std::string::npos);
      EXPECT_TRUE(right && copy && *right == *copy) << one.path();
    }
    EXPECT_TRUE(host_.cache()->verify("set", {}, {}, StopFlag(false)));
  }

  Layout layout_;
};

TEST_F(WantedTest, APieceOfAnotherHostsShareIsReadAtOnce) {
  begin_at_peer();
  const std::uint64_t piece = kPieces - 1;
  reader_.want("b", piece);
  bool arrived = false;
  const auto staged = stage_beside_peer(arrived);
  ASSERT_TRUE(staged) << staged.error().message();
  EXPECT_TRUE(arrived);
  std::erase_if(reads_, [](const auto& read) { return read.first != "a" && read.first != "b"; });
  const auto at = std::ranges::find(reads_, std::pair(std::string("b"), piece));
  EXPECT_LE(at - reads_.begin(), kLanes + 1) << "the reads that had begun may come before it";
  for (auto before = reads_.begin(); before != at; ++before)
    EXPECT_FALSE(is_of_peer((before->first == "b" ? kPieces : 0) + before->second)) << before->second;
  EXPECT_EQ(get_int(exchange_->read_because(), "wanted"), std::int64_t{staging::kHashPiece});
  expect_equal_copy(*staged);
}

TEST_F(WantedTest, ASmallFileOfAnotherHostsShareIsReadAtOnce) {
  begin_at_peer();
  std::vector<std::string> names;
  for (int i = 0; i < 40; ++i) names.push_back("s" + std::to_string(i));
  std::ranges::sort(names);
  reader_.want(names[(kPack - 2 * kPieces) * (kPackBytes / 500'000)], 0);
  bool arrived = false;
  const auto staged = stage_beside_peer(arrived);
  ASSERT_TRUE(staged) << staged.error().message();
  EXPECT_TRUE(arrived);
  expect_equal_copy(*staged);
}

// It would be copied after the exchange.
TEST_F(WantedTest, AFileThatIsNotExchangedIsReadAtOnce) {
  const UniqueFd sparse(::open((source_.path / "sparse").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
  ASSERT_EQ(::ftruncate(sparse.get(), 4 * staging::kHashPiece), 0);
  ASSERT_EQ(::pwrite(sparse.get(), "x", 1, staging::kHashPiece), 1);
  begin_at_peer();
  reader_.want("sparse", 1);
  bool arrived = false;
  const auto staged = stage_beside_peer(arrived);
  ASSERT_TRUE(staged) << staged.error().message();
  EXPECT_TRUE(arrived);
  EXPECT_LT(std::filesystem::file_size(source_.path / "sparse") / 2,
            std::filesystem::file_size(staged->path / "sparse"));
  struct stat info {};
  ASSERT_EQ(::stat((staged->path / "sparse").c_str(), &info), 0);
  EXPECT_LT(info.st_blocks * 512, std::int64_t{staging::kHashPiece}) << "its holes are kept";
  expect_equal_copy(*staged);
}

TEST_F(WantedTest, AFileThatIsNotExchangedIsReadWhereItIsWanted) {
  const UniqueFd sparse(::open((source_.path / "sparse").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
  const std::string data(kPieces * staging::kHashPiece - kMiB, 'd');
  ASSERT_EQ(::pwrite(sparse.get(), data.data(), data.size(), kMiB), static_cast<ssize_t>(data.size()));
  reader_.want("sparse", kPieces - 1);
  const auto staged = stage();
  ASSERT_TRUE(staged) << staged.error().message();
  EXPECT_TRUE(reader_.arrives_within(0s));
  EXPECT_TRUE(reader_.came_alone) << "before the file was whole";
  std::erase_if(reads_, [](const auto& read) { return read.first != "sparse"; });
  const auto at = std::ranges::find(reads_, std::pair(std::string("sparse"), kPieces - 1));
  EXPECT_LT(at - reads_.begin(), 4) << "the reads of other lanes may begin before it";
  expect_equal_copy(*staged);
}

// The pack with it is being copied, in turns with the large files: a reader waited for another file of it.
TEST_F(WantedTest, ASmallFileIsNotAmongTheLastBecauseOfARateLimit) {
  std::vector<std::string> names;
  for (int i = 0; i < 40; ++i) names.push_back("s" + std::to_string(i));
  std::ranges::sort(names);
  reader_.want("s0", 0);
  bool is_asked = false, came = false;
  disturbed_.before_read = [&](const std::string& path, Bytes) {
    const std::scoped_lock lock(mutex_);
    if (path == "a" || path == "b") reads_.emplace_back(path, 0);
    if (is_asked || !path.starts_with("s")) return;
    is_asked = true;
    reader_.want(names[kPackBytes / 500'000 - 1], 0);
  };
  std::ptrdiff_t reads = 0;
  Result<staging::Staged> staged = fail(Errc::Failed, "not yet");
  std::thread staging([&] { staged = stage(20'000'000); });
  came = reader_.arrives_within(60s);
  {
    const std::scoped_lock lock(mutex_);
    reads = std::ssize(reads_);
  }
  staging.join();
  ASSERT_TRUE(staged) << staged.error().message();
  EXPECT_TRUE(came);
  EXPECT_LE(reads, kLanes + 2) << "of large files";
  expect_equal_copy(*staged);
}

// The peer has published the set, and its manifest has only the hash of the whole file.
TEST_F(WantedTest, APieceThatNoPeerVouchesForIsProvenByTheSource) {
  ASSERT_TRUE(peer_->cache()->stage(source_, {}, {}, StopFlag(false)));  // without a board: it has ended
  std::set<std::uint64_t> begun;
  bool was_held = false, came = false;
  disturbed_.before_read = [&](const std::string& path, Bytes offset) {
    {
      const std::scoped_lock lock(mutex_);
      if (path != "a" || was_held) return;
      begun.insert(offset / staging::kHashPiece);
      was_held = begun.size() == kPieces;
      if (!was_held) return;
    }
    // All others have been requested from the peer. This one holds up the file's end.
    const std::uint64_t last = offset / staging::kHashPiece;
    reader_.want("a", last == 0 ? 1 : 0);
    came = reader_.arrives_within(6s);
  };
  const auto staged = stage();
  ASSERT_TRUE(staged) << staged.error().message();
  EXPECT_TRUE(was_held);
  EXPECT_TRUE(came);
  EXPECT_TRUE(reader_.came_alone) << "before the file was whole";
  EXPECT_EQ(get_int(exchange_->read_because(), "wanted"), std::int64_t{staging::kHashPiece});
  EXPECT_TRUE(exchange_->warnings().empty());
  expect_equal_copy(*staged);
}

}  // namespace
