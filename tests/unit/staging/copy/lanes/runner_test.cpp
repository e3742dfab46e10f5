#include "staging/copy/lanes/runner.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "tests/unit/staging/copy/lanes/copied_file.hpp"

namespace spark::staging {
namespace {

using namespace test;

// The threads of a run, and what they did.
struct Log {
  std::mutex mutex;
  std::set<std::thread::id> opened_by, read_by;
  std::atomic<int> started{0}, finished{0}, pieces{0};
  std::atomic<int> needed{0};  // reads wait until so many files were started
  std::atomic<int> most{0};    // files started and not finished at once
};

// A file that is read only; reads it `times` times.
class ReadFile final : public FileWork {
 public:
  ReadFile(const Tree& tree, std::string path, int times, Log& log) : times_(times), log_(log) {
    source_.tree = &tree;
    source_.path = std::move(path);
  }
  Result<> start() override {
    source_.fd.reset(::openat(source_.tree->folder.get(), source_.path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!source_.fd) return fail_errno(errno, "opening " + source_.path);
    source_.size = kSize;
    const int unfinished = ++log_.started - log_.finished;
    const std::scoped_lock lock(log_.mutex);
    log_.most = std::max<int>(log_.most, unfinished);
    log_.opened_by.insert(std::this_thread::get_id());
    return {};
  }
  std::vector<std::uint64_t> to_do() const override { return {1, 0}; }
  WorkFiles files() const override { return {source_}; }
  Result<> before_read(Bytes /*offset*/, std::size_t /*bytes*/) override {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (log_.started < log_.needed && std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
    EXPECT_GE(log_.started, log_.needed);
    const std::scoped_lock lock(log_.mutex);
    log_.read_by.insert(std::this_thread::get_id());
    return {};
  }
  void moved(Bytes /*bytes*/) override {}
  void piece_done(std::uint64_t /*piece*/, const PieceOutcome& outcome) override {
    EXPECT_FALSE(outcome.ended_early);
    ++log_.pieces;
  }
  Result<bool> finish() override {
    if (--times_ > 0) return false;
    ++log_.finished;
    return true;
  }

  static constexpr Bytes kSize = kHashPiece + 1;

 private:
  OpenedFile source_;
  int times_;
  Log& log_;
};

class RunnerTest : public testing::Test {
 protected:
  RunnerTest() : tree_(open_tree(folder_.path()).value()) {
    write_text(folder_ / "file", noise(ReadFile::kSize, 1));
  }

  Result<> run_files(std::uint64_t files, unsigned openers, int times = 1) {
    RunPlan plan;
    plan.shape = {1, 2, kMiB, openers};
    plan.counters = &counters_;
    plan.files = files;
    plan.work_for = [&](std::uint64_t index) {
      {
        const std::scoped_lock lock(log_.mutex);
        order_.push_back(index);
      }
      return std::make_unique<ReadFile>(tree_, index == missing_ ? "missing" : "file", times, log_);
    };
    plan.wanted = wanted_;
    RunEnd end;
    auto ran = run(plan, end);
    has_failed_ = end.has_failed();
    return ran;
  }

  TempFolder folder_;
  Tree tree_;
  Counters counters_;
  bool has_failed_ = false;
  std::uint64_t missing_ = 1000;
  std::function<std::optional<WantedUnit>()> wanted_{};
  std::vector<std::uint64_t> order_;  // of the files, as they were opened
  Log log_;
};

TEST_F(RunnerTest, EveryFileIsStartedAndFinishedOnce) {
  for (const unsigned openers : {0, 1, 4}) {
    log_.started = log_.finished = log_.pieces = 0;
    ASSERT_OK(run_files(20, openers));
    EXPECT_EQ(log_.started, 20) << openers;
    EXPECT_EQ(log_.finished, 20) << openers;
    EXPECT_EQ(log_.pieces, 40) << openers;
  }
}

TEST_F(RunnerTest, AFileThatHasToBeReadAgainIsReadAgain) {
  for (const unsigned openers : {0, 1, 4}) {
    log_.finished = log_.pieces = 0;
    ASSERT_OK(run_files(7, openers, 3));
    EXPECT_EQ(log_.finished, 7) << openers;
    EXPECT_EQ(log_.pieces, 7 * 2 * 3) << openers;
  }
}

TEST_F(RunnerTest, TheNextFilesAreOpenedWhileTheLanesAreBusy) {
  log_.needed = 2;
  ASSERT_OK(run_files(10, 1));
  EXPECT_EQ(log_.read_by.size(), 1U) << "an opener moved bytes";
}

TEST_F(RunnerTest, WithoutOpenersOneThreadDoesEverything) {
  ASSERT_OK(run_files(10, 0));
  EXPECT_EQ(log_.opened_by, log_.read_by);
  EXPECT_EQ(log_.read_by.size(), 1U);
}

// Each has two descriptors, and a loader that shuffles waits for a piece of each file.
TEST_F(RunnerTest, WantedFilesAreNotAllOpenedAtOnce) {
  std::uint64_t left = 300;
  wanted_ = [&left]() -> std::optional<WantedUnit> {
    if (left == 0) return std::nullopt;
    return WantedUnit{--left, 0};
  };
  log_.needed = 256;
  ASSERT_OK(run_files(300, 4));
  EXPECT_EQ(log_.finished, 300);
  EXPECT_LE(log_.most, 256 + 2) << "besides the files whose last pieces the two lanes have";
}

TEST_F(RunnerTest, AWantedFileIsOpenedBeforeTheOthers) {
  std::uint64_t asked = 0;
  wanted_ = [&asked]() -> std::optional<WantedUnit> {
    if (asked++ > 0) return std::nullopt;
    return WantedUnit{15, kUnitsOfPiece};
  };
  for (const unsigned openers : {0, 1, 4}) {
    asked = 0;
    order_.clear();
    ASSERT_OK(run_files(20, openers));
    ASSERT_EQ(order_.size(), 20U);
    const auto at = std::ranges::find(order_, 15U) - order_.begin();
    EXPECT_LT(at, 15) << openers;
    EXPECT_EQ(std::set(order_.begin(), order_.end()).size(), 20U) << openers;
  }
}

// At a source whose rate is not known yet, or slow: readers that ask at random, beside the copy.
class UnitRunTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kFiles = 4;
  static constexpr Bytes kSize = 12 * kMiB + 5;

  UnitRunTest() : tree_(open_tree(folder_.path()).value()) {
    for (std::uint64_t i = 0; i < kFiles; ++i) write_text(folder_ / std::to_string(i), noise(kSize, i));
    renew();
  }
  void renew() {
    files_.clear();
    for (std::uint64_t i = 0; i < kFiles; ++i)
      files_.push_back(std::make_unique<CopiedFile>(tree_, std::to_string(i)));
  }

  // The run owns what it works on.
  class Borrowed final : public FileWork {
   public:
    explicit Borrowed(FileWork& file) : file_(file) {}
    Result<> start() override { return file_.start(); }
    std::vector<std::uint64_t> to_do() const override { return file_.to_do(); }
    WorkFiles files() const override { return file_.files(); }
    Result<> before_read(Bytes offset, std::size_t bytes) override {
      return file_.before_read(offset, bytes);
    }
    void moved(Bytes bytes) override { file_.moved(bytes); }
    void piece_done(std::uint64_t piece, const PieceOutcome& outcome) override {
      file_.piece_done(piece, outcome);
    }
    Result<bool> finish() override { return file_.finish(); }

   private:
    FileWork& file_;
  };

  Result<> copy(IoKind io, const Shape& shape, NextWanted wanted) {
    const PieceLimit limit{SteadyTime{}};
    RunPlan plan;
    plan.io = io;
    plan.shape = shape;
    plan.limit = &limit;
    plan.counters = &counters_;
    plan.files = kFiles;
    plan.work_for = [&](std::uint64_t index) { return std::make_unique<Borrowed>(*files_[index]); };
    plan.wanted = std::move(wanted);
    RunEnd end;
    return run(plan, end);
  }

  TempFolder folder_;
  Tree tree_;
  Counters counters_;
  std::vector<std::unique_ptr<CopiedFile>> files_;
};

TEST_F(UnitRunTest, NothingIsReadTwiceAndAllIsRightWhateverReadersAskFor) {
  for (const IoKind io : {IoKind::Auto, IoKind::Threads}) {
    for (const Shape& shape :
         {Shape{1, 4, 4 * kMiB, 0}, Shape{1, 2, 512 * kKiB, 1}, Shape{2, 4, 4 * kMiB, 2}}) {
      renew();
      std::mt19937_64 random(shape.lanes + shape.threads);
      std::mutex mutex;
      const auto ask = [&]() -> std::optional<WantedUnit> {
        const std::scoped_lock lock(mutex);
        if (random() % 2 == 0) return std::nullopt;
        return WantedUnit{random() % kFiles, random() % unit_count(kSize)};
      };
      ASSERT_OK(copy(io, shape, ask));
      for (const auto& file : files_) file->expect_right();
    }
  }
}

// Of the last file, which is not open yet. Further reads wait for it here, and would end the test.
TEST_F(UnitRunTest, AUnitWaitsForFewRequests) {
  constexpr std::uint64_t kUnit = 9;
  for (const IoKind io : {IoKind::Auto, IoKind::Threads}) {
    renew();
    std::mutex mutex;
    std::condition_variable read;
    unsigned reads = 0, reads_before = 0;
    bool is_asked = false, is_read = false;
    const auto before_read = [&](std::uint64_t file, Bytes offset) {
      std::unique_lock lock(mutex);
      ++reads;
      if (file == 3 && offset == kUnit * kViewUnit) is_read = true;
      read.notify_all();
      if (!is_asked || is_read || ++reads_before <= 6) return;
      EXPECT_TRUE(read.wait_for(lock, std::chrono::seconds(20), [&] { return is_read; }));
    };
    for (std::uint64_t i = 0; i < kFiles; ++i)
      files_[i]->before_read_ = [&before_read, i](Bytes offset) { before_read(i, offset); };
    ASSERT_OK(copy(io, {1, 4, 4 * kMiB, 0}, [&]() -> std::optional<WantedUnit> {
      const std::scoped_lock lock(mutex);
      if (reads < 7 || std::exchange(is_asked, true)) return std::nullopt;
      return WantedUnit{3, kUnit};
    }));
    for (const auto& file : files_) file->expect_right();
    ASSERT_FALSE(files_[3]->shown().empty());
    EXPECT_EQ(files_[3]->shown().front(), kUnit) << "before the piece that has it";
  }
}

// Readers that wait for everything, in any order: the copy goes on, and ends.
TEST_F(UnitRunTest, PiecesGoOnBesideUnits) {
  std::mutex mutex;
  std::vector<WantedUnit> all;
  for (std::uint64_t file = 0; file < kFiles; ++file)
    for (std::uint64_t unit = unit_count(kSize); unit-- > 0;) all.push_back({file, unit});
  std::shuffle(all.begin(), all.end(), std::mt19937_64(3));
  std::size_t next = 0;
  ASSERT_OK(copy(IoKind::Auto, {1, 4, 4 * kMiB, 0}, [&]() -> std::optional<WantedUnit> {
    const std::scoped_lock lock(mutex);
    if (++next % 8 == 0) return std::nullopt;
    return all[next % all.size()];  // again and again, as readers do
  }));
  for (const auto& file : files_) file->expect_right();
}

TEST_F(RunnerTest, AFileThatCannotBeOpenedEndsTheRun) {
  for (const unsigned openers : {0, 1, 4}) {
    missing_ = 5;
    const auto ran = run_files(100, openers);
    ASSERT_FALSE(ran);
    EXPECT_NE(ran.error().what.find("missing"), std::string::npos) << ran.error().what;
    EXPECT_TRUE(has_failed_);
  }
}

}  // namespace
}  // namespace spark::staging
