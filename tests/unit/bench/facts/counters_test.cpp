#include "bench/facts/counters.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>

#include "bench/facts/storage_facts.hpp"
#include "tests/unit/bench/testing.hpp"

namespace spark::bench {
namespace {

// A synthetic /proc and /sys.
class Tree {
 public:
  void put(const std::string& path, const std::string& text) const {
    fs::create_directories(fs::path(folder_ / path).parent_path());
    write_text(folder_ / path, text);
  }
  void link(const std::string& path, const std::string& target) const {
    fs::create_directories(fs::path(folder_ / path).parent_path());
    fs::create_symlink(folder_ / target, folder_ / path);
  }
  SystemRoot root() const { return {folder_.path()}; }

 private:
  DiskFolder folder_;
};

std::string ticks(double seconds) {
  return std::to_string(static_cast<std::uint64_t>(seconds * static_cast<double>(::sysconf(_SC_CLK_TCK))));
}

// A line of /proc/stat: user, system, idle, waiting for I/O, interrupts, stolen.
std::string cpu_line(const std::string& name, double user, double system, double idle, double waiting,
                     double soft, double stolen) {
  return name + " " + ticks(user) + " 0 " + ticks(system) + " " + ticks(idle) + " " + ticks(waiting) + " 0 " +
         ticks(soft) + " " + ticks(stolen) + " 0 0\n";
}

std::string process_line(const std::string& name, unsigned flags, double user, double system) {
  return "7 (" + name + ") S 2 0 0 0 -1 " + std::to_string(flags) + " 0 0 0 0 " + ticks(user) + " " +
         ticks(system) + " 0 0 20 0 1 0 5 0 0\n";
}

TEST(Cpu, BusyTimeIncludesInterruptsButNotStolenOrWaitingTime) {
  const Tree tree;
  tree.put("proc/stat", cpu_line("cpu ", 10, 5, 100, 20, 1, 9) + cpu_line("cpu0", 10, 5, 0, 0, 1, 9) +
                            cpu_line("cpu1", 0, 0, 100, 20, 0, 0) + "intr 5\n");
  const CpuCounters before = read_cpu(tree.root());
  EXPECT_NEAR(before.busy, 16, 0.01);
  EXPECT_NEAR(before.idle, 120, 0.01);
  tree.put("proc/stat", cpu_line("cpu ", 13, 6, 104, 20, 1, 9) + cpu_line("cpu0", 13, 6, 0, 0, 1, 9) +
                            cpu_line("cpu1", 0, 0, 104, 20, 0, 0));
  const CpuUse use = cpu_between(before, read_cpu(tree.root()), 4);
  EXPECT_NEAR(use.busy_s, 4, 0.01);
  EXPECT_NEAR(use.idle_share, 0.5, 0.001);
  EXPECT_NEAR(use.busiest_core, 1, 0.001);
}

TEST(Cpu, KernelThreadsAreIdentifiedByTheirFlagNotTheirName) {
  const Tree tree;
  tree.put("proc/12/stat", process_line("kworker/3:1H-nvme_tcp_wq", 0x4208060, 1, 2));
  tree.put("proc/13/stat", process_line("a) fake kworker", 0x400100, 50, 50));
  tree.put("proc/self/stat", process_line("x", 0x4208060, 100, 100));
  EXPECT_NEAR(read_cpu(tree.root()).kernel_threads, 3, 0.01);
}

TEST(Cpu, IdleCpuHasAMeanAndAStandardError) {
  const IdleCpu idle = idle_cpu({0.1, 0.2, 0.3});
  EXPECT_NEAR(idle.cpu_s_per_s, 0.2, 1e-12);
  EXPECT_NEAR(idle.error, 0.1 / std::sqrt(3.0), 1e-12);
  EXPECT_EQ(idle_cpu({}).cpu_s_per_s, 0);
}

std::string stat_with(Bytes read) {
  return "  5  0  " + std::to_string(read / 512) + "  7 0 0 0 0 0 0 0\n";
}

TEST(OriginBytes, AreCountedInSectorsAtTheBlockDevice) {
  const Tree tree;
  OriginSource source;
  source.device = "nvme0n1p2";
  tree.put("sys/class/block/nvme0n1p2/stat", stat_with(10 * kMiB));
  const auto before = read_origin(tree.root(), source);
  tree.put("sys/class/block/nvme0n1p2/stat", stat_with(14 * kMiB));
  const Origin origin = origin_between(source, before, read_origin(tree.root(), source));
  EXPECT_EQ(origin.bytes, 4 * kMiB);
  EXPECT_EQ(origin.counter, "block device nvme0n1p2");
}

// Linux 6.1 with native multipath: the mounted device has no counts.
TEST(OriginBytes, ANativeMultipathDeviceIsCountedAtItsHiddenPaths) {
  const Tree tree;
  OriginSource source;
  source.device = "nvme3n1";
  source.path_devices = {"nvme3c4n1", "nvme3c5n1"};
  tree.put("sys/class/block/nvme3n1/stat", stat_with(0));
  tree.put("sys/class/block/nvme3c4n1/stat", stat_with(kMiB));
  tree.put("sys/class/block/nvme3c5n1/stat", stat_with(kMiB));
  const auto before = read_origin(tree.root(), source);
  tree.put("sys/class/block/nvme3c4n1/stat", stat_with(4 * kMiB));
  tree.put("sys/class/block/nvme3c5n1/stat", stat_with(2 * kMiB));
  const Origin origin = origin_between(source, before, read_origin(tree.root(), source));
  EXPECT_EQ(origin.bytes, 4 * kMiB);
  EXPECT_EQ(origin.counter, "paths of nvme3n1");
}

TEST(OriginBytes, AreCountedAtTheNetworkCardWhenNoDeviceCounts) {
  const Tree tree;
  OriginSource source;
  source.device = "nvme3n1";
  source.nic = "eth0";
  tree.put("sys/class/block/nvme3n1/stat", stat_with(0));
  tree.put("sys/class/net/eth0/statistics/rx_bytes", "1000\n");
  const auto before = read_origin(tree.root(), source);
  tree.put("sys/class/net/eth0/statistics/rx_bytes", "9000\n");
  const Origin origin = origin_between(source, before, read_origin(tree.root(), source));
  EXPECT_EQ(origin.bytes, 8000u);
  EXPECT_EQ(origin.counter, "network card eth0");
  EXPECT_EQ(origin.nic_bytes, 8000u);
}

TEST(OriginBytes, AnNfsMountCountsBytesSentByTheServerForThatMountOnly) {
  const Tree tree;
  OriginSource source;
  source.nfs_mount = "/mnt/nas";
  const auto stats = [](const char* server_read) {
    return std::string(
               "device 10.0.0.1:/b mounted on /mnt/nas2 with fstype nfs4 statvers=1.1\n\tbytes:\t9 9 9 9 9 9 "
               "9 9\n"
               "device 10.0.0.1:/a mounted on /mnt/nas with fstype nfs4 statvers=1.1\n"
               "\topts:\trw,vers=4.2\n\tbytes:\t7000 0 500 0 ") +
           server_read + " 0 12 0\n";
  };
  tree.put("proc/self/mountstats", stats("1000"));
  const auto before = read_origin(tree.root(), source);
  tree.put("proc/self/mountstats", stats("5000"));
  const Origin origin = origin_between(source, before, read_origin(tree.root(), source));
  EXPECT_EQ(origin.bytes, 4000u);
  EXPECT_EQ(origin.counter, "NFS mount");
}

TEST(NfsOpens, CountOpenAndOpenNoattrRequestsOfThatMountOnly) {
  const Tree tree;
  tree.put("proc/self/mountstats",
           "device 10.0.0.1:/b mounted on /mnt/nas2 with fstype nfs4 statvers=1.1\n\t        OPEN: 9 9 0\n"
           "device 10.0.0.1:/a mounted on /mnt/nas with fstype nfs4 statvers=1.1\n"
           "\tper-op statistics\n\t        OPEN: 40 41 0 100\n\t OPEN_CONFIRM: 5 5 0\n\t OPEN_NOATTR: 2 2 0\n"
           "device 10.0.0.1:/c mounted on /mnt/old with fstype nfs statvers=1.1\n\t        READ: 7 7 0\n");
  EXPECT_EQ(nfs_opens(tree.root(), "/mnt/nas"), 42u);
  EXPECT_EQ(nfs_opens(tree.root(), "/mnt/old"), std::nullopt);
  EXPECT_EQ(nfs_opens(tree.root(), "/mnt"), std::nullopt);
}

TEST(OriginBytes, AreUnknownWithoutACounter) {
  const Tree tree;
  EXPECT_FALSE(origin_between({}, {}, {}).bytes);
}

TEST(Storage, AnNvmeTcpDiskWithPathsIsRemoteAndItsControllersAreNamed) {
  const Tree tree;
  const std::string subsystem = "sys/devices/virtual/nvme-subsystem/nvme-subsys3/";
  tree.put(subsystem + "nvme3n1/queue/read_ahead_kb", "128\n");
  tree.put(subsystem + "nvme4/uevent", "");
  tree.link("sys/class/block/nvme3n1", subsystem + "nvme3n1");
  tree.put("sys/class/nvme/nvme4/transport", "tcp\n");
  tree.put("sys/class/nvme/nvme4/address", "traddr=127.0.0.1,trsvcid=4420\n");
  tree.put("sys/class/nvme/nvme4/state", "live\n");
  tree.put("sys/class/nvme/nvme4/queue_count", "9\n");
  tree.put("sys/class/nvme/nvme4/nvme3c4n1/stat", stat_with(0));
  tree.put("sys/class/nvme/nvme4/nvme30c4n1/stat", stat_with(0));
  const MountFacts mount{"/mnt/rosa", "/dev/nvme3n1", "ext4", "ro"};
  const StorageFacts facts = read_storage_facts(tree.root(), mount, 0);
  EXPECT_EQ(facts.kind, PathKind::RemoteBlock);
  EXPECT_EQ(facts.address, "127.0.0.1");
  EXPECT_EQ(facts.controllers, std::vector<std::string>{"nvme4"});
  EXPECT_EQ(facts.origin.device, "nvme3n1");
  EXPECT_EQ(facts.origin.path_devices, std::vector<std::string>{"nvme3c4n1"});
  EXPECT_EQ(facts.origin.nic, "lo");
  EXPECT_EQ(state_of(tree.root(), facts, "ro"), "ro; nvme4 live");
  tree.put("sys/class/nvme/nvme4/state", "connecting\n");
  EXPECT_EQ(state_of(tree.root(), facts, "ro"), "ro; nvme4 connecting");
}

// A rate that is the sum of two paths is not implausible.
TEST(Storage, TheCardsOfAllLivePathsCount) {
  const Tree tree;
  const std::string subsystem = "sys/devices/virtual/nvme-subsystem/nvme-subsys3/";
  tree.put(subsystem + "nvme3n1/queue/read_ahead_kb", "128\n");
  tree.link("sys/class/block/nvme3n1", subsystem + "nvme3n1");
  for (const auto& [name, card, state] :
       {std::tuple("nvme4", "fast0", "live"), std::tuple("nvme5", "fast1", "live"),
        std::tuple("nvme6", "fast2", "connecting")}) {
    const std::string controller = "sys/class/nvme/" + std::string(name) + "/",
                      nic = std::string("sys/class/net/") + card;
    tree.put(subsystem + name + "/uevent", "");
    tree.put(controller + "transport", "tcp\n");
    tree.put(controller + "address", "traddr=192.0.2.1,trsvcid=4420,host_iface=" + std::string(card) + "\n");
    tree.put(controller + "state", std::string(state) + "\n");
    tree.put(nic + "/speed", "200000\n");
    tree.put(nic + "/mtu", "9000\n");
  }
  const MountFacts mount{"/mnt/rosa", "/dev/nvme3n1", "ext4", "ro"};
  StorageFacts facts = read_storage_facts(tree.root(), mount, 0);
  EXPECT_EQ(facts.nic.name, "fast0, fast1");
  EXPECT_DOUBLE_EQ(facts.nic.bytes_per_second, 50e9);
  EXPECT_EQ(facts.nic.mtu, 9000u);
  EXPECT_EQ(facts.origin.nic, "fast0");
  tree.put("sys/class/net/fast0/statistics/rx_bytes", "1000\n");
  EXPECT_FALSE(read_origin(tree.root(), facts.origin).nic) << "not known of fast1";
  tree.put("sys/class/net/fast1/statistics/rx_bytes", "500\n");
  EXPECT_EQ(read_origin(tree.root(), facts.origin).nic, 1500u);
  tree.put("sys/class/net/fast1/speed", "-1\n");
  facts = read_storage_facts(tree.root(), mount, 0);
  EXPECT_EQ(facts.nic.bytes_per_second, 0) << "unknown";
}

TEST(Storage, APartitionOfAPcieDriveIsLocal) {
  const Tree tree;
  const std::string drive = "sys/devices/pci0000:00/0000:01:00.0/nvme/nvme0/nvme0n1/";
  tree.put(drive + "nvme0n1p2/partition", "2\n");
  tree.link("sys/class/block/nvme0n1p2", drive + "nvme0n1p2");
  tree.put("sys/class/nvme/nvme0/transport", "pcie\n");
  const StorageFacts facts = read_storage_facts(tree.root(), {"/", "/dev/nvme0n1p2", "ext4", "rw"}, 0);
  EXPECT_EQ(facts.kind, PathKind::Local);
  EXPECT_EQ(facts.origin.device, "nvme0n1p2");
  EXPECT_EQ(facts.controllers, std::vector<std::string>{"nvme0"});
  EXPECT_TRUE(facts.address.empty());
}

TEST(Storage, ABtrfsOfSeveralDrivesIsCountedAtAllOfThem) {
  const Tree tree;
  for (const char* name : {"nvme1n1", "nvme2n1"}) {
    tree.put("sys/devices/pci/" + std::string(name) + "/stat", "1 0 8 0 0 0 0 0\n");
    tree.link("sys/class/block/" + std::string(name), "sys/devices/pci/" + std::string(name));
    tree.link("sys/fs/btrfs/1b2c/devices/" + std::string(name), "sys/devices/pci/" + std::string(name));
  }
  tree.put("sys/fs/btrfs/features/raid1c34", "0\n");
  const MountFacts mount{"/data", "/dev/nvme1n1", "btrfs", "rw"};
  const StorageFacts facts = read_storage_facts(tree.root(), mount, 0);
  EXPECT_EQ(facts.kind, PathKind::Local);
  EXPECT_EQ(facts.origin.path_devices, (std::vector<std::string>{"nvme1n1", "nvme2n1"}));
  const OriginCounters before = read_origin(tree.root(), facts.origin);
  for (const char* name : {"nvme1n1", "nvme2n1"})
    tree.put("sys/devices/pci/" + std::string(name) + "/stat", "1 0 2056 0 0 0 0 0\n");
  const Origin origin = origin_between(facts.origin, before, read_origin(tree.root(), facts.origin));
  EXPECT_EQ(origin.bytes, 2 * 2048u * 512u);
  EXPECT_EQ(origin.counter, "drives of the file system on nvme1n1");
}

TEST(Storage, AnNfsMountIsANasAndATmpfsIsMemory) {
  Tree tree;
  tree.put("sys/class/bdi/0:0/read_ahead_kb", "128\n");
  const StorageFacts nfs = read_storage_facts(
      tree.root(), {"/mnt/nas", "nas:/a", "nfs4", "rw,vers=4.2,rsize=1048576,nconnect=8,addr=127.0.0.1"}, 0);
  EXPECT_EQ(nfs.kind, PathKind::Nas);
  EXPECT_EQ(nfs.address, "127.0.0.1");
  EXPECT_EQ(nfs.origin.nfs_mount, "/mnt/nas");
  EXPECT_EQ(nfs.settings,
            (std::vector<std::pair<std::string, std::string>>{
                {"vers", "4.2"}, {"nconnect", "8"}, {"rsize", "1048576"}, {"read-ahead KiB", "128"}}));
  for (const char* type : {"cifs", "ceph", "lustre", "fuse.glusterfs"})
    EXPECT_EQ(read_storage_facts(tree.root(), {"/mnt/x", "x", type, "rw"}, 0).kind, PathKind::Nas) << type;
  EXPECT_EQ(read_storage_facts(tree.root(), {"/tmp", "tmpfs", "tmpfs", "rw"}, 0).kind, PathKind::Memory);
}

TEST(Storage, TheNetworkCardForAnAddressIsFoundWithoutTraffic) {
  EXPECT_EQ(nic_towards("127.0.0.1"), "lo");
  EXPECT_EQ(nic_towards("not an address"), "");
}

}  // namespace
}  // namespace spark::bench
