// A lane whose requests this thread carries out.
#include "staging/copy/lanes/lane.hpp"

#include <unistd.h>

#include <algorithm>

#include "tests/unit/staging/copy/lanes/copied_file.hpp"

namespace spark::staging::test {
namespace {

constexpr Bytes kSize = 17 * kMiB + 4100;  // its last unit is shorter than the others

class LaneTest : public testing::Test {
 protected:
  LaneTest() : tree_(open_tree(folder_.path()).value()) {}

  void open(const std::string& content = noise(kSize, 1)) {
    write_text(folder_ / "file", content);
    file_.emplace(tree_, "file");
    ASSERT_OK(file_->start());
  }

  std::function<void()> before_request_{};

  Result<PieceOutcome> move(const LaneTask& task, std::size_t chunk) {
    lane_.begin(*file_, task);
    for (;;) {
      if (before_request_) before_request_();
      auto next = lane_.advance(chunk);
      if (!next) return next.take_error();
      if (*next == nullptr) break;
      Request& request = **next;
      const bool reads = request.kind == Request::Kind::Read;
      if (reads && request.fd == file_->copy().fd.get()) ++read_back_;
      const auto at = static_cast<off_t>(request.offset);
      request.result = reads ? ::pread(request.fd, request.data, request.bytes, at)
                             : ::pwrite(request.fd, request.data, request.bytes, at);
      EXPECT_GE(request.result, 0);
    }
    file_->piece_done(task.piece, lane_.outcome());
    return lane_.outcome();
  }

  Result<> move_unit(std::uint64_t unit, std::size_t chunk) {
    LaneTask task;
    task.piece = unit / kUnitsOfPiece;
    task.unit = unit;
    const auto moved = move(task, chunk);
    if (!moved) return fail(moved.error());
    early_[task.piece][unit % kUnitsOfPiece] = moved->digest;
    return {};
  }

  Result<> move_piece(std::uint64_t piece, std::size_t chunk, bool shows_units = false) {
    LaneTask task;
    task.piece = piece;
    task.early = early_[piece];
    task.shows_units = shows_units;
    const auto moved = move(task, chunk);
    return moved ? Result<>() : fail(moved.error());
  }

