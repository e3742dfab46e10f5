// A host with a typical manual setup: a oneshot unit, kernel device names in fstab, the volumes connected and
// mounted.
#pragma once

#include <string>

#include "tests/support/fake_sysfs.hpp"

namespace spark::test {

inline void connect_by_hand(FakeSysfs& host, const std::string& controller, const std::string& device,
                            const std::string& subsystem, const std::string& uuid) {
  auto found = tcp_controller(controller, subsystem);
  found.portal = {"192.168.0.100", 4420};
  host.add_controller(found);
  host.add_node(controller, device, 1);
  host.add_head(device, 1, "259:" + controller.substr(4), 1 << 20);
  std::filesystem::create_directories(host.root() / "dev/disk/by-uuid");
  std::filesystem::create_symlink("../../" + device, host.root() / ("dev/disk/by-uuid/" + uuid));
}

inline void set_up_by_hand(FakeSysfs& host) {
  host.write("etc/fstab",
             "UUID=0a3407de-014b-458b-b5c1-848e92a327a3 / ext4 errors=remount-ro 0 1\n"
             "/dev/nvme1n1 /mnt/rosa-storage ext4 defaults,noatime,_netdev 0 2\n"
             "/dev/nvme3n1 /mnt/rosa-models ext4 defaults,noatime,_netdev 0 2\n"
             "192.168.0.98:/data/shared /mnt/dell-shared nfs4 rw,nconnect=8,_netdev,bg 0 0\n"
             "/dev/nvme0n1p3 /home ext4 defaults 0 2");
  host.write("etc/systemd/system/nvme-rosa-connect.service",
             "[Unit]\nDescription=Connect to ROSA\nAfter=network-online.target\n"
             "[Service]\nType=oneshot\nRemainAfterExit=yes\n"
             "ExecStart=/usr/sbin/nvme connect -t tcp -n raid5-data -a 192.168.0.100 -s 4420\n"
             "ExecStart=/usr/sbin/nvme connect -t tcp -n llm-models -a 192.168.0.100 -s 4420\n"
             "ExecStop=/usr/sbin/nvme disconnect -n raid5-data\n"
             "ExecStop=/usr/sbin/nvme disconnect -n llm-models");
  host.write("sys/class/block/nvme0n1p3/size", "1000");
  connect_by_hand(host, "nvme1", "nvme1n1", "raid5-data", "2f7c3a52-6f0e-4c55-9a55-0d4a6c1de5b7");
  connect_by_hand(host, "nvme3", "nvme3n1", "llm-models", "7f3b60f2-90d1-4dbf-a0cf-2b8f5d70f1aa");
  host.write("proc/self/mountinfo",
             "21 1 259:9 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw\n"
             "30 21 259:1 / /mnt/rosa-storage rw,noatime shared:2 - ext4 /dev/nvme1n1 rw\n"
             "31 21 259:3 / /mnt/rosa-models rw,noatime shared:3 - ext4 /dev/nvme3n1 rw");
}

}  // namespace spark::test
