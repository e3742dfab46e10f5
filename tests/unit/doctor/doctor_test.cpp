// doctor's findings about a host, its files and its settings. The rest: connections_test.cpp,
// identity_test.cpp, network_test.cpp
#include "doctor/doctor.hpp"
#include "doctor/checks/controller_of.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/unit/doctor/fixture.hpp"

namespace spark::doctor {
namespace {

using ::testing::HasSubstr;

TEST_F(Doctor, FindsNothingWrongWithAHostInOrder) {
  const Report report = examine(fake.host());
  EXPECT_TRUE(report.findings.empty()) << pretty(to_json(report));
  EXPECT_EQ(report.count(Level::Wrong), 0u);
  EXPECT_GE(report.fine.size(), 8u);
}

TEST_F(Doctor, EveryFindingHasAProblemAReasonAndAFix) {
  test::set_up_by_hand(fake.files);
  fake.files.remove("etc/nvme/hostid");
  fake.files.remove("sys/module/nvme_tcp");
  fake.route = "";
  const Report report = examine(fake.host());
  EXPECT_GE(report.findings.size(), 6u);
  for (const Finding& finding : report.findings) {
    EXPECT_FALSE(finding.area.empty() || finding.what.empty() || finding.why.empty() || finding.fix.empty())
        << pretty(to_json(report));
  }
}

TEST_F(Doctor, WithoutAConfigurationSaysHowToMakeOne) {
  fake.has_config = false;
  expect("config", {"no configuration", "spark-stage import"});
}

TEST_F(Doctor, ReportsAKernelWithoutTheDriver) {
  fake.files.remove("sys/module/nvme_tcp");
  fake.files.write("lib/modules/6.17.0-1014-nvidia/modules.dep", "");
  fake.files.write("etc/os-release", "ID=ubuntu\n");
  expect("kernel", {"6.17.0-1014-nvidia", "has no NVMe/TCP driver", "linux-modules-extra"});
}

TEST_F(Doctor, ADriverThatIsNotLoadedYetIsOnlyANote) {
  fake.files.remove("sys/module/nvme_tcp");
  fake.files.write("lib/modules/6.17.0-1014-nvidia/modules.dep",
                   "kernel/drivers/nvme/host/nvme-tcp.ko.zst: a");
  expect("kernel", {"not loaded", "modprobe nvme-tcp"});
  EXPECT_EQ(examine(fake.host()).count(Level::Wrong), 0u);
}

TEST_F(Doctor, ReportsOptionsUnknownToTheKernel) {
  fake.config.targets["rose"].options.data_digest = true;
  fake.files.write("dev/nvme-fabrics",
                   "instance=-1,cntlid=-1,transport=%s,traddr=%s,trsvcid=%s,nqn=%s,nr_io_queues=%d,"
                   "keep_alive_tmo=%d,reconnect_delay=%d,ctrl_loss_tmo=%d,hostnqn=%s,hostid=%s");
  expect("kernel", {"target rose", "data_digest"});
}

TEST_F(Doctor, ReportsAnotherVersionOfLibnvme) {
  auto host = fake.host();
  host.libnvme = fail(Errc::Unsupported, "built for libnvme 1.3, libnvme 1.8 is loaded", "build it here");
  const Report report = examine(host);
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings.front().fix, "build it here");
}

TEST_F(Doctor, SaysWhyTheDaemonCannotUseTheCache) {
  fake.status =
      R"({"volumes": [], "cache_problem": "opening the cache /scratch: it has nothing of a cache"})";
  expect("cache", {"the cache can't be used", "nothing of a cache", "nothing can be staged", "findmnt -T"});
}

TEST_F(Doctor, NamesAnUpgradeThatWouldRemoveThePackage) {
  fake.apt_policy = "libnvme1:\n  Installed: 1.3-1+deb12u1\n  Candidate: 1.3-1+deb12u2\n  Version table:\n";
  EXPECT_TRUE(examine(fake.host()).findings.empty());
  fake.apt_policy = "libnvme1:\n  Installed: 1.3-1+deb12u1\n  Candidate: 1.13-2\n  Version table:\n";
  expect("libnvme", {"libnvme 1.13 instead of 1.3", "removes the package", "docs/install.md"});
}

// Debian 13 and Ubuntu 24.04: an upgrade brings another name too, or comes from there.
TEST_F(Doctor, KnowsBothNamesOfLibnvmeInAnUpgrade) {
  fake.apt_policy =
      "libnvme1:\n  Installed: 1.3-1+deb12u1\n  Candidate: 1.3-1+deb12u1\n  Version table:\n"
      "libnvme1t64:\n  Installed: (none)\n  Candidate: 1.13-2\n  Version table:\n";
  expect("libnvme", {"libnvme 1.13 instead of 1.3"});
  fake.apt_policy =
      "libnvme1:\n  Installed: (none)\n  Candidate: (none)\n  Version table:\n"
      "libnvme1t64:\n  Installed: 1.8-3build1\n  Candidate: 1.16.1-1\n  Version table:\n";
  expect("libnvme", {"libnvme 1.16 instead of 1.8"});
  fake.apt_policy =
      "libnvme1:\n  Installed: (none)\n  Candidate: 1.3-1\n  Version table:\n"
      "libnvme1t64:\n  Installed: 1.13-2\n  Candidate: 1.13-2\n  Version table:\n";
  EXPECT_TRUE(examine(fake.host()).findings.empty()) << "an archive of the older release is still named";
}

TEST_F(Doctor, NamesEveryFaultOfAnFstabLineAndIgnoresLocalMounts) {
  fake.has_config = false;
  test::set_up_by_hand(fake.files);
  const auto lines = found("fstab");
  ASSERT_EQ(lines.size(), 2u) << join(lines, "\n");
  EXPECT_THAT(lines[0], HasSubstr("line 2 of /etc/fstab (/dev/nvme1n1 on /mnt/rosa-storage)"));
  EXPECT_THAT(lines[0], HasSubstr("order of connecting"));
  EXPECT_THAT(lines[0], HasSubstr("read-write"));
  EXPECT_THAT(lines[0], HasSubstr("no nofail"));
  EXPECT_THAT(lines[0], HasSubstr("fsck"));
  EXPECT_THAT(lines[0], HasSubstr("sudo spark-stage import takes it over; its last lines are the steps"));
}

TEST_F(Doctor, NamesMissingNetworkMountOptionsButAcceptsReadWrite) {
  const auto line = [&](const std::string& options) {
    fake.files.write("etc/fstab", "nas:/data /mnt/nas nfs " + options + " 0 0");
  };
  for (const char* fine : {"rw,nofail,_netdev", "rw,_netdev,bg", "noauto", "x-systemd.automount"}) {
    line(fine);
    EXPECT_THAT(found("fstab"), ::testing::IsEmpty()) << fine;
  }
  line("rw,_netdev");
  expect("fstab", {"line 1 of /etc/fstab (nas:/data on /mnt/nas) has no nofail |", "holds up the boot"});
  line("rw,nofail");
  expect("fstab", {"has no _netdev |", "before the network"});
  line("defaults");
  expect("fstab",
         {"has no nofail and no _netdev", R"(sed -Ei '1s/^(\s*\S+\s+\S+\s+\S+\s+\S+)/\1,nofail,_netdev/')"});
  EXPECT_THAT(found("fstab").front(), ::testing::Not(HasSubstr("read-write")));
}

TEST_F(Doctor, ReportsAnFstabLineThatMountsAVolumesDevice) {
  fake.files.write("etc/fstab", "UUID=1 /mnt/datasets ext4 ro,nofail,_netdev 0 0");
  expect("fstab", {"mounts the device of volume datasets"});
}

TEST_F(Doctor, NamesAUnitThatConnectsOnceAndAdvisesNotToStopIt) {
  fake.has_config = false;
  test::set_up_by_hand(fake.files);
  expect("unit", {"nvme-rosa-connect.service", "never connected", "disconnects under the mount",
                  "its last lines are the steps; do not stop the unit before"});
}

TEST_F(Doctor, ReportsAMountMadeByTheDesktop) {
  test::connect_by_hand(fake.files, "nvme1", "nvme1n1", "raid5-data", "2f7c");
  fake.files.write("proc/self/mountinfo", "30 21 259:1 / /media/sem/data rw - ext4 /dev/nvme1n1 rw");
  expect("mount", {"by the desktop", "umount /media/sem/data", "UDISKS_IGNORE"});
}

TEST_F(Doctor, APathInACommandIsOneWord) {
  test::connect_by_hand(fake.files, "nvme1", "nvme1n1", "raid5-data", "2f7c");
  fake.files.write("proc/self/mountinfo",
                   "30 21 259:1 / /media/sem/a\\040b;reboot rw - ext4 /dev/nvme1n1 rw");
  expect("mount", {"umount '/media/sem/a b;reboot'; echo"});
}

TEST_F(Doctor, TheEditOfAnNfsLineFitsTheLine) {
  fake.files.write("etc/fstab", "  nas:/data /mnt/nas nfs");
  expect("fstab", {R"(sed -Ei '1s/^(\s*\S+\s+\S+\s+\S+).*/\1 nofail,_netdev/')"});
}

TEST_F(Doctor, NamesOtherManagers) {
  fake.files.write("sys/fs/cgroup/system.slice/stacd.service/cgroup.procs", "812");
  fake.files.write("etc/nvme/discovery.conf", "--transport=tcp --traddr=10.0.0.5");
  fake.files.write("etc/systemd/system/default.target.wants/nvmf-autoconnect.service", "");
  fake.files.write("sys/fs/cgroup/system.slice/multipathd.service/cgroup.procs", "813");
  fake.files.write("sys/module/nvme_core/parameters/multipath", "N");
  fake.files.write("usr/lib/udev/rules.d/70-nvmf-autoconnect.rules",
                   R"(ACTION=="change", SUBSYSTEM=="nvme")");
  const std::string all = join(found("managers"), "\n");
  EXPECT_THAT(all, HasSubstr("stacd.service"));
  EXPECT_THAT(all, HasSubstr("nvmf-autoconnect.service connects at boot"));
  EXPECT_THAT(all, HasSubstr("70-nvmf-autoconnect.rules connects everything that a target offers"));
  EXPECT_THAT(all, HasSubstr("multipathd runs"));
}

TEST_F(Doctor, NamesAManagerThatDisconnectsForeignConnections) {
  fake.files.write("sys/fs/cgroup/system.slice/stacd.service/cgroup.procs", "812");
  constexpr char kFile[] = "etc/stas/stacd.conf";
  fake.files.write(kFile,
                   "[I/O controller connection management]\n#disconnect-scope = "
                   "all-connections-matching-disconnect-trtypes\n");
  EXPECT_THAT(join(found("managers"), "\n"), Not(HasSubstr("disconnects")));
  fake.files.write(kFile, "disconnect-scope = all-connections-matching-disconnect-trtypes\n");
  EXPECT_THAT(join(found("managers"), "\n"), HasSubstr("stacd disconnects every NVMe/TCP connection"));
}

TEST_F(Doctor, LeavesIdleManagersAlone) {
  fake.files.write("etc/nvme/discovery.conf", "# nothing");
  fake.files.write("etc/systemd/system/default.target.wants/nvmf-autoconnect.service", "");
  fake.files.write("sys/fs/cgroup/system.slice/multipathd.service/cgroup.procs", "813");
  fake.files.write("sys/module/nvme_core/parameters/multipath", "Y");
  EXPECT_TRUE(found("managers").empty());
}

TEST_F(Doctor, ReportsACacheWithoutSpace) {
  fake.free = 49'000'000'000;
  expect("cache", {"keep_free holds back", "nothing can be staged"});
}

TEST_F(Doctor, ReportsACacheOnAFileSystemThatKeepsNoModes) {
  const auto closed = fake.files.root() / "var/lib/spark-stage/cache/.trash";
  std::filesystem::create_directories(closed);
  std::filesystem::permissions(closed, std::filesystem::perms::all);
  expect("cache", {"other users can open /var/lib/spark-stage/cache/.trash", "does not keep modes",
                   "stops all stagings", "ext4 or xfs"});
  std::filesystem::permissions(closed, std::filesystem::perms::owner_all);
  EXPECT_TRUE(found("cache").empty());
}

TEST_F(Doctor, ReportsAStateFolderOnAFileSystemThatKeepsNoModes) {
  const auto closed = fake.files.root() / "var/lib/spark-stage/stage-outs";
  std::filesystem::create_directories(closed);
  std::filesystem::permissions(closed, std::filesystem::perms::all);
  expect("cache", {"other users can open /var/lib/spark-stage/stage-outs", "does not keep modes",
                   "lock the catalog", "put /var/lib/spark-stage on ext4 or xfs"});
  std::filesystem::permissions(closed, std::filesystem::perms::owner_all);
  EXPECT_TRUE(found("cache").empty());
}

TEST_F(Doctor, ListsChecksThatNeedRoot) {
  auto host = fake.host();
  fake.files.write("dev/nvme-fabrics", "nqn=%s");
  host.is_root = false;
  const Report report = examine(host);
  EXPECT_THAT(join(report.unknown, "\n"), HasSubstr("needs root"));
}

TEST_F(Doctor, ReportsAnUnresponsiveCacheWithoutBlocking) {
  auto host = fake.host();
  host.bounded = [](const auto&) { return fail(Errc::TimedOut, "no answer within 5 s"); };
  const Report report = examine(host);
  EXPECT_THAT(pretty(to_json(report)), HasSubstr("can't be looked at: no answer within 5 s"));
}

TEST_F(Doctor, NamesTheServicesThatFillThePageCache) {
  fake.files.write("proc/meminfo",
                   "MemTotal: 131072000 kB\nMemFree: 2000000 kB\nCached: 117000000 kB\nShmem: 0 kB\n"
                   "Dirty: 20000000 kB\nWriteback: 0 kB");
  fake.files.write("sys/fs/cgroup/system.slice/docker-abc.scope/memory.stat", "anon 5\nfile 100000000000");
  fake.files.write("sys/fs/cgroup/system.slice/ssh.service/memory.stat", "anon 5\nfile 1000000");
  const std::string all = join(found("memory"), "\n");
  EXPECT_THAT(all, HasSubstr("docker-abc.scope 100 GB, ssh.service 1.00 MB"));
  EXPECT_THAT(all, HasSubstr("drop_caches"));
  EXPECT_THAT(all, HasSubstr("waits to be written"));
}

TEST_F(Doctor, ReportsAnUnsynchronizedClock) {
  auto host = fake.host();
  host.clock_is_synchronised = false;
  const Report report = examine(host);
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings.front().fix, "sudo timedatectl set-ntp true");
}

