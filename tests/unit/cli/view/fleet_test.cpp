// ls --fleet
#include <gtest/gtest.h>

#include "tests/unit/cli/fixture.hpp"

namespace spark::cli {
namespace {

class FleetView : public ::testing::Test {
 protected:
  Program program;
};

constexpr char kPeers[] = R"(, "peers": [{"name": "spark2", "answers": true, "reason": null},
  {"name": "spark3", "answers": false, "reason": "connecting to 10.0.0.3:7789: timed out"}]})";

TEST_F(FleetView, ShowsADatasetsCopiesSideBySide) {
  program.client.answer("GET /v1/fleet/datasets",
                        200, R"({"datasets": [{"name": "imagenet", "same": true, "hosts": [
    {"host": null, "generation": 3, "hash": "xxh3:0123456789abcdef0123456789abcdef", "bytes": 142000000000, "files": 1281167},
    {"host": "spark2", "generation": 1, "hash": "xxh3:0123456789abcdef0123456789abcdef", "bytes": 142000000000,
     "files": 1281167}]}])" + std::string(kPeers));
  EXPECT_EQ(program.run({"ls", "--fleet"}), 0);
  expect_golden("ls-fleet.txt", program.output());
}

TEST_F(FleetView, DifferingCopiesExitWithSix) {
  program.client.answer("GET /v1/fleet/datasets", 200,
                        R"({"datasets": [{"name": "imagenet", "same": false, "hosts": [
    {"host": null, "generation": 3, "hash": "11", "bytes": 1000, "files": 1},
    {"host": "spark2", "generation": 1, "hash": "22", "bytes": 1000, "files": 1}]}])" +
                            std::string(kPeers));
  EXPECT_EQ(program.run({"ls", "--fleet"}), 6);
  expect_golden("ls-fleet-differs.txt", program.output());
}

TEST_F(FleetView, AnEmptyListIsExplained) {
  program.client.answer("GET /v1/fleet/datasets", 200, R"({"datasets": [])" + std::string(kPeers));
  EXPECT_EQ(program.run({"ls", "--fleet"}), 0);
  EXPECT_EQ(program.output().substr(0, 17), "Nothing is staged");
}

}  // namespace
}  // namespace spark::cli
