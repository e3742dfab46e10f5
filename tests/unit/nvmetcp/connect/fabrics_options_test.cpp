#include "nvmetcp/connect/fabrics_options.hpp"

#include <gtest/gtest.h>

#include "tests/support/fake_sysfs.hpp"

namespace spark::nvmetcp {
namespace {

using std::chrono::seconds;

// Read on Debian's 6.1.
constexpr const char* kKernel61 =
    "instance=-1,cntlid=-1,transport=%s,traddr=%s,trsvcid=%s,nqn=%s,queue_size=%d,nr_io_queues=%d,"
    "reconnect_delay=%d,ctrl_loss_tmo=%d,keep_alive_tmo=%d,hostnqn=%s,host_traddr=%s,host_iface=%s,hostid=%s,"
    "duplicate_connect,disable_sqflow,hdr_digest,data_digest,nr_write_queues=%d,nr_poll_queues=%d,tos=%d,"
    "fast_io_fail_tmo=%d,discovery\n";

TEST(FabricsOptions, TimersAndQueuesArePassedByDefault) {
  EXPECT_EQ(
      to_string(io_controller_options("raid5-data", {"10.0.0.5", 4420}, {"nqn.h", "id"}, {}, 20)),
      "nqn=raid5-data,transport=tcp,traddr=10.0.0.5,trsvcid=4420,hostnqn=nqn.h,hostid=id,nr_io_queues=8,"
      "keep_alive_tmo=5,reconnect_delay=2,ctrl_loss_tmo=-1");
}

TEST(FabricsOptions, EveryConfiguredOptionIsPassed) {
  ConnectOptions options;
  options.interface = "eth0";
  options.io_queues = 3;
  options.keep_alive = seconds(10);
  options.reconnect_delay = seconds(4);
  options.controller_loss = seconds(600);
  options.fast_fail = seconds(30);
  options.header_digest = options.data_digest = true;
  EXPECT_EQ(
      to_string(io_controller_options("s", {"fd00::5", 4421}, {"nqn.h", "id"}, options, 1)),
      "nqn=s,transport=tcp,traddr=fd00::5,trsvcid=4421,hostnqn=nqn.h,hostid=id,host_iface=eth0,nr_io_queues="
      "3,"
      "keep_alive_tmo=10,reconnect_delay=4,ctrl_loss_tmo=600,fast_io_fail_tmo=30,hdr_digest,data_digest");
}

TEST(FabricsOptions, ADiscoveryControllerKeepsAliveAndDoesNotReconnect) {
  EXPECT_EQ(
      to_string(discovery_controller_options({"10.0.0.5", 4420}, {"nqn.h", "id"}, "eth0")),
      "nqn=nqn.2014-08.org.nvmexpress.discovery,transport=tcp,traddr=10.0.0.5,trsvcid=4420,hostnqn=nqn.h,"
      "hostid=id,host_iface=eth0,keep_alive_tmo=30,reconnect_delay=1,ctrl_loss_tmo=0");
}

TEST(FabricsOptions, AllOptionsAreKnownToOldKernels) {
  ConnectOptions options;
  options.interface = "eth0";
  options.fast_fail = seconds(30);
  options.header_digest = options.data_digest = true;
  const auto asked = io_controller_options("s", {"10.0.0.5", 4420}, test::test_host(), options, 4);
  EXPECT_TRUE(check_supported(asked, kKernel61, "6.1.0"));
  EXPECT_TRUE(check_supported(discovery_controller_options({"10.0.0.5", 4420}, test::test_host(), ""),
                              kKernel61, "6.1.0"));
}

TEST(FabricsOptions, UnknownOptionsAreNamedWithTheKernelVersion) {
  const FabricsOptions asked = {{"nqn", "s"}, {"tls", ""}, {"concat", ""}};
  const auto known = check_supported(asked, kKernel61, "6.1.0-35");
  ASSERT_FALSE(known);
  EXPECT_EQ(known.error().kind, Errc::Unsupported);
  EXPECT_EQ(known.error().what, "kernel 6.1.0-35 does not know the connection option tls, concat");
}

// hostid must not match only because host_iface and hostnqn start with the same letters.
TEST(FabricsOptions, OptionNamesAreComparedExactly) {
  EXPECT_FALSE(check_supported({{"host", ""}}, kKernel61, "6.1"));
  EXPECT_FALSE(check_supported({{"nqn", "s"}}, "", "6.1"));
}

}  // namespace
}  // namespace spark::nvmetcp
