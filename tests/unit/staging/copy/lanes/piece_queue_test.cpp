#include "staging/copy/lanes/piece_queue.hpp"

#include <gtest/gtest.h>

namespace spark::staging {
namespace {

// A file that has a size, and may have a copy.
class SizedFile final : public FileWork {
 public:
  SizedFile(Bytes size, bool has_copy) : has_copy_(has_copy) { source_.size = size; }
  Result<> start() override { return {}; }
  std::vector<std::uint64_t> to_do() const override {
    std::vector<std::uint64_t> pieces;
    for (std::uint64_t i = piece_count(source_.size); i-- > 0;) pieces.push_back(i);
    return pieces;
  }
  WorkFiles files() const override { return {source_, has_copy_ ? &source_ : nullptr}; }
  Result<> before_read(Bytes, std::size_t) override { return {}; }
  void moved(Bytes) override {}
  void piece_done(std::uint64_t, const PieceOutcome&) override {}
  Result<bool> finish() override { return true; }

 private:
  OpenedFile source_;
  bool has_copy_;
};

class PieceQueueTest : public testing::Test {
 protected:
  std::deque<WantedUnit> asked_;
  PieceQueue queue_{4, [this]() -> std::optional<WantedUnit> {
                      if (asked_.empty()) return std::nullopt;
                      const WantedUnit first = asked_.front();
                      asked_.pop_front();
                      return first;
                    }};

  OpenFilePtr open(Bytes size = 32 * kMiB, bool has_copy = true) {
    auto file = std::make_shared<OpenFile>();
    file->index = queue_.take_file();
    file->work = std::make_unique<SizedFile>(size, has_copy);
    queue_.add(file, file->work->to_do());
    return file;
  }

  // All that can be taken, as "file.piece".
  std::vector<std::string> take_pieces() {
    std::vector<std::string> taken;
    while (queue_.has_piece()) {
      const QueuedTask next = queue_.take_piece();
      taken.push_back(std::to_string(next.file->index) + "." + std::to_string(next.task.piece));
    }
    return taken;
  }

