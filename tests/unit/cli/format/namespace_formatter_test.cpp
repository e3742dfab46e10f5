// The order of steps around mkfs: check, reserve, format, and release the reservation if formatting failed.
#include "cli/format/namespace_formatter.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/sim/reservations.hpp"
#include "tests/support/fake_sysfs.hpp"

namespace spark::cli {
namespace {

using nvmetcp::Hold;
using testing::ElementsAre;
using testing::HasSubstr;

class NamespaceFormatterTest : public testing::Test {
 protected:
  NamespaceFormatterTest() {
    request.device = "/dev/nvme3n1";
    request.subsystem = "models";
    request.nsid = 1;
    request.us = {"host-a", 11};
    request.filesystem = {"ext4", "models", "2f7c1d2e-0000-4000-8000-000000000001"};
  }
  FormatDevice device() {
    return {[this] { return step("check", checked); }, [this] { return step("make", made); }};
  }
  Result<> step(const char* name, const Result<>& result) {
    space.commands.emplace_back(name);
    return result;
  }
  Result<Hold> look() { return look_before_format(request, commands, device()); }
  Result<Hold> format() { return format_under_reservation(request, commands, device()); }
  std::string holder() { return space.holder() == nullptr ? "" : space.holder()->host_id; }

  FormatRequest request;
  sim::KeptReservations space;
  sim::SimulatedReservations commands{space, "host-a"}, others{space, "host-b"};
  Result<> checked, made;
};

TEST_F(NamespaceFormatterTest, CheckingChangesNothing) {
  EXPECT_EQ(look().value(), Hold::Free);
  EXPECT_THAT(space.commands, ElementsAre("check"));
}

TEST_F(NamespaceFormatterTest, TheReservationIsAcquiredBeforeWritingAndKept) {
  EXPECT_EQ(format().value(), Hold::Ours);
  EXPECT_THAT(space.commands, ElementsAre("check", "register", "acquire", "make"));
  EXPECT_EQ(holder(), "host-a");
}

TEST_F(NamespaceFormatterTest, AFailedFormatReleasesTheReservation) {
  made = fail(Errc::Failed, "mkfs.ext4 ended with 1");
  const auto formatted = format();
  ASSERT_FALSE(formatted);
  EXPECT_EQ(formatted.error().what, "mkfs.ext4 ended with 1");
  EXPECT_EQ(holder(), "");
}

TEST_F(NamespaceFormatterTest, AFailedFormatKeepsAReservationHeldBefore) {
  ASSERT_TRUE(nvmetcp::hold_reservation(commands, request.us));
  made = fail(Errc::Failed, "mkfs.ext4 ended with 1");
  EXPECT_FALSE(format());
  EXPECT_EQ(holder(), "host-a");
}

TEST_F(NamespaceFormatterTest, ANamespaceReservedByAnotherHostIsRefusedUntouched) {
  ASSERT_TRUE(nvmetcp::hold_reservation(others, {"host-b", 22}));
  space.commands.clear();
  for (const auto& refused : {look(), format()}) {
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, Errc::Refused);
    EXPECT_THAT(refused.error().message(), HasSubstr("the host with host ID host-b holds the reservation"));
  }
  EXPECT_TRUE(space.commands.empty());
}

TEST_F(NamespaceFormatterTest, ACloneOfThisHostIsToldToMakeANewIdentity) {
  space.state.registrants = {{"host-a", 99, true}};
  EXPECT_THAT(look().error().message(), HasSubstr("spark-stage host new-identity"));
}

TEST_F(NamespaceFormatterTest, WithoutReservationsExt4IsMadeAndXfsIsRefused) {
  space.offers = false;
  EXPECT_EQ(format().value(), Hold::Unsupported);
  request.filesystem.type = "xfs";
  request.must_reserve = true;
  space.commands.clear();
  const auto refused = format();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Errc::Refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("xfs has no multi-mount protection"));
  EXPECT_TRUE(space.commands.empty());
}

TEST_F(NamespaceFormatterTest, AFenceWithoutReservationSendsNoReservationCommand) {
  request.may_reserve = false;
  EXPECT_EQ(format().value(), Hold::Unsupported);
  EXPECT_THAT(space.commands, ElementsAre("check", "make"));
}

TEST_F(NamespaceFormatterTest, ANonBlankDeviceIsNotReserved) {
  checked = fail(Errc::Refused, "it holds xfs");
  EXPECT_EQ(format().error().what, "it holds xfs");
  EXPECT_THAT(space.commands, ElementsAre("check"));
}

class UnfinishedFormatTest : public testing::Test {
 protected:
  UnfinishedFormatTest() {
    block.nsid = 1;
    block.uuid = "aaaaaaaa-0000-4000-8000-000000000001";
    block.bytes = 1000;
  }
  UnfinishedFormat note() { return {files.root(), "models", "nqn.a", block}; }

  test::FakeSysfs files;
  nvmetcp::Namespace block;
};

TEST_F(UnfinishedFormatTest, TheNoteExistsUntilTheFormatEnds) {
  EXPECT_FALSE(note().is_there());
  ASSERT_TRUE(note().begin());
  EXPECT_TRUE(note().is_there());
  note().end();
  EXPECT_FALSE(note().is_there());
}

TEST_F(UnfinishedFormatTest, TheNoteAppliesToOneNamespaceOnly) {
  ASSERT_TRUE(note().begin());
  block.uuid = "bbbbbbbb-0000-4000-8000-000000000001";
  EXPECT_FALSE(note().is_there());
  block.uuid.clear();
  ASSERT_TRUE(note().begin());
  EXPECT_FALSE(note().is_there()) << "a namespace that can't be told apart";
}

}  // namespace
}  // namespace spark::cli
