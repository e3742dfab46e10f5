#include "daemon/outputs/stage_out_request.hpp"

#include <gtest/gtest.h>

namespace spark::outputs {
namespace {

StageOutRequest request_to_send() {
  StageOutRequest wanted;
  wanted.id = "one";
  wanted.source = "/out/step-1";
  wanted.volume = "checkpoints";
  wanted.path = "run/step-1";
  wanted.asker.uid = 1000;
  return wanted;
}

TEST(StageOutRequest, ARecordedRequestKeepsItsLimits) {
  StageOutRequest limited = request_to_send();
  limited.keep = 3;
  const auto read = request_from_json(to_json(limited));
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_TRUE(read->is_same(limited));
}

TEST(StageOutRequest, ARecordedRequestIsForTheStateOfTheSourceThatWasFoundComplete) {
  StageOutRequest found = request_to_send();
  found.written = 21;
  json::object record = to_json(found);
  const auto read = request_from_json(record);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_TRUE(read->is_same(found));
  StageOutRequest later = found;
  later.written = 22;
  EXPECT_FALSE(read->is_same(later)) << "saved again since";
  record.erase("written");
  const auto old = request_from_json(record);
  ASSERT_TRUE(old) << old.error().message();
  EXPECT_EQ(old->written, 0) << "of an earlier version: not compared";
}

}  // namespace
}  // namespace spark::outputs
