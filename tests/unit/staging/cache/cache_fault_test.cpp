// System calls of opening and recovering a cache fail, one at a time: no existing copy may be lost.
#include <sys/wait.h>

#include <cerrno>
#include <tuple>

#include "tests/support/failing_call.hpp"
#include "tests/unit/staging/cache/cache_fixture.hpp"

namespace spark::staging {
namespace {

using namespace test;

constexpr int kImpossible = 77;

// Runs `work` in a child in which the `nth` call fails. Reports the number of calls, or the problem.
struct Disturbed {
  bool was_called = false;  // the nth call was reached
  std::string problem;
};
Disturbed disturbed(unsigned nth, int error, const std::function<void()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (!spark::test::arm_failing_call(nth, error).empty()) ::_exit(kImpossible);
    work();
    ::_exit(spark::test::calls_counted() >= nth ? 1 : 0);
  }
  int status = 0;
  if (::waitpid(child, &status, 0) != child || !WIFEXITED(status)) return {true, "it crashed"};
  if (WEXITSTATUS(status) == kImpossible) return {false, "no seccomp here"};
  return {WEXITSTATUS(status) == 1, ""};
}

bool is_possible() {
  return disturbed(0, EIO, [] {}).problem.empty();
}

// Several tests for each error, so that they can run in parallel: each with every kParts-th call. (After a
// failed call on the catalog's lock, a child waits for itself, 10 s several times.) A child of a process with
// the address sanitizer takes much longer, so only a third of the calls fail there; builds without it, as for
// packages, have them all.
#ifdef __SANITIZE_ADDRESS__
constexpr unsigned kEvery = 3;
#else
constexpr unsigned kEvery = 1;
#endif
constexpr unsigned kParts = 15;

class CacheFaults : public CacheTest, public testing::WithParamInterface<std::tuple<int, unsigned>> {
 protected:
  std::optional<SmallTmpfs> memory_;

  void SetUp() override {
    if (!is_possible()) GTEST_SKIP() << "this system takes no seccomp filter";
    if (::geteuid() == 0) memory_.emplace(folder_ / "memory", "size=64m");  // flushes hundreds of caches
    config_.path = folder_ / "memory/cache";
    config_.state_dir = folder_ / "memory/state";
    for (const char* dataset : {"leased", "new", "plain"}) make(dataset);
    Lease lease;
    lease.id = "l-1";
    lease.dataset = "leased";
    lease.generation = 1;
    lease.holder = "slurm job 12";
    ASSERT_OK(catalog()->add_lease(lease));
  }
  void make(const std::string& dataset) {
    Source source{dataset, folder_ / ("source-" + dataset), {}};
    write_text(source.path / "f", "content of " + dataset);
    ASSERT_OK(open()->stage(source, options_, kQuiet, stop_));
  }
  // Like after a crash: one copy was published but not entered, one was being evicted.
  void leave_work_for_recovery() {
    ASSERT_OK(catalog()->remove("new", 1));
    write_text(config_.path / "data/going/1/f", "x");
    GenerationRow going;
    going.dataset = "going";
    going.generation = 1;
    going.state = GenerationState::Evicting;
    ASSERT_OK(catalog()->put(going));
  }
  std::string content(const std::filesystem::path& below) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(config_.path / below)) {
      if (entry.path().filename() == "f") return read_text(entry.path());
    }
    return "nothing";
  }
  void expect_nothing_lost() {
    const auto rows = catalog()->generations();
    ASSERT_OK(rows);
    for (const char* dataset : {"leased", "plain"}) {
      const auto row = std::ranges::find(*rows, dataset, &GenerationRow::dataset);
      ASSERT_NE(row, rows->end()) << dataset << " was forgotten";
      EXPECT_EQ(row->state, GenerationState::Ready);
      EXPECT_EQ(content("data/" + std::string(dataset)), "content of " + std::string(dataset));
      EXPECT_TRUE(std::filesystem::exists(config_.path / "data" / dataset / ".1.spark-manifest"));
    }
    ASSERT_EQ(catalog()->leases()->size(), 1U) << "the lease was lost";
    EXPECT_EQ(content("data/new"), "content of new");
  }
  void expect_whole() {
    const auto cache = open();
    const auto rows = cache->list();
    ASSERT_OK(rows);
    std::vector<std::string> names;
    for (const DatasetRow& row : *rows) {
      names.push_back(row.name);
      EXPECT_EQ(row.trouble, "");
      EXPECT_EQ(std::filesystem::canonical(config_.path / row.name), row.path);
    }
    EXPECT_EQ(names, (std::vector<std::string>{"leased", "new", "plain"}));
    EXPECT_TRUE(std::filesystem::is_empty(config_.path / ".trash"));
  }
};

TEST_P(CacheFaults, AFailedCallDuringOpenOrRecoveryLosesNoLeaseOrCopy) {
  const auto [error, part] = GetParam();
  unsigned nth = 1 + part * kEvery;
  for (bool goes_on = true; goes_on && !HasFailure(); nth += kParts * kEvery) {
    SCOPED_TRACE("call " + std::to_string(nth));
    leave_work_for_recovery();
    const auto outcome = disturbed(nth, error, [&] {
      const auto cache = open_cache_with(hooks_, config_, clock_);
      const auto recovered = cache ? (*cache)->recover([] {}) : Result<>();
      static_cast<void>(recovered);
    });
    EXPECT_EQ(outcome.problem, "");
    goes_on = outcome.was_called;
    expect_nothing_lost();
    expect_whole();
  }
  EXPECT_GT(nth, 100U) << "that was no recovery";
  for (const char* dataset : {"leased", "new", "plain"})
    ASSERT_OK(open()->verify(dataset, {}, kQuiet, stop_));
}
INSTANTIATE_TEST_SUITE_P(Errors, CacheFaults,
                         testing::Combine(testing::Values(EIO, ENOMEM), testing::Range(0U, kParts)));

// /proc and the control groups show whether a holder is alive; no answer does not mean that it has ended.
TEST(LeaseFaults, AHolderOfUnknownStateCountsAsAlive) {
  if (!is_possible()) GTEST_SKIP() << "this system takes no seccomp filter";
  const TempFolder folder;
  write_text(folder / "cgroup.events", "populated 1\n");
  struct stat info {};
  ASSERT_EQ(::stat(folder.path().c_str(), &info), 0);
  Lease lease;
  lease.process = process_with(::getppid());
  lease.cgroup = {folder.path(), info.st_ino};
  for (const int error : {EIO, ENOMEM, EMFILE}) {
    for (unsigned nth = 1; nth <= 8; ++nth) {
      const auto outcome = disturbed(nth, error, [&] {
        if (!is_live(lease, WallTime{})) ::abort();
      });
      EXPECT_EQ(outcome.problem, "") << "call " << nth << " failed with " << error;
    }
  }
}

}  // namespace
}  // namespace spark::staging
