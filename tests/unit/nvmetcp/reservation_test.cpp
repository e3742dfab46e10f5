#include "nvmetcp/reservation.hpp"

#include <gtest/gtest.h>

#include <array>

namespace spark::nvmetcp {
namespace {

constexpr char kHostId[] = "01020304-0506-0708-090a-0b0c0d0e0f10";

// Write exclusive, generation 7, one registrant that holds it with key 0x1122.
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

TEST(ReservationReport, ACutOffHeaderIsRefused) {
  const std::array<std::byte, 63> data{};
  EXPECT_EQ(parse_reservation_report(data).error().kind, Errc::Invalid);
}

TEST(ReservationKey, IsTheSameAtEveryStartAndAnotherOnAMachineWithACopiedHostId) {
  const HostIdentity host{"nqn.2014-08.org.nvmexpress:uuid:a", kHostId};
  EXPECT_EQ(reservation_key(host, "machine"), reservation_key(host, "machine"));
  EXPECT_NE(reservation_key(host, "machine"), reservation_key(host, "another"));
  EXPECT_NE(reservation_key(host, "machine"),
            reservation_key({"nqn.2014-08.org.nvmexpress:uuid:b", kHostId}, "machine"));
  EXPECT_NE(reservation_key(host, "machine"), 0u);
}

}  // namespace
}  // namespace spark::nvmetcp
