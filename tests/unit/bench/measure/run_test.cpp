// Complete small runs with the real fio, on the disk of the build tree.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "base/file.hpp"
#include "bench/files/scratch.hpp"
#include "bench/measure/bench.hpp"
#include "bench/report/report.hpp"
#include "bench/report/run_folder.hpp"
#include "tests/unit/bench/testing.hpp"

namespace spark::bench {
namespace {

using testing::Contains;
using testing::HasSubstr;

const StopFlag kGoOn = false;

BenchOptions tiny(std::vector<PathUnderTest> paths) {
  BenchOptions options;
  options.paths = std::move(paths);
  options.size = 32 * kMiB;
  options.runtime = std::chrono::seconds(1);
  options.rounds = options.max_rounds = 1;
  options.scenarios = {"shards", "latency"};
  return options;
}

// Checks `condition` every 20 ms for at most ten seconds.
bool comes_true(const std::function<bool()>& condition) {
  for (int i = 0; i < 500; ++i) {
    if (condition()) return true;
    ::usleep(20'000);
  }
  return false;
}

std::string scratch_in(const std::string& folder) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename().string().starts_with(kScratchPrefix)) return entry.path().string();
  }
  return {};
}

std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename().string());
  return names;
}

// True if an fio process has the folder on its command line, so that run is measuring.
bool is_fio_at_work(const std::string& folder) {
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const auto line = read_file(entry.path() / "cmdline");
    if (line && line->starts_with("fio") && line->find(folder) != std::string::npos) return true;
  }
  return false;
}

std::atomic<bool> interrupted = false;

// Starts a long run in a separate process and waits until fio measures.
pid_t start_long_run(const std::string& folder) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::signal(SIGINT, [](int) { interrupted = true; });
    BenchOptions options = tiny({{"disk", folder}});
    options.runtime = std::chrono::seconds(60);
    const auto record = run(options, {}, interrupted);
    ::_exit(record && record->interrupted ? 130 : 1);
  }
  EXPECT_TRUE(comes_true([&] { return is_fio_at_work(folder) && !scratch_in(folder).empty(); }));
  return pid;
}

TEST(Run, TwoPathsAreMeasuredAndLeftAsTheyWere) {
  const DiskFolder disk;
  fs::create_directory(disk / "a");
  fs::create_directory(disk / "b");
  write_text(disk / "a/foreign", "precious");
  std::vector<Progress> told;
  BenchOptions options = tiny({{"one", disk / "a"}, {"two", disk / "b"}});
  options.scenarios.clear();
  options.seed = 7;
  options.runs_folder = disk / "runs";
  const auto record = run(
      options, [&](const Progress& now) { told.push_back(now); }, kGoOn);
  ASSERT_TRUE(record) << record.error().message();
  ASSERT_EQ(record->cells.size(), 2 * 7 * 2u);
  for (const Cell& cell : record->cells) {
    if (cell.scenario == "stagecopy" && cell.path == "one") {
      EXPECT_THAT(cell.reasons, Contains(HasSubstr("the others are staged to")));
      continue;
    }
    // The files are small, so reading them through the page cache may be too short to be valid.
    if (!testing::Matches(Contains(HasSubstr("too short")))(cell.reasons)) {
      EXPECT_EQ(cell.status, CellStatus::Valid)
          << cell.scenario << ": " << testing::PrintToString(cell.reasons);
    }
    EXPECT_GT(cell.bytes, 0u);
    EXPECT_GT(cell.seconds, 0);
    EXPECT_TRUE(cell.cpu);
    EXPECT_EQ(sample_count(cell.bins), cell.scenario == "stagecopy" ? 0 : cell.ios);
  }
  EXPECT_FALSE(record->interrupted);
  EXPECT_EQ(record->seed, 7u);
  EXPECT_TRUE(record->fio.version.starts_with("fio-"));
  EXPECT_EQ(names_in(disk / "a"), std::set<std::string>{"foreign"});
  EXPECT_EQ(read_text(disk / "a/foreign"), "precious");
  EXPECT_TRUE(fs::is_empty(disk / "b"));
  EXPECT_GE(told.size(), 30u);
  EXPECT_TRUE(
      std::any_of(told.begin(), told.end(), [](const Progress& now) { return now.bytes_per_second > 0; }));
  EXPECT_EQ(told.back().cell, 28u);
  EXPECT_THAT(text_table(*record), HasSubstr("sequential read"));
  const auto kept = load_record(disk / "runs", record->run_id);
  ASSERT_TRUE(kept) << kept.error().message();
  EXPECT_EQ(kept->cells.size(), record->cells.size());
  EXPECT_FALSE(kept->interrupted);
  const fs::path raw = fs::path(disk / "runs") / record->run_id / record->cells[0].raw_file;
  EXPECT_TRUE(parse_json_object(read_text(raw.string())));
  EXPECT_THAT(read_text(fs::path(raw).replace_extension(".fio").string()), HasSubstr("[stream0]"));
}

