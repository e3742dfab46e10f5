#include "nvmetcp/reservations/reservation.hpp"

#include <gtest/gtest.h>

#include <array>

#include "tests/support/fake_sysfs.hpp"

namespace spark::nvmetcp {
namespace {

constexpr char kHostId[] = "01020304-0506-0708-090a-0b0c0d0e0f10";

// Write exclusive, generation 7, one registrant as holder with key 0x1122.
std::array<std::byte, 128> one_holder() {
  std::array<std::byte, 128> data{};
  data[0] = std::byte{7};
  data[4] = std::byte{1};
  data[5] = std::byte{1};
  data[64 + 2] = std::byte{1};
  data[64 + 8] = std::byte{0x22};
  data[64 + 9] = std::byte{0x11};
  for (std::size_t i = 0; i < 16; ++i) data[64 + 16 + i] = static_cast<std::byte>(i + 1);
  return data;
}

TEST(ReservationReport, NamesTheHolderByHostId) {
  const auto data = one_holder();
  const auto report = parse_reservation_report(data);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->generation, 7u);
  EXPECT_EQ(report->type, 1u);
  ASSERT_EQ(report->registrants.size(), 1u);
  EXPECT_EQ(report->registrants[0].host_id, kHostId);
  EXPECT_EQ(report->registrants[0].key, 0x1122u);
  EXPECT_TRUE(report->registrants[0].holds);
}

TEST(ReservationReport, MoreRegistrantsThanBytesAreRefused) {
  auto data = one_holder();
  data[5] = std::byte{2};
  EXPECT_EQ(parse_reservation_report(data).error().kind, Errc::Invalid);
}

TEST(ReservationReport, ATruncatedHeaderIsRefused) {
  const std::array<std::byte, 63> data{};
  EXPECT_EQ(parse_reservation_report(data).error().kind, Errc::Invalid);
}

TEST(ReservationCapabilities, AnInactiveNamespaceIsNotOneWithoutReservations) {
  std::array<std::byte, 4096> data{};
  EXPECT_EQ(parse_reservation_capabilities(data).error().kind, Errc::Unavailable);
  data[0] = std::byte{8};
  EXPECT_EQ(parse_reservation_capabilities(data).value(), 0);
  data[31] = std::byte{3};
  EXPECT_EQ(parse_reservation_capabilities(data).value(), 3);
}

constexpr char kBoard[] = "4d0cab20-6f5e-2b1a-8c3d-0123456789ab";

TEST(ReservationKey, IsStableAndDiffersOnACopyOfThisHost) {
  const HostIdentity host{"nqn.2014-08.org.nvmexpress:uuid:a", kHostId};
  const HostIdentity other{"nqn.2014-08.org.nvmexpress:uuid:b", kHostId};
  const auto key = local_registrant(host, {"machine", kBoard}).key;
  EXPECT_EQ(key, local_registrant(host, {"machine", kBoard}).key);
  EXPECT_NE(key, local_registrant(host, {"another", kBoard}).key);
  EXPECT_NE(key, local_registrant(other, {"machine", kBoard}).key);
  EXPECT_NE(key, local_registrant(host, {"machine", "5e0cab20-6f5e-2b1a-8c3d-0123456789ab"}).key);
  EXPECT_NE(key, 0u);
}

TEST(ReservationKey, IsThatOfAnEarlierReleaseIfTheBoardHasNoUuid) {
  const HostIdentity host{"nqn.2014-08.org.nvmexpress:uuid:a", kHostId};
  const auto us = local_registrant(host, {"machine", ""});
  EXPECT_EQ(us.key, 0x52fac419cdbeadf4ULL) << "what 0.1 registers with";
  EXPECT_EQ(us.former_key, 0u);
  EXPECT_EQ(local_registrant(host, {"machine", kBoard}).former_key, us.key);
}

TEST(ReservationKey, UsesTheBoardsUuidOnlyIfItIsUnique) {
  test::FakeSysfs files;
  files.write("etc/machine-id", "0123");
  EXPECT_EQ(read_machine(files.root()).id, "0123");
  EXPECT_EQ(read_machine(files.root()).board, "");
  files.write("sys/class/dmi/id/product_uuid", "4D0CAB20-6F5E-2B1A-8C3D-0123456789AB");
  EXPECT_EQ(read_machine(files.root()).board, kBoard);
  for (const char* common : {"00000000-0000-0000-0000-000000000000", "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF",
                             "Not Settable", "03000200-0400-0500-0006-000700080009"}) {
    files.write("sys/class/dmi/id/product_uuid", common);
    EXPECT_EQ(read_machine(files.root()).board, "") << common;
  }
}

}  // namespace
}  // namespace spark::nvmetcp
