// A folder on a host that has no copy of it.
#pragma once

#include <gtest/gtest.h>

#include <fstream>

#include "fleet/adopted/adoption.hpp"
#include "fleet/adopted/offer_file.hpp"
#include "staging/cache/cache.hpp"
#include "tests/support/temp_folder.hpp"
#include "tests/unit/staging/models/made_hub.hpp"

namespace spark::fleet::test {

class SetClock final : public Clock {
 public:
  WallTime wall() const override { return WallTime(std::chrono::hours(500'000)); }
  SteadyTime steady() const override { return now; }
  SteadyTime now{std::chrono::hours(1)};
};

class AdoptedFixture : public testing::Test {
 protected:
  spark::test::TempFolder folder_;
  std::filesystem::path path_ = folder_ / "source", state_dir_ = folder_ / "state";
  AdoptedFolder adopted_{"set", path_};
  SetClock clock_;
  StopFlag stop_{false};

  AdoptedFixture() {
    write("large", std::string(20 * kMiB, 'l'));
    write("sub/small", "s");
    write("empty", "");
  }
  void write(const std::string& name, const std::string& text) {
    staging::test::write_text(path_ / name, text);
  }
  // Changes one byte, and gives the file its former size and times.
  void flip(const std::filesystem::path& file) {
    const auto time = std::filesystem::last_write_time(file);
    std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekp(100).put('X');
    bytes.close();
    std::filesystem::last_write_time(file, time);
  }
  // Looks, and reads the files at once if they have to be read.
  void look(Adoption& adoption) {
    adoption.look(stop_);
    if (!adoption.reading()) return;
    adoption.reading()->has_begun = true;
    adoption.reading()->run();
    adoption.look(stop_);
  }
  // Looks until its files have rested.
  void adopt(Adoption& adoption) {
    look(adoption);
    clock_.now += Adoption::kRest;
    look(adoption);
    EXPECT_EQ(adoption.state(), AdoptionState::Offered) << adoption.reason();
  }
  // Of a copy that this host would make.
  std::string hash_of_copy() {
    const auto cache =
        staging::Cache::open({folder_ / "cache", folder_ / "cache-state", 0, 0}, clock_).value_or(nullptr);
    staging::Source source{"set", path_, adopted_.exclude};
    source.model = adopted_.model;
    const auto staged = cache->stage(source, {}, {}, stop_);
    EXPECT_TRUE(staged) << staged.error().message();
    return staged ? staged->report.hash : "";
  }
  std::filesystem::path offer() const { return offer_file(state_dir_, "set"); }
};

}  // namespace spark::fleet::test
