// What 100 subsystems with 300 namespaces, all mounted, cost the daemon's thread: a look at every volume, as
// watch.cpp has one each second, and the answer to `status`. CPU time, so that a busy machine does not
// matter.
#include <gtest/gtest.h>
#include <sys/sysmacros.h>

#include <boost/asio/io_context.hpp>
#include <ctime>
#include <fstream>

#include "daemon/volumes/worker_actions.hpp"
#include "tests/support/fake_sysfs.hpp"
#include "tests/support/fake_volume_actions.hpp"

namespace spark::volumes {
namespace {

constexpr unsigned kSubsystems = 100, kNamespaces = 3;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr double kSlower = 10;
#else
constexpr double kSlower = 1;
#endif
constexpr double kLookMs = 20;  // 2 % of a core, a look a second
constexpr double kStatusMs = 100;
constexpr double kMemoryMiB = 10;  // of the 60 that the whole daemon may take

double cpu_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

double resident_mib() {
  std::ifstream statm("/proc/self/statm");
  long pages = 0;
  statm >> pages >> pages;
  return static_cast<double>(pages * ::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

class Many : public testing::Test {
 protected:
  Many() {
    sysfs.write("etc/nvme/hostnqn", test::test_host().nqn);
    sysfs.write("etc/nvme/hostid", test::test_host().id);
    for (unsigned i = 0; i < kSubsystems; ++i) add_subsystem(i);
    sysfs.write("proc/self/mountinfo", mountinfo);
  }

  void add_subsystem(unsigned i) {
    const std::string number = std::to_string(i), nqn = "nqn.2026-01.io.example:subsystem-" + number;
    const std::string controller = "nvme" + number;
    sysfs.add_controller(test::tcp_controller(controller, nqn));
    sysfs.write("sys/devices/virtual/nvme-subsystem/nvme-subsys" + number + "/subsysnqn", nqn);
    for (unsigned nsid = 1; nsid <= kNamespaces; ++nsid) {
      const std::string below = "n" + std::to_string(nsid), head = controller + below;
      const unsigned minor = i * kNamespaces + nsid;
      const std::string dev = "259:" + std::to_string(minor),
                        name = "volume-" + number + "-" + std::to_string(nsid);
      sysfs.add_head(head, nsid, dev, 1 << 20);
      sysfs.add_node(controller, controller + "c" + number + below, nsid);
      const std::string folder = "sys/devices/virtual/nvme-subsystem/nvme-subsys" + number + "/" + head;
      sysfs.write(folder + "/dev", dev);
      const auto link = sysfs.root() / ("sys/dev/block/" + dev);
      std::filesystem::create_directories(link.parent_path());
      std::filesystem::create_symlink(sysfs.root() / folder, link);
      mountinfo += std::to_string(100 + minor) + " 1 " + dev + " / /mnt/" + name +
                   " ro,noatime - ext4 /dev/" + head + " ro\n";
      volumes.push_back({name, nqn, nsid, makedev(259, minor),
                         std::make_unique<WorkerActions>(runner, sight, name, sysfs.root() / "state",
                                                         [] { return false; })});
    }
  }

  // What a look at a mounted volume asks for.
  bool look(unsigned i) {
    const One& one = volumes[i];
    const auto mount = one.actions->mount_at("/mnt/" + one.name);
    if (!mount || !*mount) return false;
    const auto owner = one.actions->subsystem_of_device((*mount)->device_number);
    const auto block = one.actions->find_namespace(one.nqn, one.nsid);
    const auto paths = one.actions->controllers(one.nqn);
    return owner && *owner == one.nqn && block && block->device_number == one.device && paths &&
           paths->size() == 1;
  }

  struct One {
    std::string name, nqn;
    std::uint32_t nsid;
    dev_t device;
    std::unique_ptr<WorkerActions> actions;
  };
  struct StoppedClock final : Clock {
    WallTime wall() const override { return {}; }
    SteadyTime steady() const override { return now; }
    SteadyTime now{std::chrono::hours(1)};
  };

  test::FakeSysfs sysfs;
  StoppedClock clock;
  Sight sight{clock, sysfs.root()};
  boost::asio::io_context context;
  workers::Runner runner{context.get_executor(), "/bin/false"};
  std::vector<One> volumes;
  std::string mountinfo;
};

TEST_F(Many, ALookAtAllOfThemIsTwoPercentOfACoreASecond) {
  for (unsigned i = 0; i < volumes.size(); ++i) ASSERT_TRUE(look(i)) << i;
  constexpr int kRounds = 10;
  const double began = cpu_ms();
  for (int round = 0; round < kRounds; ++round) {
    clock.now += std::chrono::seconds(1);
    for (unsigned i = 0; i < volumes.size(); ++i) ASSERT_TRUE(look(i)) << i;
  }
  const double each = (cpu_ms() - began) / kRounds;
  std::printf("limits: a look at %zu volumes takes %.1f ms of CPU\n", volumes.size(), each);
  EXPECT_LT(each, kLookMs * kSlower);
}

TEST_F(Many, StatusAndItsMemoryStaySmall) {
  const double before = resident_mib();
  FakeWorld world;
  std::vector<std::shared_ptr<Volume>> all;
  for (const One& one : volumes) {
    config::Volume settings;
    settings.name = one.name;
    settings.mount = "/mnt/" + one.name;
    settings.nvme = config::NvmeSource{"rose", one.nqn, one.nsid, "", ""};
    config::Target rose;
    rose.portals = {{"10.0.0.5", 4420}};
    all.push_back(std::make_shared<Volume>(context.get_executor(), settings, rose,
                                           std::make_unique<FakeVolumeActions>(world), clock, Pace{},
                                           [](const Volume&, State) {}));
  }
  const double began = cpu_ms();
  json::array shown;
  for (const auto& volume : all) shown.push_back(to_json(volume->settings(), volume->status()));
  const std::string text = json::serialize(shown);
  const double took = cpu_ms() - began, grown = resident_mib() - before;
  std::printf("limits: status of %zu volumes takes %.1f ms of CPU, %zu bytes; they take %.1f MiB\n",
              all.size(), took, text.size(), grown);
  EXPECT_LT(took, kStatusMs * kSlower);
  EXPECT_LT(grown, kMemoryMiB * kSlower);
}

}  // namespace
}  // namespace spark::volumes
