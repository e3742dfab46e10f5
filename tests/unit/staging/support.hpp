// Folders, trees and comparisons for the tests of staging.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/units.hpp"
#include "staging/copy/copy.hpp"

namespace spark::staging::test {

// A new folder below $TMPDIR or /tmp, removed at the end of the test.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view below) const { return path_ / below; }

 private:
  std::filesystem::path path_;
};

// A separate tmpfs of this size on a folder, unmounted at the end. Root only.
class SmallTmpfs {
 public:
  SmallTmpfs(std::filesystem::path folder, const std::string& options, unsigned long flags = 0);
  ~SmallTmpfs();
  SmallTmpfs(const SmallTmpfs&) = delete;
  SmallTmpfs& operator=(const SmallTmpfs&) = delete;

 private:
  std::filesystem::path folder_;
};

inline const ProgressSink kQuiet = [](const CopyProgress&) {};

// Runs `work` in a child process as user and group 65534, if this one is root's; whether it returned true.
bool as_nobody(const std::function<bool()>& work);

void write_text(const std::filesystem::path& path, std::string_view text);
// Makes the folder one that spark-stage has made, with this mark (OwnRest).
void mark_rest(const std::filesystem::path& folder, const std::string& mark);
std::string read_text(const std::filesystem::path& path);
// Non-repeating bytes, the same for the same seed.
std::string noise(std::size_t size, std::uint64_t seed);

// The changes that `rsync -aHAXn --checksum --modify-window=-1 --delete` (times to the nanosecond) would need
// to make the copy equal; empty: none.
std::string differences_by_rsync(const std::filesystem::path& source, const std::filesystem::path& copy);

// Bytes that a file takes on the disk.
Bytes allocated(const std::filesystem::path& path);

// Runs `work` in a child process and sends it SIGKILL after the delay, unless it ends earlier. Returns its
// exit status, 137 when killed.
int run_and_kill(const std::function<int()>& work, std::chrono::microseconds delay);

// Each evaluates its argument once.
#define ASSERT_OK(result)                       \
  if (const auto& result_ = (result); !result_) \
    FAIL() << result_.error().message();        \
  else                                          \
    static_cast<void>(0)
#define EXPECT_KIND(result, errc)              \
  if (const auto& result_ = (result); result_) \
    FAIL() << "it succeeded";                  \
  else                                         \
    EXPECT_EQ(result_.error().kind, errc) << result_.error().message()

}  // namespace spark::staging::test
