#include "base/kernel/log.hpp"

#include <gtest/gtest.h>

#include "tests/unit/base/temporary_folder.hpp"

namespace spark {
namespace {

TEST(KernelLog, TheMessageOfARecordIsItsFirstLineWithoutThePrefix) {
  EXPECT_EQ(message_of_kmsg_record("3,1234,567890,-;nvme nvme1: Invalid MNAN value 1024\n SUBSYSTEM=nvme\n"),
            "nvme nvme1: Invalid MNAN value 1024");
  EXPECT_EQ(message_of_kmsg_record("no record"), "");
}

TEST(KernelLog, WithoutALogThereAreNoLines) {
  const TemporaryFolder folder;
  EXPECT_TRUE(KernelLog(SystemRoot{folder.path()}).lines("").empty());
}

}  // namespace
}  // namespace spark
