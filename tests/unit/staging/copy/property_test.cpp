// Random trees, compared by rsync: the copy always equals its source.
#include <algorithm>

#include "base/child.hpp"
#include "tests/unit/staging/cache/cache_fixture.hpp"
#include "tests/unit/staging/copy/copy_fixture.hpp"
#include "tests/unit/staging/random_tree.hpp"

namespace spark::staging {
namespace {

using namespace test;

struct Case {
  std::uint64_t seed;
  IoKind io;
};

std::vector<Case> cases(std::uint64_t seeds) {
  std::vector<Case> all;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    for (const IoKind io : {IoKind::Auto, IoKind::Threads}) all.push_back({seed, io});
  }
  return all;
}

std::string name_of(const testing::TestParamInfo<Case>& info) {
  return (info.param.io == IoKind::Threads ? "Threads" : "Auto") + std::to_string(info.param.seed);
}

CopyOptions options_of(const Case& drawn) {
  CopyOptions options;
  options.io = drawn.io;
  options.verify = drawn.seed % 2 == 0;
  options.chunk = drawn.seed % 3 == 0 ? 64 * kKiB : 2 * kMiB;
  return options;
}

class RandomTree : public CopyTest, public testing::WithParamInterface<Case> {
 protected:
  RandomTree() { options_ = options_of(GetParam()); }
};

TEST_P(RandomTree, IsCopiedSoThatRsyncSeesNoDifference) {
  make_random_tree(source_, GetParam().seed);
  const auto report = copy_now();
  ASSERT_OK(report);
  EXPECT_EQ(differences_by_rsync(source_, copy_), "");
  const auto about_links_out = std::ranges::count_if(report->warnings, [](const std::string& warning) {
    return warning.find("out of the set") != std::string::npos;
  });
  EXPECT_EQ(about_links_out, report->outside_links > 0 ? 1 : 0);
  EXPECT_FALSE(has_partial());
  const auto again = copy_now();
  ASSERT_OK(again);
  EXPECT_TRUE(again->unchanged);
  EXPECT_EQ(again->hash, report->hash);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomTree, testing::ValuesIn(cases(8)), name_of);

class RandomChanges : public RandomTree {};

TEST_P(RandomChanges, AreCopiedSoThatRsyncSeesNoDifference) {
  make_random_tree(source_, GetParam().seed);
  ASSERT_OK(copy_now());
  for (std::uint64_t round = 0; round < 5; ++round) {
    change_random_tree(source_, GetParam().seed * 100 + round);
    ASSERT_OK(copy_now());
    ASSERT_EQ(differences_by_rsync(source_, copy_), "") << "round " << round;
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, RandomChanges, testing::ValuesIn(cases(4)), name_of);

// Unchanged files of a new generation are hard links to the old one's.
class RandomGenerations : public CacheTest, public testing::WithParamInterface<Case> {
 protected:
  RandomGenerations() { options_ = options_of(GetParam()); }

  void lease(const Staged& staged) {
    Lease lease;
    lease.id = std::to_string(staged.generation);
    lease.dataset = "set";
    lease.generation = staged.generation;
    lease.holder = "test";
    ASSERT_OK(catalog()->add_lease(lease));
  }
  std::filesystem::path keep(const std::string& name) {
    const auto kept = folder_ / name;
    const auto done =
        run_child({"rsync", "-aHAX", "--modify-window=-1", source_.path.native() + "/", kept.native() + "/"},
                  std::chrono::minutes(1));
    EXPECT_TRUE(done && done->exit_status == 0);
    return kept;
  }
};

TEST_P(RandomGenerations, EachEqualsItsSourceAndNoneChangesALeasedOne) {
  make_random_tree(source_.path, GetParam().seed);
  std::vector<std::pair<std::filesystem::path, std::filesystem::path>>
      generations;  // each with a kept copy of its source
  for (std::uint64_t round = 0; round < 3; ++round) {
    const auto staged = stage();
    ASSERT_OK(staged);
    lease(*staged);
    EXPECT_EQ(differences_by_rsync(source_.path, staged->path), "") << "round " << round;
    generations.emplace_back(keep("source-" + std::to_string(round)), staged->path);
    change_random_tree(source_.path, GetParam().seed * 100 + round);
  }
  for (const auto& [source, copy] : generations) EXPECT_EQ(differences_by_rsync(source, copy), "") << copy;
}
INSTANTIATE_TEST_SUITE_P(Seeds, RandomGenerations, testing::ValuesIn(cases(3)), name_of);

}  // namespace
}  // namespace spark::staging