TEST(Run, AnInterruptedRunRemovesOnlyItsOwnFolder) {
  const DiskFolder disk;
  write_text(disk / "foreign", "precious");
  const pid_t pid = start_long_run(disk.path());
  ::kill(pid, SIGINT);
  int status = 0;
  EXPECT_TRUE(comes_true([&] { return ::waitpid(pid, &status, WNOHANG) == pid; }));
  EXPECT_EQ(WEXITSTATUS(status), 130);
  EXPECT_EQ(names_in(disk.path()), std::set<std::string>{"foreign"});
  EXPECT_FALSE(is_fio_at_work(disk.path()));
}

TEST(Run, FioDiesWithAKilledRunAndTheNextRunRemovesTheLeftovers) {
  const DiskFolder disk;
  write_text(disk / "foreign", "precious");
  const pid_t pid = start_long_run(disk.path());
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  EXPECT_TRUE(comes_true([&] { return !is_fio_at_work(disk.path()); }));
  ASSERT_FALSE(scratch_in(disk.path()).empty());
  BenchOptions options = tiny({{"disk", disk.path()}});
  options.scenarios = {"shards"};
  const auto record = run(options, {}, kGoOn);
  ASSERT_TRUE(record) << record.error().message();
  EXPECT_THAT(record->paths[0].notes, Contains(HasSubstr("killed benchmark")));
  EXPECT_EQ(names_in(disk.path()), std::set<std::string>{"foreign"});
}

TEST(Run, AStopBeforeTheStartMeasuresNothingAndLeavesNothing) {
  const DiskFolder disk;
  const StopFlag stop = true;
  const auto record = run(tiny({{"disk", disk.path()}}), {}, stop);
  ASSERT_FALSE(record);
  EXPECT_EQ(record.error().kind, Errc::Cancelled);
  EXPECT_TRUE(fs::is_empty(disk.path()));
}

TEST(Run, AnImpossibleRunIsRefusedBeforeTheFirstByte) {
  const DiskFolder disk;
  const auto kind_of = [&](const BenchOptions& options) {
    const auto record = run(options, {}, kGoOn);
    return record ? Errc::Failed : record.error().kind;
  };
  EXPECT_EQ(kind_of(tiny({})), Errc::Invalid);
  EXPECT_EQ(kind_of(tiny({{"disk", disk.path()}, {"gone", disk / "gone"}})), Errc::NotFound);
  EXPECT_EQ(kind_of(tiny({{"disk", disk.path()}, {"device", "/dev/zero"}})), Errc::Refused);
  BenchOptions options = tiny({{"disk", disk.path()}});
  options.size = 15 * kTiB;
  EXPECT_EQ(kind_of(options), Errc::NoSpace);
  options = tiny({{"disk", disk.path()}});
  options.fio = "/nonexistent/fio";
  EXPECT_EQ(kind_of(options), Errc::NotFound);
  EXPECT_TRUE(fs::is_empty(disk.path()));
}

// An fio without io_uring, like on a host with a seccomp filter against it.
TEST(Run, WithoutIoUringItFallsBackToLibaioAndReportsIt) {
  const DiskFolder disk;
  const DiskFolder tools;
  write_text(tools / "fio",
             "#!/bin/sh\n"
             "case \"$*\" in *ioengine=io_uring*) echo 'fio: io_uring_queue_init: Operation not permitted' "
             ">&2; exit 1;; esac\n"
             "exec fio \"$@\"\n");
  ASSERT_EQ(::chmod((tools / "fio").c_str(), 0755), 0);
  BenchOptions options = tiny({{"disk", disk.path()}});
  options.fio = tools / "fio";
  options.scenarios = {"latency"};
  const auto record = run(options, {}, kGoOn);
  ASSERT_TRUE(record) << record.error().message();
  EXPECT_EQ(record->fio.engine, "libaio");
  EXPECT_THAT(record->fio.engine_note, HasSubstr("Operation not permitted"));
  EXPECT_THAT(record->warnings, Contains(HasSubstr("io_uring does not work here")));
  EXPECT_THAT(record->cells[0].command, HasSubstr("--ioengine=libaio"));
  EXPECT_EQ(record->cells[0].status, CellStatus::Valid);
}

