#include "fleet/protocol/request.hpp"

#include <gtest/gtest.h>

#include <vector>

using namespace spark::fleet;

namespace {

const std::string kAsked = "p" + std::string(32, 'a');

TEST(PeerRequest, IsParsedAsWritten) {
  using Kind = PeerRequest::Kind;
  const PeerRequest requests[] = {{Kind::Node, "", 0, 0},
                                  {Kind::Datasets, "", 0, 0},
                                  {Kind::Set, kAsked, 0, 0},
                                  {Kind::Set, kAsked, 0, 0xfedcba9876543210U},
                                  {Kind::Unit, kAsked, 7, 0},
                                  {Kind::Walk, kAsked, 0, 5},
                                  {Kind::WalkEntries, kAsked, 0, 0},
                                  {Kind::WalkNotes, kAsked, 0, 0},
                                  {Kind::WalkFolders, kAsked, 0, 0},
                                  {Kind::CopyEntries, std::string(32, 'a'), 0, 0},
                                  {Kind::Link, "", 0, 0},
                                  {Kind::LinkSend, "", 0, 0, 1},
                                  {Kind::LinkTake, "", 0, 0, kMostLinkBytes}};
  for (const PeerRequest& request : requests) EXPECT_EQ(parse_target(to_target(request)), request);
}

TEST(PeerRequest, AnInvalidTargetIsRejected) {
  const std::vector<std::string> others = {std::string(""),
                                           std::string("/"),
                                           std::string("/v1/status"),
                                           std::string("/fleet/v2/node"),
                                           "/fleet/v1/sets/" + kAsked + "/units/",
                                           "/fleet/v1/sets/" + kAsked + "/units/-1",
                                           "/fleet/v1/sets/" + kAsked + "/units/18446744073709551616",
                                           "/fleet/v1/sets/../units/1",
                                           "/fleet/v1/walks/" + kAsked + "/units/1",
                                           "/fleet/v1/walks/" + kAsked + "/entries?from=0000000000000005",
                                           "/fleet/v1/walks/" + kAsked + "/entries/1",
                                           "/fleet/v1/sets/" + kAsked + "?from=../x",
                                           "/fleet/v1/sets/" + kAsked + "?from=1",
                                           "/fleet/v1/copies/" + std::string(32, 'a'),
                                           "/fleet/v1/copies/" + std::string(32, 'A') + "/entries",
                                           "/fleet/v1/copies/" + kAsked + "/entries",
                                           "/fleet/v1/copies/" + std::string(32, 'a') + "/notes",
                                           "/fleet/v1/copies/" + std::string(32, 'a') + "/entries?from=1",
                                           std::string("/fleet/v1/link/send/0"),
                                           std::string("/fleet/v1/link/take/8388609"),
                                           std::string("/fleet/v1/link/send"),
                                           std::string("/fleet/v1/link/other/1"),
                                           std::string("/fleet/v1/link?from=0000000000000005"),
                                           "/fleet/v1/node?x=1"};
  for (const std::string& target : others) EXPECT_FALSE(parse_target(target)) << target;
}

}  // namespace
