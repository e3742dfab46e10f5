#include "staging/view/waiting_reads.hpp"

#include <gtest/gtest.h>

#include <map>

namespace spark::staging {
namespace {

class WaitingReadsTest : public testing::Test {
 protected:
  WaitingReads reads_;

  void add(pid_t thread, Bytes offset) { reads_.add({offset, {0, offset, 1}, thread, false}); }
  std::vector<Bytes> some(std::size_t most) {
    std::vector<Bytes> offsets;
    for (const ViewRange& range : reads_.some(most)) offsets.push_back(range.offset);
    return offsets;
  }
};

using Offsets = std::vector<Bytes>;

TEST_F(WaitingReadsTest, GivesOneReadOfEachThreadAndTheOthersLater) {
  EXPECT_EQ(some(10), Offsets{});
  for (const Bytes offset : {1, 2}) add(7, offset);
  add(8, 3);
  EXPECT_EQ(some(10), (Offsets{1, 3}));
  EXPECT_EQ(some(10), (Offsets{2, 3}));
  EXPECT_EQ(some(10), (Offsets{1, 3}));
}

// One job with many threads, one with one.
TEST_F(WaitingReadsTest, LeavesNoneOutForLong) {
  for (pid_t thread = 1; thread <= 1400; ++thread) add(thread, static_cast<Bytes>(thread));
  for (Bytes i = 0; i < 50; ++i) add(5000, 2000 + i);
  std::map<Bytes, unsigned> given;
  for (int call = 0; call < 70; ++call)
    for (const Bytes offset : some(256)) ++given[offset];
  for (Bytes offset = 1; offset <= 1400; ++offset) EXPECT_GE(given[offset], 1U) << offset;
  for (Bytes i = 0; i < 50; ++i) EXPECT_GE(given[2000 + i], 1U) << i;
  reads_.take_if([](const WaitingRead& read) { return read.id > 3; });
  EXPECT_EQ(some(10).size(), 3U);
}

}  // namespace
}  // namespace spark::staging
