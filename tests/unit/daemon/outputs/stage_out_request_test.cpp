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
}

TEST(StageOutRequest, TheRecordOfAnEarlierVersionMayHaveNoState) {
  StageOutRequest accepted = request_to_send();
  accepted.written = 0;  // that of a source that was not there
  json::object record = to_json(accepted);
  EXPECT_EQ(request_from_json(record)->written, 0);
  record.erase("attempt");
  EXPECT_FALSE(request_from_json(record)->written) << "it was not read";
  record["written"] = 21;
  EXPECT_EQ(request_from_json(record)->written, 21);
  record.erase("written");
  EXPECT_FALSE(request_from_json(record)->written);
  record["changed_ns"] = 20;
  EXPECT_EQ(request_from_json(record)->written, 20) << "of version 0.2";
}

TEST(StageOutRequest, ThatIsRepeatedIsForTheStateThatWasAccepted) {
  json::object body{{"source", "/out/step-1"}, {"destination", "checkpoints:run/step-1"}};
  const auto first = request_of(body);
  ASSERT_TRUE(first);
  EXPECT_FALSE(first->is_repeated || first->written);
  StageOutRequest accepted = *first;
  accepted.written = -9'007'199'254'740'993;  // more than a double has
  for (const auto& member : accepted_of(accepted)) body[member.key()] = member.value();
  const auto repeated = request_of(body);
  ASSERT_TRUE(repeated) << repeated.error().message();
  EXPECT_TRUE(repeated->is_repeated);
  EXPECT_EQ(repeated->written, accepted.written);
  for (const char* text : {"", "7x", " 7", "99999999999999999999"}) {
    body["written"] = text;
    EXPECT_FALSE(request_of(body)) << text;
  }
  body["written"] = 7;
  EXPECT_FALSE(request_of(body)) << "it is a text";
}

TEST(StageOutRequest, OfAnOutputIsAcceptedForItsCheckpoint) {
  StageOutRequest accepted = request_to_send();
  accepted.written = 21;
  accepted.rule = "rename";
  const auto read = read_accepted(accepted_of(accepted));
  ASSERT_TRUE(read && *read);
  EXPECT_EQ((*read)->checkpoint, "step-1");
  EXPECT_EQ((*read)->written, 21);
  EXPECT_FALSE(read_accepted({{"checkpoint", "../x"}, {"written", "21"}}));
  EXPECT_FALSE(read_accepted({{"checkpoint", "step-1"}}));
}

TEST(StageOutRequest, ThatIsRepeatedIsOutdatedByAnother) {
  StageOutRequest repeated = request_to_send(), other = request_to_send();
  repeated.written = other.written = 7;
  other.written = 8;
  EXPECT_FALSE(repeated.is_outdated_by(other)) << "it is a first one";
  repeated.is_repeated = true;
  EXPECT_TRUE(repeated.is_outdated_by(other));
  other.written = 7;
  EXPECT_FALSE(repeated.is_outdated_by(other));
  other.attempt = "7.1";
  EXPECT_TRUE(repeated.is_outdated_by(other));
  other.source = "/out/other";
  EXPECT_FALSE(repeated.is_outdated_by(other)) << "of something else";
}

TEST(StageOutRequest, OfAUserForAnotherStateOrAttemptIsALaterOne) {
  StageOutRequest earlier = request_to_send(), later = request_to_send();
  earlier.written = later.written = 7;
  EXPECT_FALSE(later.is_later_than(earlier)) << "it is the same";
  later.written = 8;
  EXPECT_TRUE(later.is_later_than(earlier));
  later.rule = "rename";
  EXPECT_FALSE(later.is_later_than(earlier)) << "an output's";
  later = earlier;
  later.attempt = "7.1";
  EXPECT_TRUE(later.is_later_than(earlier) && !later.is_same(earlier));
  later.source = "/out/step-2";
  EXPECT_FALSE(later.is_later_than(earlier));
}

}  // namespace
}  // namespace spark::outputs
