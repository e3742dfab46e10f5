// A dataset that is a model in a cache of Hugging Face.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/unit/staging/cache/cache_fixture.hpp"
#include "tests/unit/staging/models/made_hub.hpp"

namespace spark::staging::test {

namespace fs = std::filesystem;
using testing::HasSubstr;

inline const std::string kName = "org/tiny", kShard = "model-00002-of-00002.safetensors";

class ModelInCacheTest : public CacheTest {
 protected:
  ModelInCacheTest() {
    source_.model = ModelOptions{kName};
    source_.path = hub_.folder();
  }

  MadeHub hub_{folder_ / "hub"};

  // Relative to the copy; a symlink has a mark that no test expects.
  std::set<std::string> files_in(const Staged& staged) const {
    const fs::path copy = copy_of(staged);
    std::set<std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(copy)) {
      if (entry.is_symlink()) all.insert("-> " + entry.path().lexically_relative(copy).string());
      if (entry.is_regular_file()) all.insert(entry.path().lexically_relative(copy).string());
    }
    return all;
  }
  fs::path copy_of(const Staged& staged) const {
    return config_.path / "data" / folder_name(source_.dataset) / std::to_string(staged.generation);
  }
  std::set<std::string> wanted_files() const {
    std::set<std::string> all{"models--org--tiny/refs/main"};
    for (const auto& [file, content] : hub_.files)
      all.insert("models--org--tiny/snapshots/" + hub_.commit + "/" + file);
    return all;
  }
  void expect_refused(const std::string& named, Errc kind = Errc::Mismatch) {
    const auto staged = stage();
    ASSERT_FALSE(staged);
    EXPECT_EQ(staged.error().kind, kind) << staged.error().message();
    EXPECT_THAT(staged.error().message(), HasSubstr(named));
    EXPECT_FALSE(fs::exists(link()));
  }
};

}  // namespace spark::staging::test
