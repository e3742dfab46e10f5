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

// The one of an earlier daemon may have a held source.
TEST(StageOutRequest, OfAnOutputIsTheSameForTheSameStateWhereverItsSourceIs) {
  StageOutRequest one;
  one.source = "/out/step-1";
  StageOutRequest held = one;
  held.source = "/.out.spark-held/step-1";
  EXPECT_FALSE(held.is_same(one)) << "a person's";
  one.rule = held.rule = "rename";
  EXPECT_FALSE(held.is_same(one)) << "its state is not known";
  one.written = held.written = 7;
  EXPECT_TRUE(held.is_same(one));
  held.written = 8;
  EXPECT_FALSE(held.is_same(one)) << "it was saved again";
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
