#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "daemon/workers/verbs/verbs.hpp"
#include "daemon/workers/wire.hpp"
#include "staging/cache/cache.hpp"
#include "tests/support/temp_folder.hpp"

namespace spark::workers {
namespace {

class LeaseVerbTest : public testing::Test {
 protected:
  Result<json::object> ask(const std::string& op, json::object request = {}) {
    config::CacheSettings settings;
    settings.path = folder_ / "cache";
    request["cache"] = to_json(settings, folder_ / "state");
    request["op"] = op;
    return lease_verb(request, [](const json::object&) {});
  }
  std::size_t listed() {
    const auto answer = ask("list");
    return answer ? get_array(*answer, "leases")->size() : 99;
  }

  test::TempFolder folder_;
};

// As with a full state folder.
TEST_F(LeaseVerbTest, ALeaseThatTheCatalogCannotTakeIsKeptOnTheCachesDrive) {
  const SystemClock clock;
  const staging::CacheConfig config{folder_ / "cache", folder_ / "state", 0, 0};
  ASSERT_TRUE(staging::Cache::open(config, clock));
  const auto file = folder_ / "state/catalog.sqlite", aside = folder_ / "aside";
  std::filesystem::rename(file, aside);
  std::filesystem::create_directory(file);
  staging::Lease lease;
  lease.id = "1f";
  lease.dataset = "imagenet";
  lease.generation = 3;
  lease.process = staging::process_with(::getpid());
  const auto added = ask("add", to_json(lease));
  EXPECT_TRUE(added) << added.error().message();
  EXPECT_FALSE(ask("list")) << "a daemon that starts waits for the catalog";
  std::filesystem::remove(file);
  std::filesystem::rename(aside, file);
  ASSERT_EQ(listed(), 1U);
  const auto answer = ask("list");
  const staging::Lease kept = lease_from_json(get_array(*answer, "leases")->front().as_object());
  EXPECT_EQ(kept.id, "1f");
  EXPECT_EQ(kept.generation, 3U);
  EXPECT_EQ(kept.process, lease.process);
  EXPECT_TRUE(ask("remove", {{"ids", json::array{json::value("1f")}}}));
  EXPECT_EQ(listed(), 0U);
}

}  // namespace
}  // namespace spark::workers
