#include "daemon/fleet/compare.hpp"

#include <gtest/gtest.h>

#include "base/result.hpp"

namespace spark::fleet {
namespace {

json::array array_of(const char* text) {
  return json::parse(text).as_array();
}

const json::array kOwn = array_of(R"([
  {"name": "a", "state": "ready", "generation": 2, "hash": "11", "bytes": 5, "files": 1, "path": "/c/a"},
  {"name": "b", "state": "copying", "generation": 0, "hash": "", "bytes": 0, "files": 0}])");

TEST(CompareDatasets, NamesEachHostThatHasACopy) {
  const auto compared = compare_datasets(kOwn, array_of(R"([
    {"name": "spark2", "answers": true, "datasets": [
      {"name": "a", "generation": 7, "hash": "11", "bytes": 5, "files": 1}]}])"));
  EXPECT_EQ(compared.at("datasets"), json::parse(R"([{"name": "a", "same": true, "hosts": [
    {"host": null, "generation": 2, "hash": "11", "bytes": 5, "files": 1},
    {"host": "spark2", "generation": 7, "hash": "11", "bytes": 5, "files": 1}]}])"));
  EXPECT_EQ(compared.at("peers"), json::parse(R"([{"name": "spark2", "answers": true}])"));
}

TEST(CompareDatasets, MarksDatasetsWithDifferentHashes) {
  const auto compared = compare_datasets(kOwn, array_of(R"([
    {"name": "spark2", "datasets": [{"name": "a", "hash": "12"}, {"name": "c", "hash": "13"}]},
    {"name": "spark3", "datasets": [{"name": "c", "hash": "13"}, {"name": "d"}, {}]}])"));
  const json::array& datasets = compared.at("datasets").as_array();
  ASSERT_EQ(datasets.size(), 2u);
  EXPECT_FALSE(datasets[0].at("same").as_bool());
  EXPECT_EQ(datasets[1].at("name"), "c");
  EXPECT_TRUE(datasets[1].at("same").as_bool());
  EXPECT_EQ(datasets[1].at("hosts").as_array().size(), 2u);
}

TEST(CompareDatasets, ASilentPeerIsShownWithTheReason) {
  const auto compared =
      compare_datasets({}, array_of(R"([{"name": "spark2", "answers": false, "reason": "no answer"}])"));
  EXPECT_TRUE(compared.at("datasets").as_array().empty());
  EXPECT_EQ(compared.at("peers").at(0).at("reason"), "no answer");
}

}  // namespace
}  // namespace spark::fleet
