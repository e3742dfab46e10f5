#include "base/result.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace spark {
namespace {

TEST(Error, TheMessageEndsWithTheHint) {
  const Error bare{Errc::Failed, "mounting /mnt/x: wrong type", ""};
  EXPECT_EQ(bare.message(), "mounting /mnt/x: wrong type");
  const Error hinted{Errc::Failed, "mounting /mnt/x: wrong type", "give filesystem.type"};
  EXPECT_EQ(hinted.message(), "mounting /mnt/x: wrong type - give filesystem.type");
}

TEST(Error, EveryKindHasTheContractsExitStatus) {
  EXPECT_EQ(exit_status(Errc::Failed), 1);
  EXPECT_EQ(exit_status(Errc::Denied), 1);
  EXPECT_EQ(exit_status(Errc::Unsupported), 1);
  EXPECT_EQ(exit_status(Errc::Invalid), 2);
  EXPECT_EQ(exit_status(Errc::NotFound), 3);
  EXPECT_EQ(exit_status(Errc::Unavailable), 4);
  EXPECT_EQ(exit_status(Errc::NoSpace), 5);
  EXPECT_EQ(exit_status(Errc::Mismatch), 6);
  EXPECT_EQ(exit_status(Errc::Refused), 7);
  EXPECT_EQ(exit_status(Errc::TimedOut), 124);
  EXPECT_EQ(exit_status(Errc::Cancelled), 130);
}

TEST(Error, EveryKindRoundTripsThroughItsName) {
  for (const Errc kind :
       {Errc::Failed, Errc::Invalid, Errc::NotFound, Errc::Unavailable, Errc::NoSpace, Errc::Mismatch,
        Errc::Refused, Errc::Denied, Errc::Unsupported, Errc::TimedOut, Errc::Cancelled}) {
    EXPECT_EQ(errc_from_string(to_string(kind)), kind) << to_string(kind);
  }
  EXPECT_EQ(errc_from_string("from a newer version"), Errc::Failed);
}

TEST(Error, ErrnoDeterminesTheKindAndTheMessage) {
  const auto kind_of = [](int number) { return fail_errno(number, "opening x").value().kind; };
  EXPECT_EQ(kind_of(ENOSPC), Errc::NoSpace);
  EXPECT_EQ(kind_of(EDQUOT), Errc::NoSpace);
  EXPECT_EQ(kind_of(ENOENT), Errc::NotFound);
  EXPECT_EQ(kind_of(EACCES), Errc::Denied);
  EXPECT_EQ(kind_of(EPERM), Errc::Denied);
  EXPECT_EQ(kind_of(ETIMEDOUT), Errc::TimedOut);
  EXPECT_EQ(kind_of(EINTR), Errc::Cancelled);
  EXPECT_EQ(kind_of(EOPNOTSUPP), Errc::Unsupported);
  EXPECT_EQ(kind_of(ECONNREFUSED), Errc::Unavailable);
  EXPECT_EQ(kind_of(EIO), Errc::Failed);
  EXPECT_EQ(fail_errno(EIO, "reading /dev/x", "look at the kernel log").value().message(),
            "reading /dev/x: Input/output error - look at the kernel log");
}

TEST(Error, ContextIsPrependedAndKindAndHintAreKept) {
  const Error inner{Errc::Refused, "it is not empty", "empty it"};
  const Error outer = fail_with(inner, "mounting /mnt/x").value();
  EXPECT_EQ(outer.kind, Errc::Refused);
  EXPECT_EQ(outer.message(), "mounting /mnt/x: it is not empty - empty it");
}

TEST(Result, HoldsAValueOrAnError) {
  const Result<int> value = 7;
  ASSERT_TRUE(value);
  EXPECT_EQ(*value, 7);
  const Result<int> error = fail(Errc::NotFound, "no such volume");
  ASSERT_FALSE(error);
  EXPECT_EQ(error.error().kind, Errc::NotFound);
  const Result<> nothing;
  EXPECT_TRUE(nothing);
}

}  // namespace
}  // namespace spark