TEST_F(Doctor, UnusableKeysAreNamedWithTheirTarget) {
  fake.config.targets["rose"].options.host_key_file = fake.files.root() / "etc/keys/host";
  expect("keys", {"target rose: opening key file"});
  fake.files.write("etc/keys/host", "no key");
  ASSERT_EQ(::chmod((fake.files.root() / "etc/keys/host").c_str(), 0600), 0);
  expect("keys", {"it holds no DH-HMAC-CHAP key", "nvme gen-dhchap-key"});
}

TEST_F(Doctor, TlsWithoutTheHandshakeServiceIsWrong) {
  const auto file = fake.files.root() / "etc/keys/psk";
  fake.files.write("etc/keys/psk", "NVMeTLSkey-1:01:AwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISL99nVI:");
  ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
  fake.config.targets["rose"].options.tls_psk_file = file;
  EXPECT_THAT(found("keys"), ::testing::IsEmpty());
  fake.tlshd_runs = false;
  expect("keys", {"tlshd does not run", "ktls-utils"});
}

TEST(ControllerOf, FindsTheDriveBehindAPartitionAndBehindAVolumeGroup) {
  test::FakeSysfs files;
  const auto sys = files.root() / "sys";
  files.write("sys/devices/pci0/nvme/nvme0/nvme0n1/nvme0n1p2/dev", "259:2");
  files.write("sys/devices/virtual/block/dm-0/dev", "252:0");
  std::filesystem::create_directories(sys / "dev/block");
  std::filesystem::create_directories(sys / "devices/virtual/block/dm-0/slaves");
  std::filesystem::create_symlink("../../devices/pci0/nvme/nvme0/nvme0n1/nvme0n1p2", sys / "dev/block/259:2");
  std::filesystem::create_symlink("../../devices/virtual/block/dm-0", sys / "dev/block/252:0");
  std::filesystem::create_symlink("../../../../pci0/nvme/nvme0/nvme0n1/nvme0n1p2",
                                  sys / "devices/virtual/block/dm-0/slaves/nvme0n1p2");
  EXPECT_EQ(controller_of(sys, "259:2"), "nvme0");
  EXPECT_EQ(controller_of(sys, "252:0"), "nvme0");
  EXPECT_EQ(controller_of(sys, "8:1"), "");
}

}  // namespace
}  // namespace spark::doctor