  TempFolder folder_;
  Tree tree_;
  std::optional<CopiedFile> file_;
  IoBuffer buffer_{4 * kMiB};
  Counters counters_;
  Lane lane_{0, {buffer_.data(), buffer_.size()}, 1, counters_};
  std::map<std::uint64_t, EarlyUnits> early_;
  unsigned read_back_ = 0;  // requests
};

TEST_F(LaneTest, UnitsBeforeTheirPieceAreReadOnceAndAreInItsDigest) {
  for (const Bytes chunk : {4 * kMiB, kMiB, 512 * kKiB, 192 * kKiB}) {
    early_.clear();
    open();
    for (const std::uint64_t unit : {2, 3, 7, 8, 15, 17}) ASSERT_OK(move_unit(unit, chunk));
    EXPECT_EQ(file_->shown(), (std::vector<std::uint64_t>{2, 3, 7, 8, 15, 17}));
    for (const std::uint64_t piece : {0, 2, 1}) ASSERT_OK(move_piece(piece, chunk));
    file_->expect_right();
  }
}

TEST_F(LaneTest, APieceAllOfWhichIsThereIsNotReadFromTheSource) {
  open();
  for (std::uint64_t unit = 8; unit < 16; ++unit) ASSERT_OK(move_unit(unit, 4 * kMiB));
  const std::size_t before = file_->reads().size();
  ASSERT_OK(move_piece(1, 4 * kMiB));
  EXPECT_EQ(file_->reads().size(), before);
  EXPECT_EQ(read_back_, 8U);
}

// The piece's digest must be that of what readers got.
TEST_F(LaneTest, AUnitThatDiffersFromWhatWasWrittenIsAnErrorOfTheLocalDrive) {
  for (const Bytes at : {Bytes{0}, kViewUnit - 1}) {
    early_.clear();
    open();
    ASSERT_OK(move_unit(3, kMiB));
    {
      const UniqueFd copy(::open((folder_ / "file.copy").c_str(), O_WRONLY | O_CLOEXEC));
      ASSERT_EQ(::pwrite(copy.get(), "x", 1, static_cast<off_t>(3 * kViewUnit + at)), 1);
    }
    const auto moved = move_piece(0, 512 * kKiB);
    ASSERT_FALSE(moved);
    EXPECT_NE(moved.error().what.find("reading back"), std::string::npos) << moved.error().what;
    EXPECT_NE(moved.error().what.find("file.copy"), std::string::npos) << moved.error().what;
    EXPECT_FALSE(moved.error().is_of_source);
    EXPECT_TRUE(lane_.is_idle());
  }
}

TEST_F(LaneTest, HolesAreWrittenAndReadAsAnyOtherBytes) {
  open(std::string());
  const std::string data = noise(kMiB + 8192, 3);
  {
    const UniqueFd file(::open((folder_ / "file").c_str(), O_WRONLY | O_CLOEXEC));
    ASSERT_EQ(::ftruncate(file.get(), kSize), 0);
    ASSERT_GT(::pwrite(file.get(), data.data(), data.size(), 5 * kMiB - 4096), 0);
  }
  file_.emplace(tree_, "file");
  ASSERT_OK(file_->start());
  for (const std::uint64_t unit : {0, 4, 6, 12, 17}) ASSERT_OK(move_unit(unit, 4 * kMiB));
  for (const std::uint64_t piece : {0, 1, 2}) ASSERT_OK(move_piece(piece, 512 * kKiB, true));
  file_->expect_right();
}

TEST_F(LaneTest, AFileThatEndsInAUnitSaysSo) {
  open();
  std::filesystem::resize_file(folder_ / "file", 5 * kMiB + 10);
  const auto moved = move({.piece = 0, .unit = 5}, kMiB);
  ASSERT_OK(moved);
  EXPECT_TRUE(moved->ended_early);
  EXPECT_TRUE(file_->has_ended_early());
}

TEST_F(LaneTest, AUnitOfThePieceInProgressThatAReaderWaitsForComesNext) {
  for (const Bytes chunk : {4 * kMiB, kMiB, 512 * kKiB, 192 * kKiB}) {
    early_.clear();
    open();
    ASSERT_OK(move_unit(3, chunk));
    unsigned requests = 0;
    before_request_ = [&] {
      if (++requests != 4) return;
      for (const std::uint64_t unit : {0, 3, 6, 7, 9}) lane_.fetch_first(unit);
    };
    ASSERT_OK(move_piece(0, chunk, true));
    before_request_ = nullptr;
    const auto& shown = file_->shown();
    const auto sixth = std::ranges::find(shown, 6U), last = std::ranges::find(shown, 7U);
    EXPECT_LT(sixth - shown.begin(), 6);
    EXPECT_LT(last - shown.begin(), 6);
    for (const std::uint64_t piece : {1, 2}) ASSERT_OK(move_piece(piece, chunk));
    file_->expect_right();
  }
}

// The whole unit is a hole, or its end is, or the file's end is in it.
TEST_F(LaneTest, AUnitThatComesNextMayBeAHoleOrShorter) {
  open(std::string());
  const std::string data = noise(kMiB + 8192, 3);
  {
    const UniqueFd file(::open((folder_ / "file").c_str(), O_WRONLY | O_CLOEXEC));
    ASSERT_EQ(::ftruncate(file.get(), 7 * kMiB + 4100), 0);
    for (const off_t at : {off_t{0}, off_t{4 * kMiB}})
      ASSERT_GT(::pwrite(file.get(), data.data(), data.size(), at), 0);
  }
  for (const bool is_sparse : {true, false}) {
    if (!is_sparse) write_text(folder_ / "file", read_text(folder_ / "file"));
    file_.emplace(tree_, "file");
    ASSERT_OK(file_->start());
    unsigned requests = 0;
    before_request_ = [&] {
      if (++requests != 2) return;
      for (const std::uint64_t unit : {3, 5, 7}) lane_.fetch_first(unit);
    };
    ASSERT_OK(move_piece(0, 512 * kKiB, true));
    for (const std::uint64_t unit : {3, 5, 7}) EXPECT_EQ(std::ranges::count(file_->shown(), unit), 1) << unit;
    file_->expect_right();
  }
}

TEST_F(LaneTest, APieceShowsItsUnitsAsTheyArrive) {
  open();
  ASSERT_OK(move_unit(2, kMiB));
  ASSERT_OK(move_piece(0, 512 * kKiB, true));
  EXPECT_EQ(file_->shown(), (std::vector<std::uint64_t>{2, 0, 1, 3, 4, 5, 6}))
      << "the last comes with the piece";
  ASSERT_OK(move_piece(1, 4 * kMiB, true));
  EXPECT_EQ(file_->shown().size(), 7U + 4U);
  ASSERT_OK(move_piece(2, 512 * kKiB, false));
  EXPECT_EQ(file_->shown().size(), 7U + 4U);
  file_->expect_right();
}

}  // namespace
}  // namespace spark::staging::test