  void end_unit(const QueuedTask& unit, std::uint64_t digest, bool ended_early = false) {
    PieceOutcome outcome;
    outcome.digest.low = digest;
    outcome.ended_early = ended_early;
    queue_.unit_done(*unit.file, unit.task, outcome);
  }
};

using Names = std::vector<std::string>;

TEST_F(PieceQueueTest, GivesFilesAndPiecesInTheirOrder) {
  open();
  open(8 * kMiB);
  EXPECT_TRUE(queue_.has_file());
  EXPECT_FALSE(queue_.take_unit());
  EXPECT_EQ(take_pieces(), (Names{"0.0", "0.1", "0.2", "0.3", "1.0"}));
  EXPECT_EQ(queue_.open_files(), 0U);
}

TEST_F(PieceQueueTest, AUnitComesOnceThenItsPieceWithWhatFollows) {
  open();
  open();
  asked_ = {{1, 2 * 8 + 3}, {1, 2 * 8 + 3}};
  const auto unit = queue_.take_unit();
  ASSERT_TRUE(unit);
  EXPECT_EQ(unit->file->index, 1U);
  EXPECT_EQ(unit->task.piece, 2U);
  EXPECT_EQ(unit->task.unit, 19U);
  EXPECT_FALSE(queue_.take_unit());
  end_unit(*unit, 7);
  asked_ = {{1, 2 * 8 + 3}};
  EXPECT_FALSE(queue_.take_unit()) << "it is there already";
  const QueuedTask piece = queue_.take_piece();
  EXPECT_EQ(piece.task.piece, 2U);
  EXPECT_FALSE(piece.task.unit);
  for (std::size_t i = 0; i < kUnitsOfPiece; ++i) EXPECT_EQ(piece.task.early[i].has_value(), i == 3) << i;
  EXPECT_EQ(piece.task.early[3]->low, 7U);
  EXPECT_EQ(take_pieces(), (Names{"1.3", "1.0", "1.1", "0.0", "0.1", "0.2", "0.3"}));
}

TEST_F(PieceQueueTest, APieceWaitsForItsUnits) {
  open(16 * kMiB);
  asked_ = {{0, 1}, {0, 2}};
  const auto one = queue_.take_unit(), two = queue_.take_unit();
  ASSERT_TRUE(one && two);
  EXPECT_EQ(take_pieces(), (Names{"0.1"}));
  EXPECT_EQ(queue_.open_files(), 1U) << "work is left";
  end_unit(*two, 2);
  EXPECT_FALSE(queue_.has_piece());
  end_unit(*one, 1);
  ASSERT_TRUE(queue_.has_piece());
  const QueuedTask piece = queue_.take_piece();
  EXPECT_EQ(piece.task.early[1]->low, 1U);
  EXPECT_EQ(piece.task.early[2]->low, 2U);
}

TEST_F(PieceQueueTest, AUnitOfAPieceInProgressIsForTheLaneThatHasIt) {
  for (const Bytes size : {8 * kMiB, 32 * kMiB}) {  // also the last piece of a file
    const OpenFilePtr file = open(size);
    queue_.take_piece();
    asked_ = {{file->index, 3}, {file->index, 4}, {file->index, 3}};
    EXPECT_FALSE(queue_.take_unit());
    EXPECT_EQ(queue_.take_unit_of(*file, 0), 3U);
    EXPECT_EQ(queue_.take_unit_of(*file, 0), 4U);
    EXPECT_FALSE(queue_.take_unit_of(*file, 0));
    queue_.piece_done(*file, 0);
    asked_ = {{file->index, 5}};
    EXPECT_FALSE(queue_.take_unit());
    EXPECT_FALSE(queue_.take_unit_of(*file, 0));
  }
}

TEST_F(PieceQueueTest, AFileThatReadersWaitForIsOpenedFirstAndItsUnitsAreRemembered) {
  open();
  asked_ = {{3, 9}, {3, 17}, {3, 9}};
  EXPECT_FALSE(queue_.take_unit());
  EXPECT_EQ(queue_.wanted_files(), 1U);
  const OpenFilePtr third = open();
  EXPECT_EQ(third->index, 3U);
  EXPECT_EQ(queue_.wanted_files(), 0U);
  EXPECT_EQ(queue_.take_unit()->task.unit, 9U);
  EXPECT_EQ(queue_.take_unit()->task.unit, 17U);
  EXPECT_FALSE(queue_.take_unit());
  EXPECT_EQ(open()->index, 1U);
  EXPECT_EQ(open()->index, 2U);
  EXPECT_FALSE(queue_.has_file());
}

TEST_F(PieceQueueTest, TheFileForWhichReadersHaveWaitedLongestIsOpenedFirst) {
  asked_ = {{2, 0}, {3, 0}, {1, 0}};
  EXPECT_FALSE(queue_.take_unit());
  EXPECT_EQ(queue_.wanted_files(), 3U);
  for (const std::uint64_t index : {2, 3, 1, 0}) EXPECT_EQ(queue_.take_file(), index);
  EXPECT_FALSE(queue_.has_file());
}

// Its bytes are gone from the copy.
TEST_F(PieceQueueTest, AFileThatIsReadAgainHasNoEarlyUnits) {
  const OpenFilePtr file = open(8 * kMiB);
  asked_ = {{0, 1}};
  end_unit(*queue_.take_unit(), 1);
  EXPECT_TRUE(queue_.take_piece().task.early[1]);
  queue_.add(file, file->work->to_do());
  asked_ = {{0, 1}};
  EXPECT_TRUE(queue_.take_unit()) << "readers wait for it again";
  queue_.add(file, file->work->to_do());
  EXPECT_FALSE(queue_.take_piece().task.early[1]);
}

TEST_F(PieceQueueTest, AUnitThatEndedEarlyIsReadAgainWithItsPiece) {
  open(8 * kMiB);
  asked_ = {{0, 1}};
  end_unit(*queue_.take_unit(), 1, true);
  EXPECT_FALSE(queue_.take_piece().task.early[1]);
}

// A piece of one unit, and one that is only hashed.
TEST_F(PieceQueueTest, APieceThatCannotBeDividedGoesFirstAsAWhole) {
  open(9 * kMiB);
  open(32 * kMiB, false);
  asked_ = {{0, 8}, {1, 20}};
  const auto last = queue_.take_unit();
  ASSERT_TRUE(last);
  EXPECT_FALSE(last->task.unit);
  EXPECT_EQ(last->task.piece, 1U);
  const auto hashed = queue_.take_unit();
  ASSERT_TRUE(hashed);
  EXPECT_FALSE(hashed->task.unit);
  EXPECT_EQ(hashed->task.piece, 2U);
  EXPECT_EQ(take_pieces(), (Names{"1.3", "1.0", "1.1", "0.0"}));
}

TEST_F(PieceQueueTest, SaysOnceThatAReaderWaits) {
  open();
  EXPECT_FALSE(queue_.collect_wanted());
  asked_ = {{0, 9}, {0, 10}};
  EXPECT_TRUE(queue_.collect_wanted());
  EXPECT_FALSE(queue_.collect_wanted());
  EXPECT_TRUE(queue_.take_unit());
  EXPECT_TRUE(queue_.take_unit());
  EXPECT_FALSE(queue_.take_unit());
  asked_ = {{0, 11}};
  EXPECT_TRUE(queue_.collect_wanted());
}

TEST_F(PieceQueueTest, ManyUnitsOfOneFileDoNotHoldUpThoseOfAnother) {
  open();
  open();
  for (std::uint64_t unit = 0; unit < 20; ++unit) asked_.push_back({0, unit});
  asked_.push_back({1, 5});
  EXPECT_EQ(queue_.take_unit()->file->index, 0U);
  EXPECT_EQ(queue_.take_unit()->file->index, 1U);
  EXPECT_EQ(queue_.take_unit()->task.unit, 1U);
}

}  // namespace
}  // namespace spark::staging
