// A source and a destination in a temporary folder.
#pragma once

#include "base/threads.hpp"
#include "tests/unit/staging/support.hpp"

namespace spark::staging::test {

class CopyTest : public testing::Test {
 protected:
  TempFolder folder_;
  std::filesystem::path source_ = folder_ / "source", copy_ = folder_ / "copy";
  StopFlag stop_{false};
  CopyOptions options_;

  Result<CopyReport> copy_now() { return copy(source_, copy_, options_, kQuiet, stop_); }
  bool has_partial() const { return std::filesystem::exists(folder_ / ".copy.spark-partial"); }
};

}  // namespace spark::staging::test
