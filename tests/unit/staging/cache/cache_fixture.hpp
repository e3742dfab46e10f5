// A cache for the tests: in a temporary folder, can be opened repeatedly.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <memory>

#include "base/threads.hpp"
#include "staging/cache/cache_with.hpp"
#include "staging/cache/catalog/catalog.hpp"
#include "staging/manifest/names.hpp"
#include "tests/unit/staging/support.hpp"

namespace spark::staging::test {

class CacheTest : public testing::Test {
 protected:
  TempFolder folder_;
  CacheConfig config_{folder_ / "cache", folder_ / "state", 0, 0};
  SystemClock clock_;
  StopFlag stop_{false};
  CopyOptions options_;
  CopyHooks hooks_;
  Source source_{"set", folder_ / "source", {}};

  // Like the daemon at its start.
  std::unique_ptr<Cache> open() {
    auto cache = open_cache_with(hooks_, config_, clock_);
    if (!cache) ADD_FAILURE() << cache.error().message();
    if (!cache) return nullptr;
    if (auto recovered = (*cache)->recover([] {}); !recovered) ADD_FAILURE() << recovered.error().message();
    return std::move(*cache);
  }
  Result<Staged> stage(Cache& cache) { return cache.stage(source_, options_, kQuiet, stop_); }
  Result<Staged> stage() {
    auto cache = open_cache_with(hooks_, config_, clock_);
    if (!cache) return cache.take_error();
    return stage(**cache);
  }
  std::filesystem::path link() const { return config_.path / folder_name(source_.dataset); }
  std::unique_ptr<Catalog> catalog() { return std::move(*Catalog::open(config_.state_dir)); }

  // Flips a byte without changing the times.
  static void corrupt(const std::filesystem::path& file) {
    struct stat before {};
    ASSERT_EQ(::stat(file.c_str(), &before), 0);
    std::string text = read_text(file);
    text[text.size() / 2] = static_cast<char>(text[text.size() / 2] ^ 1);
    write_text(file, text);
    const timespec times[2] = {before.st_atim, before.st_mtim};
    ASSERT_EQ(::utimensat(AT_FDCWD, file.c_str(), times, 0), 0);
  }
};

}  // namespace spark::staging::test
