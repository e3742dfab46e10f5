// A job's folder with checkpoints, and what is found there.
#pragma once

#include <gmock/gmock.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "staging/outputs/checkpoints.hpp"
#include "tests/unit/staging/support.hpp"

namespace spark::staging::test {

using Rule = Completeness::Rule;
using Names = std::vector<std::string>;

inline constexpr Duration kSettled{3'000};

class Checkpoints : public testing::Test {
 protected:
  void file(const std::string& path, const std::string& text = "x") {
    std::filesystem::create_directories((out_ / path).parent_path());
    write_text(out_ / path, text);
  }
  void date(const std::string& name, int seconds_ago) {
    std::filesystem::last_write_time(
        out_ / name, std::filesystem::file_time_type::clock::now() - std::chrono::seconds(seconds_ago));
  }
  std::vector<Checkpoint> all(Completeness completeness, WallTime now, const KnownStates& known = {}) {
    auto listed = list_checkpoints(out_, completeness, now, kSettled, {}, known);
    EXPECT_TRUE(listed) << listed.error().message();
    return listed.value_or(std::vector<Checkpoint>());
  }
  // A file that was written `minute` minutes after the first of the others.
  void written(int minute, const std::string& path, const std::string& text = "x") {
    file(path, text);
    std::filesystem::last_write_time(out_ / path, start_ + std::chrono::minutes(minute));
  }
  // The checkpoints after a minute without changes.
  std::vector<Checkpoint> settled(Rule rule, const std::string& marker = "") {
    return all({rule, marker}, std::chrono::system_clock::now() + std::chrono::minutes(1));
  }
  // The changes of these names as last seen.
  std::map<std::string, std::int64_t> seen(const Names& names) {
    std::map<std::string, std::int64_t> changes;
    for (const std::string& name : names) changes[name] = 0;
    for (const Checkpoint& one : settled(Rule::Rename)) {
      if (changes.contains(one.name)) changes[one.name] = one.written;
    }
    return changes;
  }
  Result<> remove(const KnownStates& states, const std::vector<std::filesystem::path>& sources = {}) {
    removed_.clear();
    return remove_checkpoints(out_, states, sources,
                              [&](const std::string& name) { removed_.push_back(name); });
  }
  Names complete(Rule rule, const std::string& marker = "") {
    Names names;
    for (const Checkpoint& one : settled(rule, marker)) {
      if (one.incomplete.empty()) names.push_back(one.name);
    }
    return names;
  }
  std::string why_not(Rule rule, const std::string& name, const std::string& marker = "") {
    for (const Checkpoint& one : settled(rule, marker)) {
      if (one.name == name) return one.incomplete;
    }
    return "there is no " + name;
  }

  const std::filesystem::file_time_type start_ =
      std::filesystem::file_time_type::clock::now() - std::chrono::hours(24);
  TempFolder folder_;
  std::filesystem::path out_ = folder_ / "out";
  Names removed_;  // by the last removal
};

}  // namespace spark::staging::test
