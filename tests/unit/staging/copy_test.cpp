#include "staging/copy.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "base/child.hpp"

namespace spark::staging {
namespace {
TEST(Copy, Smoke) {
  const std::filesystem::path root = std::filesystem::temp_directory_path() / "spark-smoke";
  std::filesystem::remove_all(root);
  std::filesystem::create_directories(root / "src/a/b");
  std::ofstream(root / "src/a/f") << "hello";
  std::ofstream(root / "src/a/b/g") << std::string(20'000'001, 'x');
  StopFlag stop{false};
  const auto report = copy(
      root / "src", root / "dst", {}, [](const CopyProgress&) {}, stop);
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(report->files, 2u);
  const auto out = run_child({"rsync", "-aHAXn", "--checksum", "--itemize-changes", "--delete",
                              (root / "src/").string(), (root / "dst/").string()},
                             std::chrono::seconds(60));
  ASSERT_TRUE(out);
  EXPECT_EQ(out->out, "");
  EXPECT_EQ(out->exit_status, 0);
  const auto again = copy(
      root / "src", root / "dst", {}, [](const CopyProgress&) {}, stop);
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_TRUE(again->unchanged);
}
}  // namespace
}  // namespace spark::staging
