// Evicted copies that a program has opened since: they stay, and the program finds each of their files
// meanwhile.
#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "base/file.hpp"
#include "tests/support/failing_call.hpp"
#include "tests/unit/staging/cache/cache_fixture.hpp"

namespace spark::staging {
namespace {

using namespace test;

class PutBackTest : public CacheTest {
 protected:
  // A copy that a job has a file of open, and then a newer copy.
  void stage_two() {
    write_text(source_.path / "f", "one");
    const auto first = stage();
    ASSERT_OK(first);
    first_ = first->path;
    job_ = open_file(first_ / "f");
    write_text(source_.path / "f", "two!");
    const auto second = stage();
    ASSERT_OK(second);
    second_ = second->path;
  }
  static UniqueFd open_file(const std::filesystem::path& file) {
    return UniqueFd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  }
  GenerationRow row_of(std::uint64_t generation) {
    const auto rows = catalog()->generations();
    for (const GenerationRow& row : *rows)
      if (row.generation == generation) return row;
    ADD_FAILURE() << "no generation " << generation;
    return {};
  }
  void move_to_trash(const std::filesystem::path& copy) {
    std::filesystem::rename(copy, config_.path / ".trash" / ("set." + copy.filename().native()));
  }

  std::filesystem::path first_, second_;
  UniqueFd job_;
};

TEST_F(PutBackTest, ACopyThatWasOpenedBeforeItIsMovedIsNotMoved) {
  write_text(source_.path / "f", "one");
  const auto staged = stage();
  ASSERT_OK(staged);
  const UniqueFd watch(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  ASSERT_GE(::inotify_add_watch(watch.get(), staged->path.parent_path().c_str(), IN_MOVED_FROM), 0);
  ASSERT_GE(::inotify_add_watch(watch.get(), config_.path.c_str(), IN_MOVED_FROM | IN_DELETE), 0);
  hooks_.step = [&](const char* step) -> Result<> {
    if (std::string_view(step) == "marked") job_ = open_file(staged->path / "f");
    return {};
  };
  EXPECT_KIND(open()->evict("set"), Errc::Refused);
  char event[4096];
  EXPECT_LT(::read(watch.get(), event, sizeof event), 0) << "its link or its folder was away";
  EXPECT_EQ(read_text(link() / "f"), "one");
  EXPECT_EQ(row_of(1).state, GenerationState::Ready);
}

// As without memory: the kernel does not say whether a program has it open.
TEST_F(PutBackTest, ACopyThatCannotBeLookedAtIsNotMoved) {
  write_text(source_.path / "f", "one");
  ASSERT_OK(stage());
  const auto evicts = [&] {
    hooks_.step = [](const char* step) -> Result<> {
      static constexpr int kCalls[] = {SYS_fcntl};
      const auto fail_lease = [](const spark::test::FileCall& call) -> std::optional<long> {
        return call.arguments[1] == F_SETLEASE ? std::optional<long>(-ENOMEM) : std::nullopt;
      };
      if (std::string_view(step) == "marked" && !spark::test::intercept_calls(kCalls, fail_lease).empty())
        ::_exit(10);
      return {};
    };
    return open()->evict("set") ? 1 : 0;
  };
  EXPECT_EQ(run_and_kill(evicts, std::chrono::seconds(60)), 0);
  EXPECT_EQ(read_text(link() / "f"), "one");
  EXPECT_EQ(row_of(1).state, GenerationState::Ready);
  EXPECT_TRUE(catalog()->troubles()->empty()) << "it could not be evicted to make room any more";
}

TEST_F(PutBackTest, ItsRowKeepsWhatAnotherProcessHasNoted) {
  write_text(source_.path / "f", "one");
  const auto staged = stage();
  ASSERT_OK(staged);
  const WallTime scrubbed{std::chrono::seconds(1'800'000'000)};
  hooks_.step = [&](const char* step) -> Result<> {
    if (std::string_view(step) != "unlinked") return {};
    job_ = open_file(staged->path / "f");
    return catalog()->set_scrubbed("set", 1, scrubbed);
  };
  EXPECT_KIND(open()->evict("set"), Errc::Refused);
  EXPECT_EQ(row_of(1).scrubbed_at, scrubbed);
  EXPECT_EQ(row_of(1).state, GenerationState::Ready);
}

// An older copy would be served in place of the newest.
TEST_F(PutBackTest, OfAnInterruptedEvictionTheNewestCopyReturnsWithAnOlderOne) {
  stage_two();
  ASSERT_OK(catalog()->begin_eviction({row_of(2), row_of(1)}, clock_.wall()));
  move_to_trash(second_);
  move_to_trash(first_);
  ASSERT_TRUE(open());
  EXPECT_EQ(read_text(first_ / "f"), "one");
  EXPECT_EQ(read_text(second_ / "f"), "two!");
  EXPECT_EQ(read_text(link() / "f"), "two!");
  EXPECT_EQ(row_of(2).state, GenerationState::Ready);
}

// Its manifest was deleted: so may be some of its files.
TEST_F(PutBackTest, ACopyThatMayBeDeletedInPartDoesNotReturn) {
  stage_two();
  ASSERT_OK(catalog()->begin_eviction({row_of(1)}, clock_.wall()));
  move_to_trash(first_);
  std::filesystem::remove(first_.parent_path() / ".1.spark-manifest");
  ASSERT_TRUE(open());
  EXPECT_FALSE(std::filesystem::exists(first_));
  EXPECT_EQ(read_text(link() / "f"), "two!");
}

}  // namespace
}  // namespace spark::staging
