#include "csi/status.hpp"

#include <gtest/gtest.h>

namespace spark::csi {
namespace {

TEST(CsiStatus, EachErrorKindHasItsGrpcCode) {
  EXPECT_EQ(status_of({Errc::TimedOut, "imagenet: 62 %", ""}).code, Code::Aborted);
  EXPECT_EQ(status_of({Errc::Cancelled, "x", ""}).code, Code::Aborted);
  EXPECT_EQ(status_of({Errc::Invalid, "x", ""}).code, Code::InvalidArgument);
  EXPECT_EQ(status_of({Errc::NotFound, "x", ""}).code, Code::NotFound);
  EXPECT_EQ(status_of({Errc::Unavailable, "x", ""}).code, Code::Unavailable);
  EXPECT_EQ(status_of({Errc::NoSpace, "x", ""}).code, Code::ResourceExhausted);
  EXPECT_EQ(status_of({Errc::Refused, "x", ""}).code, Code::FailedPrecondition);
  EXPECT_EQ(status_of({Errc::Denied, "x", ""}).code, Code::PermissionDenied);
  EXPECT_EQ(status_of({Errc::Failed, "x", ""}).code, Code::Internal);
}

TEST(CsiStatus, TheMessageIsCutToTheLengthOfAKubernetesEvent) {
  EXPECT_EQ(status_of({Errc::Failed, "what", "hint"}).sentence, "what - hint");
  EXPECT_LT(status_of({Errc::Failed, std::string(5000, 'x'), "hint"}).sentence.size(), 1000u);
}

}  // namespace
}  // namespace spark::csi
