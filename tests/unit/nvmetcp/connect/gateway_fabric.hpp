// The contract of every NvmeGateway, tested with the fake and with the real one. The real one needs root, a
// kernel with nvme-tcp, and a target that allows this host and is not in use:
//   SPARK_REAL_TARGET=ADDRESS:PORT:NQN spark_nvmetcp_tests --gtest_filter='*Contract*'
// It connects and disconnects that subsystem, and touches no other. SPARK_REAL_FORBIDDEN=NQN names one at the
// same portal that does not allow this host.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>

#include <charconv>
#include <cstdlib>
#include <functional>
#include <memory>
#include <thread>

#include "base/child.hpp"
#include "base/text.hpp"
#include "nvmetcp/connect/libnvme_gateway.hpp"
#include "nvmetcp/host_identity.hpp"
#include "nvmetcp/sysfs/registry.hpp"
#include "nvmetcp/sysfs/sysfs.hpp"
#include "tests/support/fake_nvme_gateway.hpp"
#include "tests/support/fake_sysfs.hpp"

namespace spark::nvmetcp {

using std::chrono::seconds;

// A gateway and a target that offers one subsystem.
struct Fabric {
  virtual ~Fabric() = default;
  virtual NvmeGateway& gateway() = 0;
  virtual bool can_be_read(const Namespace& found) = 0;
  virtual std::shared_ptr<void> use(const Namespace& found) = 0;  // as long as the result lives
  virtual bool cut() = 0;  // silences the target; false: not possible here
  virtual void mend() = 0;
  SystemRoot root;
  HostIdentity host;
  Portal portal;
  std::string subsystem;
  std::string forbidden;  // a subsystem that does not allow this host; empty: none
};

struct FakeFabric final : Fabric {
  FakeFabric() {
    root = sysfs.root();
    host = test::test_host();
    portal = {"10.0.0.5", 4420};
    subsystem = "raid5-data";
    fake.targets().offer(portal, subsystem);
    forbidden = "somebody-elses-data";
    fake.targets().offer(portal, forbidden);
    fake.targets().allow_only(forbidden, {"nqn.somebody-else"});
  }
  NvmeGateway& gateway() override { return fake; }
  bool can_be_read(const Namespace&) override { return true; }
  std::shared_ptr<void> use(const Namespace& found) override {
    const std::string holder = "sys/class/block/" + found.device + "/holders/dm-0";
    sysfs.write(holder, "");
    return {nullptr, [this, holder](std::nullptr_t) { sysfs.remove(holder); }};
  }
  bool cut() override { return fake.vanish(portal), true; }
  void mend() override { fake.come_back(portal); }
  test::FakeSysfs sysfs;
  test::FakeNvmeGateway fake{sysfs};
};

struct RealFabric final : Fabric {
  NvmeGateway& gateway() override { return real; }
  bool can_be_read(const Namespace& found) override {
    const UniqueFd fd(::open(("/dev/" + found.device).c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
    alignas(4096) char block[4096];
    return ::read(fd.get(), block, sizeof block) == sizeof block;
  }
  std::shared_ptr<void> use(const Namespace& found) override {
    const std::string device = "/dev/" + found.device;
    return std::make_shared<UniqueFd>(::open(device.c_str(), O_RDONLY | O_EXCL | O_CLOEXEC));
  }
  bool cut() override { return run("SPARK_REAL_CUT"); }
  void mend() override { run("SPARK_REAL_MEND"); }
  static bool run(const char* variable) {
    const char* command = std::getenv(variable);
    if (command == nullptr) return false;
    const auto output = run_child({"sh", "-c", command}, seconds(30));
    EXPECT_TRUE(output) << output.error().message();
    return output && output->exit_status == 0;
  }
  LibnvmeGateway real{SystemRoot{}};
};

// A real fabric, or the reason why there is none.
inline Result<std::unique_ptr<Fabric>> real_fabric() {
  const char* target = std::getenv("SPARK_REAL_TARGET");
  if (target == nullptr) return fail(Errc::NotFound, "SPARK_REAL_TARGET=ADDRESS:PORT:NQN is not set");
  const auto parts = split(target, ':');
  auto fabric = std::make_unique<RealFabric>();
  std::uint16_t port = 0;
  if (parts.size() >= 3) std::from_chars(parts[1].data(), parts[1].data() + parts[1].size(), port);
  if (port == 0) return fail(Errc::Invalid, "SPARK_REAL_TARGET is not ADDRESS:PORT:NQN");
  fabric->portal = {parts[0], port};
  fabric->subsystem = join(std::span(parts).subspan(2), ":");
  if (const char* forbidden = std::getenv("SPARK_REAL_FORBIDDEN")) fabric->forbidden = forbidden;
  auto host = read_host_identity(fabric->root);
  if (!host) return host.take_error();
  fabric->host = *host;
  return std::unique_ptr<Fabric>(std::move(fabric));
}

struct GatewayContract : testing::TestWithParam<const char*> {
  void SetUp() override {
    if (std::string(GetParam()) == "Fake") {
      fabric = std::make_unique<FakeFabric>();
      return;
    }
    auto real = real_fabric();
    if (!real && real.error().kind == Errc::NotFound) GTEST_SKIP() << real.error().message();
    ASSERT_TRUE(real) << real.error().message();
    fabric = std::move(*real);
    ASSERT_TRUE(ours().empty()) << fabric->subsystem << " is connected already";
  }
  void TearDown() override {
    if (fabric == nullptr) return;
    for (const Controller& controller : ours()) (void)disconnect(controller.name);
  }

  std::vector<Controller> all() { return list_controllers(fabric->root).value(); }
  std::vector<Controller> ours() { return controllers_of(all(), fabric->subsystem, ""); }
  Result<Connection> connect(const ConnectOptions& options = {}) {
    return fabric->gateway().connect(fabric->subsystem, fabric->portal, fabric->host, options);
  }
  Result<Change> disconnect(const std::string& controller) {
    return fabric->gateway().disconnect(controller, fabric->subsystem, CutOff{});
  }
  Result<Namespace> namespace_that_appears() {
    const auto end = std::chrono::steady_clock::now() + seconds(20);
    auto found = find_namespace(fabric->root, fabric->subsystem, 1);
    while (!found && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      found = find_namespace(fabric->root, fabric->subsystem, 1);
    }
    return found;
  }
  std::string attribute(const std::string& controller, const std::string& name) {
    return read_line_file(fabric->root / ("sys/class/nvme/" + controller + "/" + name)).value_or("");
  }

  std::unique_ptr<Fabric> fabric;
};

}  // namespace spark::nvmetcp