// A path that fails in the middle invalidates only its own cells; the others are measured.
TEST(Run, AFailingLayoutMarksItsPathOnly) {
  const DiskFolder disk;
  const DiskFolder tools;
  fs::create_directory(disk / "good");
  fs::create_directory(disk / "bad");
  write_text(tools / "fio",
             "#!/bin/sh\n"
             "case \"$*\" in *name=layout*/bad/*) echo 'fio: Input/output error' >&2; exit 1;; esac\n"
             "exec fio \"$@\"\n");
  ASSERT_EQ(::chmod((tools / "fio").c_str(), 0755), 0);
  BenchOptions options = tiny({{"good", disk / "good"}, {"bad", disk / "bad"}});
  options.fio = tools / "fio";
  const auto record = run(options, {}, kGoOn);
  ASSERT_TRUE(record) << record.error().message();
  EXPECT_EQ(summarize(*record, "good", "shards").status, CellStatus::Valid);
  const Summary bad = summarize(*record, "bad", "shards");
  EXPECT_EQ(bad.status, CellStatus::NotMeasured);
  EXPECT_THAT(bad.reasons, Contains(HasSubstr("Input/output error")));
  EXPECT_TRUE(fs::is_empty(disk / "bad"));
}

TEST(Run, TheRateLimitHoldsForStagingCopies) {
  const DiskFolder disk;
  fs::create_directory(disk / "a");
  fs::create_directory(disk / "b");
  BenchOptions options = tiny({{"local", disk / "a"}, {"b", disk / "b"}});
  options.scenarios = {"stagecopy"};
  options.rate_limit = 16 * kMiB;
  const auto record = run(options, {}, kGoOn);
  ASSERT_TRUE(record) << record.error().message();
  for (const Cell& cell : record->cells) {
    if (cell.path != "b") continue;
    EXPECT_EQ(cell.status, CellStatus::Valid) << testing::PrintToString(cell.reasons);
    // The limit delays the begin of each request, so it does not count the time of the last.
    const double delayed = static_cast<double>(cell.bytes) - 4 * kMiB;
    EXPECT_GT(delayed, 0);
    EXPECT_LT(delayed / cell.seconds, 1.05 * static_cast<double>(options.rate_limit));
  }
}

TEST(Run, AModelIsLoadedInThreeWaysFromEachPath) {
  const DiskFolder disk;
  fs::create_directory(disk / "a");
  fs::create_directory(disk / "b");
  BenchOptions options = tiny({{"local", disk / "a"}, {"b", disk / "b"}});
  options.scenarios.clear();
  options.asked.loads_model = true;
  options.size = 64 * kMiB;
  options.rate_limit = 256 * kMiB;  // long enough to be valid
  const auto record = run(options, {}, kGoOn);
  ASSERT_TRUE(record) << record.error().message();
  ASSERT_EQ(record->cells.size(), 2 * 3 * 2u);
  for (const Cell& cell : record->cells) {
    EXPECT_EQ(cell.status, CellStatus::Valid) << cell.scenario << testing::PrintToString(cell.reasons);
    EXPECT_EQ(cell.bytes, 64 * kMiB);
    ASSERT_TRUE(cell.memory);
    EXPECT_GT(cell.memory->before, 0u);
    ASSERT_TRUE(cell.memory->cached);
    EXPECT_EQ(*cell.memory->cached >= 60 * kMiB, cell.scenario != "load-direct") << cell.scenario;
  }
  EXPECT_TRUE(fs::is_empty(disk / "a"));
}

TEST(Run, EveryPathReadsFilesOfTheDatasetsSizesAndTheDatasetInPlace) {
  const DiskFolder disk;
  fs::create_directory(disk / "a");
  fs::create_directories(disk / "b/set/class");
  Bytes bytes = 0;
  for (int i = 0; i < 64; ++i) {
    const std::string text(10'000 + 300 * i, static_cast<char>('a' + i % 26));
    write_text(disk / ("b/set/class/" + std::to_string(i)), text);
    bytes += text.size();
  }
  BenchOptions options = tiny({{"local", disk / "a"}, {"b", disk / "b"}});
  options.scenarios = {"smallfiles", "stagecopy"};
  options.asked.folder = disk / "b/set";
  options.asked.dataset_bytes = bytes;
  options.asked.dataset_files = 64;
  const auto record = run(options, {}, kGoOn);
  ASSERT_TRUE(record) << record.error().message();
  for (const PathRecord& path : record->paths) {
    EXPECT_EQ(path.small_files, 64u) << path.name;
    EXPECT_EQ(path.small_bytes, bytes) << path.name;
  }
  for (const Cell& cell : record->cells) {
    if (cell.scenario == "smallfiles") {
      EXPECT_EQ(cell.bytes / (cell.ios / 64), bytes) << cell.path;
    }
    if (cell.scenario == "stagecopy" && cell.path == "b") {
      EXPECT_EQ(cell.ios, 64u) << "small files are copied, not a large one";
    }
  }
  EXPECT_EQ(names_in(disk / "b"), std::set<std::string>{"set"});
}

}  // namespace
}  // namespace spark::bench
