#include "fleet/transport/http.hpp"

#include <gtest/gtest.h>

using namespace spark::fleet;

namespace {

TEST(FleetHttp, AnAnswersHeadIsParsedAsWrittenAndTheBodyIsKept) {
  AnswerHead head;
  head.length = 5;
  head.piece = spark::staging::Digest{1, 2};
  std::string text = to_text(head) + "hello";
  const auto read = parse_answer(text).value();
  ASSERT_TRUE(read);
  EXPECT_EQ(read->status, 200U);
  EXPECT_EQ(read->length, 5U);
  EXPECT_EQ(read->piece, head.piece);
  EXPECT_FALSE(read->file);
  EXPECT_EQ(text, "hello");
}

TEST(FleetHttp, ARequestsHeadIsParsedAsWritten) {
  std::string text = request_text("/fleet/v1/node") + request_text("/x");
  EXPECT_EQ(parse_request(text).value()->target, "/fleet/v1/node");
  EXPECT_EQ(parse_request(text).value()->target, "/x");
  EXPECT_FALSE(parse_request(text).value());
}

TEST(FleetHttp, AnythingButAGetWithoutABodyIsRejected) {
  std::string post = "POST /fleet/v1/node HTTP/1.1\r\n\r\n";
  EXPECT_FALSE(parse_request(post).value()->is_get);
  std::string body = "GET / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello";
  EXPECT_FALSE(parse_request(body).value()->is_get);
  std::string garbage = "\x16\x03\r\n\r\n";
  EXPECT_FALSE(parse_request(garbage));
  std::string endless(10'000, 'x');
  EXPECT_FALSE(parse_request(endless));
}

}  // namespace
