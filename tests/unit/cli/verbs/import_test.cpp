#include <gtest/gtest.h>

#include "base/file.hpp"
#include "base/text.hpp"
#include "cli/view/text.hpp"
#include "daemon/config/parse.hpp"
#include "tests/support/host_by_hand.hpp"
#include "tests/unit/cli/fixture.hpp"

namespace spark::cli {
namespace {

class ImportVerb : public ::testing::Test {
 protected:
  ImportVerb() {
    test::set_up_by_hand(host);
    program.context.root = host.root();
  }
  test::FakeSysfs host;
  Program program;
};

TEST_F(ImportVerb, PrintsAValidConfiguration) {
  EXPECT_EQ(program.run({"import"}), 0) << program.errors();
  expect_golden("import.yaml", program.output());
  const auto parsed = config::parse(program.output(), "import.yaml");
  EXPECT_TRUE(parsed) << parsed.error().message();
  EXPECT_EQ(program.errors(), "1 target, 3 volumes; read-only from now on, was read-write: 2 volumes\n");
}

TEST_F(ImportVerb, TheTableNamesATargetOnce) {
  EXPECT_EQ(program.run({"import", "--dry-run"}), 0) << program.errors();
  EXPECT_EQ(program.output().find("target target"), std::string::npos) << program.output();
  EXPECT_NE(program.output().find("connected by spark-staged"), std::string::npos) << program.output();
}

TEST_F(ImportVerb, TheTableSaysWhichVolumesBecomeReadOnly) {
  EXPECT_EQ(program.run({"import", "--dry-run"}), 0) << program.errors();
  EXPECT_NE(program.output().find("mounted read-only by spark-staged, was read-write"), std::string::npos)
      << program.output();
}

TEST_F(ImportVerb, WritesANewFileAndNeverOverwritesOne) {
  const std::string file = host.root() / "spark-stage.yaml";
  EXPECT_EQ(program.run({"import", "--output", file}), 0) << program.errors();
  const auto written = read_file(file);
  ASSERT_TRUE(written);
  EXPECT_TRUE(config::parse(*written, file));
  EXPECT_EQ(program.output(), "");
  EXPECT_EQ(program.run({"import", "--output", file}), 7);
  EXPECT_NE(program.errors().find("it is there already"), std::string::npos);
  EXPECT_EQ(read_file(file).value_or(""), *written);
}

}  // namespace
}  // namespace spark::cli
