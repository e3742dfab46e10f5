// A checkpoint of the hosts `a` and `bb`.
#pragma once

#include "staging/copy/copy_with.hpp"
#include "staging/outputs/shards.hpp"
#include "tests/unit/staging/support.hpp"

namespace spark::staging::test {

class ShardsTest : public testing::Test {
 protected:
  ShardsTest() { std::filesystem::create_directories(checkpoint_.folder); }
  // The folder written by this host's job.
  std::filesystem::path source_of(const std::string& host) const {
    return folder_ / ("source-" + host) / checkpoint_.name;
  }
  void save(const std::string& host, const std::string& file, const std::string& content) {
    std::filesystem::create_directories((source_of(host) / file).parent_path());
    write_text(source_of(host) / file, content);
  }
  void save(const std::string& host) {
    save(host, "ranks/" + host + ".bin", noise(100'000, host.size()));
    save(host, "config", "of all");
  }
  void send(const std::string& host) {
    ASSERT_OK(make_shards(checkpoint_, host));
    ASSERT_OK(copy(source_of(host), checkpoint_.shards() / host, {}, kQuiet, stop_));
  }
  void save_and_send(const std::string& host) {
    save(host);
    send(host);
  }
  // Ends after this many steps of a join, as if its process was killed.
  StepHook stop_after(int steps) const {
    return [left = std::make_shared<int>(steps)](const char*) -> Result<> {
      if (--*left > 0) return {};
      return fail(Errc::Failed, "killed");
    };
  }
  // The same, after this step of a publishing.
  static StepHook stop_at(const std::string& last) {
    return [last](const char* step) -> Result<> {
      return last == step ? fail(Errc::Failed, "killed") : Result<>();
    };
  }
  using Hosts = std::vector<std::string>;

  TempFolder folder_;
  ShardedCheckpoint checkpoint_{folder_ / "volume", "step-1"};
  StopFlag stop_{false};
};

}  // namespace spark::staging::test
