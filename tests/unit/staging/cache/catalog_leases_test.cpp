// Leases in the catalog when a generation is entered.
#include <map>

#include "staging/cache/catalog/catalog.hpp"
#include "tests/unit/staging/support.hpp"

namespace spark::staging {
namespace {

using namespace test;

// The job of a live view reads the copy before the daemon knows that it is published, and the daemon may be
// killed then.
TEST(CatalogLeases, OneThatWaitsForADatasetBecomesOneOnItsNewGeneration) {
  const TempFolder folder;
  const auto catalog = Catalog::open(folder / "state");
  ASSERT_OK(catalog);
  const auto enter = [&](std::uint64_t generation) {
    GenerationRow row;
    row.dataset = "a";
    row.generation = generation;
    return (*catalog)->put(row);
  };
  const auto add = [&](const std::string& id, const std::string& dataset, std::uint64_t generation,
                       const SchedulerJob& job = {}) {
    Lease lease;
    lease.id = id;
    lease.dataset = dataset;
    lease.generation = generation;
    lease.job = job;
    return (*catalog)->add_lease(lease);
  };
  ASSERT_OK(enter(1));
  ASSERT_OK(add("earlier", "a", 1));
  ASSERT_OK(add("live", "a", 0));
  ASSERT_OK(add("other", "b", 0));
  ASSERT_OK(add("queued", "a", 0, {"slurm", "1", "alice", {}, "boot"}));
  ASSERT_OK(enter(2));
  std::map<std::string, std::uint64_t> generations;
  for (const Lease& one : *(*catalog)->leases()) generations[one.id] = one.generation;
  EXPECT_EQ(generations,
            (std::map<std::string, std::uint64_t>{{"earlier", 1}, {"live", 2}, {"other", 0}, {"queued", 0}}));
}

}  // namespace
}  // namespace spark::staging
